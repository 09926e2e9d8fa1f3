/** Why arguments do not fit a tool's schema, in few words for the model to read. */
import type { ToolDefinition } from '@treadle/core';
import type { ErrorObject, ValidateFunction } from 'ajv';
import type { InTime } from './in-time.ts';
import type { SchemaStore } from './schema-store.ts';

const maxFaults = 5;
const maxLength = 600;
/** Patterns, and lists whose items are to differ, may take as long as they like. */
const limitMs = 500;

export interface CheckDeps { readonly schemas: SchemaStore; readonly inTime: InTime }

/** Null where they fit. A pinned schema that this version cannot compile is left to the tool itself to judge. */
export function checkArguments({ schemas, inTime }: CheckDeps, tool: ToolDefinition, input: Readonly<Record<string, unknown>>): string | null {
  const schema = schemas.compiled(tool.hash, tool.input_schema);
  if (schema.type === 'unusable') return null;
  const { validate } = schema;
  const found = inTime(`schema ${tool.hash}`, limitMs, () => judged(validate, input));
  if (typeof found === 'string') return `The arguments could not be checked against the schema of ${tool.wire_name} in time.`;
  return found.errors === null ? null : messageFor(tool, found.errors);
}

/** A schema may lead back to itself without end. That, too, is not known to fit. */
function judged(validate: ValidateFunction, input: unknown): { readonly errors: readonly ErrorObject[] | null } {
  try {
    return { errors: validate(input) ? null : validate.errors ?? [] };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { errors: [{ instancePath: '', schemaPath: '', keyword: '$ref', params: {}, message: 'cannot be checked: the schema leads back to itself without end' }] };
  }
}

function messageFor(tool: ToolDefinition, errors: readonly ErrorObject[]): string {
  const faults = [...new Set(errors.map(fault))];
  const more = faults.length > maxFaults ? `; and ${faults.length - maxFaults} more` : '';
  return `The arguments do not fit ${tool.wire_name}: ${faults.slice(0, maxFaults).join('; ')}${more}.`.slice(0, maxLength).toWellFormed();
}

function fault(error: ErrorObject): string {
  const path = error.instancePath.slice(1).replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~');
  const params = error.params as Record<string, unknown>;
  const inside = path === '' ? '' : ` in "${path}"`;
  if (error.keyword === 'required') return `"${String(params.missingProperty)}" is missing${inside}`;
  if (error.keyword === 'additionalProperties') return `"${String(params.additionalProperty)}" is not known${inside}`;
  if (error.keyword === 'enum') return `${subject(path)} must be one of ${JSON.stringify(params.allowedValues).slice(0, 200)}`;
  if (error.keyword === 'const') return `${subject(path)} must be ${JSON.stringify(params.allowedValue).slice(0, 100)}`;
  return `${subject(path)} ${error.message ?? 'is not valid'}`;
}

function subject(path: string): string {
  return path === '' ? 'the whole' : `"${path}"`;
}
