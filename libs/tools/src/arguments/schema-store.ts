/**
 * JSON Schemas as they come from servers and users, compiled. The draft is chosen by `$schema`; without one it is 2020-12, which
 * reads older schemas too. Formats are not checked: the tool knows its own better, and unknown ones must not refuse a call.
 *
 * Owns the compiled schemas by definition hash, and one compiler per draft.
 *
 * 1  At most 500 schemas; the one unused for longest goes first.
 * 2  A compiler keeps whatever it has compiled, so it is replaced after 200 schemas, and after one that it was stopped in.
 * 3  Whoever wrote a schema decides how long it takes to compile: a hundred thousand characters can take ten seconds. It is stopped after one.
 *    That is kept of it; where this thread was kept from it instead, nothing is, and it is looked at again the next time.
 */
import { schemaPattern } from '@treadle/core';
import { Ajv, type ValidateFunction } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { createInTime, type InTime } from './in-time.ts';

export type CompiledSchema =
  | { readonly type: 'usable'; readonly validate: ValidateFunction }
  | { readonly type: 'unusable'; readonly problem: string };

export interface SchemaStore {
  /** The schema of the tool whose definition has this hash. Never throws. */
  compiled(hash: string, schema: unknown): CompiledSchema;
  /** Whether that costs no time. */
  knows(hash: string): boolean;
}

const maxCompiled = 500;
const compilerLife = 200;
const compileLimitMs = 1000;

export function createSchemaStore(inTime: InTime = createInTime()): SchemaStore {
  const known = new Map<string, CompiledSchema>();
  const compile = createCompilers(inTime);
  return {
    knows: (hash) => known.has(hash),
    compiled(hash, schema) {
      const entry = known.get(hash) ?? compile(hash, schema);
      if (entry === keptWaiting) return entry;
      known.delete(hash);
      known.set(hash, entry);
      const [oldest] = known.keys();
      if (known.size > maxCompiled && oldest !== undefined) known.delete(oldest);
      return entry;
    },
  };
}

const drafts = { 'draft-07': Ajv, '2019-09': Ajv2019, '2020-12': Ajv2020 };
type Draft = keyof typeof drafts;

/** `addUsedSchema: false`: two servers may use the same `$id`. `ownProperties`: what every object has is no argument of a call. */
const options = { strict: false, validateFormats: false, allErrors: true, code: { regExp: schemaPattern }, logger: false as const, addUsedSchema: false, ownProperties: true };

function createCompilers(inTime: InTime): (hash: string, schema: unknown) => CompiledSchema {
  const compilers = new Map<Draft, { readonly ajv: Ajv | Ajv2019 | Ajv2020; uses: number }>();
  const compilerFor = (draft: Draft): Ajv | Ajv2019 | Ajv2020 => {
    const present = compilers.get(draft);
    const compiler = present !== undefined && present.uses < compilerLife ? present : { ajv: new drafts[draft](options), uses: 0 };
    compiler.uses += 1;
    compilers.set(draft, compiler);
    return compiler.ajv;
  };
  return (hash, schema) => {
    if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return unusable('its input schema is no object');
    // What the compiler knows as `$async` is no word of JSON Schema: its validators answer with promises, and whatever does not fit rejects one.
    const { $schema, $async: _, ...words } = schema as Record<string, unknown>;
    // The compiler finds the whole of a schema (`$ref: "#"`) by its name alone.
    const rest: Record<string, unknown> = { $id: `https://tool.invalid/${hash.replace(/\W/g, '-')}`, ...words };
    if (rest.type !== 'object') return unusable('its input schema is not of type "object"');
    const draft = draftOf($schema);
    try {
      let begun = false;
      const compiled = inTime(`compile ${hash}`, compileLimitMs, () => {
        if (begun) compilers.delete(draft);
        begun = true;
        return { validate: compilerFor(draft).compile(rest) };
      });
      if (typeof compiled !== 'string') return { type: 'usable', ...compiled };
      compilers.delete(draft);
      return compiled === 'kept_waiting' ? keptWaiting : unusable('its input schema takes too long to read');
    } catch (error) {
      return unusable(`its input schema cannot be used (${firstLine(error)})`);
    }
  };
}

const keptWaiting = unusable('its input schema could not be read, since this machine is too busy');

function unusable(problem: string): CompiledSchema {
  return { type: 'unusable', problem };
}

function draftOf($schema: unknown): Draft {
  const name = typeof $schema === 'string' ? $schema : '';
  if (/draft-0[467]\b/.test(name)) return 'draft-07';
  return name.includes('2019-09') ? '2019-09' : '2020-12';
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n', 1)[0]?.replace(/ from id https:\/\/tool\.invalid\/\S*$/, '').slice(0, 200) ?? '';
}
