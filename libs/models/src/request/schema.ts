/**
 * A tool's JSON Schema as it may be sent: as it is, but for references that lead nowhere. Strict servers refuse those, and a
 * schema without them is only more permissive; the host checks the arguments by the whole schema anyway.
 */
import { pointerParts } from './plain-schema.ts';

type Schema = Readonly<Record<string, unknown>>;

/** Keywords whose values are data, not schemas. */
const data = new Set(['enum', 'const', 'default', 'example', 'examples', 'required']);
const references = new Set(['$ref', '$dynamicRef', '$recursiveRef']);
const deepest = 64;

/** A copy of `schema` in which every reference resolves within it. */
export function resolvableSchema(schema: Schema): Schema {
  return { type: 'object', ...copy(schema, schema, deepest) as Schema };
}

function copy(value: unknown, root: Schema, depth: number): unknown {
  if (value === null || typeof value !== 'object') return value;
  if (depth === 0) return {};
  if (Array.isArray(value)) return value.map((item) => copy(item, root, depth - 1));
  return Object.fromEntries(Object.entries(value)
    .filter(([key, item]) => !(references.has(key) && typeof item === 'string' && !resolves(root, item)))
    .map(([key, item]) => [key, data.has(key) && !isSchema(item) ? item : copy(item, root, depth - 1)]));
}

/** A property may be named like a keyword; then its value is an object, which keywords of data have only in `const` and `default`. */
function isSchema(value: unknown): boolean {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** JSON pointers within the document; anchors and other documents are not followed. */
function resolves(root: Schema, reference: string): boolean {
  let at: unknown = root;
  for (const part of pointerParts(reference) ?? ['\0']) {
    if (at === null || typeof at !== 'object' || !Object.hasOwn(at, part)) return false;
    at = (at as Record<string, unknown>)[part];
  }
  return at !== null && typeof at === 'object';
}
