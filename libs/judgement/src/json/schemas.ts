/**
 * JSON Schemas of validators, compiled. The draft is chosen by `$schema`: draft-04 to 07, 2019-09, else 2020-12. Formats are not checked.
 *
 * Owns the compiled schemas by their canonical JSON.
 *
 * 1  At most 100; the one unused for longest goes first. A compiler keeps what it compiles, so each schema has its own.
 */
import { canonicalJson, schemaPattern } from '@treadle/core';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';

export type CompiledSchema =
  | { readonly type: 'usable'; readonly validate: ValidateFunction }
  | { readonly type: 'unusable'; readonly problem: string };

export interface Schemas {
  /** Never throws. */
  compiled(schema: Readonly<Record<string, unknown>>): CompiledSchema;
}

const maxCompiled = 100;

export function createSchemas(): Schemas {
  const known = new Map<string, CompiledSchema>();
  // Specs live as long as their run is warm: the same object again needs no hashing.
  const byObject = new WeakMap<object, CompiledSchema>();
  return {
    compiled(schema) {
      const same = byObject.get(schema);
      if (same !== undefined) return same;
      const key = canonicalJson(schema);
      const entry = known.get(key) ?? compile(schema);
      known.delete(key);
      known.set(key, entry);
      byObject.set(schema, entry);
      const [oldest] = known.keys();
      if (known.size > maxCompiled && oldest !== undefined) known.delete(oldest);
      return entry;
    },
  };
}

const options = { strict: false, validateFormats: false, allErrors: true, code: { regExp: schemaPattern }, logger: false as const, addUsedSchema: false, ownProperties: true };

/** `$async` is the compiler's own word: its validators answer with promises, to which nobody listens. It finds the whole of a schema (`$ref: "#"`) by its name alone. */
function compile({ $schema, $async: _, ...schema }: Readonly<Record<string, unknown>>): CompiledSchema {
  try {
    const Compiler = compilerFor($schema);
    return { type: 'usable', validate: new Compiler(options).compile({ $id: 'https://answer.invalid/', ...schema }) };
  } catch (error) {
    return { type: 'unusable', problem: `its schema cannot be used (${(error instanceof Error ? error.message : String(error)).slice(0, 200)})` };
  }
}

function compilerFor($schema: unknown): typeof Ajv | typeof Ajv2019 | typeof Ajv2020 {
  const name = typeof $schema === 'string' ? $schema : '';
  if (/draft-0[467]\b/.test(name)) return Ajv;
  return name.includes('2019-09') ? Ajv2019 : Ajv2020;
}

const maxFaults = 5;
const maxLength = 1000;

/** Where the value differs from its schema and what was expected there, for the model to read. */
export function faultsInWords(errors: readonly ErrorObject[]): string {
  const faults = [...new Set(errors.map(fault))];
  const more = faults.length > maxFaults ? `; and ${faults.length - maxFaults} more` : '';
  return `${faults.slice(0, maxFaults).join('; ')}${more}`.slice(0, maxLength).toWellFormed();
}

function fault(error: ErrorObject): string {
  const path = error.instancePath.slice(1).replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~');
  const params = error.params as Readonly<Record<string, unknown>>;
  const inside = path === '' ? '' : ` in "${path}"`;
  const subject = path === '' ? 'the whole' : `"${path}"`;
  if (error.keyword === 'required') return `"${String(params.missingProperty)}" is missing${inside}`;
  if (error.keyword === 'additionalProperties') return `"${String(params.additionalProperty)}" is not known${inside}`;
  if (error.keyword === 'enum') return `${subject} must be one of ${JSON.stringify(params.allowedValues).slice(0, 200)}`;
  if (error.keyword === 'const') return `${subject} must be ${JSON.stringify(params.allowedValue).slice(0, 100)}`;
  return `${subject} ${error.message ?? 'is not valid'}`;
}
