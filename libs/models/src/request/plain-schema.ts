/**
 * A tool's JSON Schema for servers that know only a part of JSON Schema: references put in where they point, a recursion cut at its
 * second round, no combination at the top, no keyword that a grammar maker fails on. What is left out makes the schema only more
 * permissive: the host checks the arguments by the whole schema anyway. A pattern or format is told in words instead.
 */

type Schema = Readonly<Record<string, unknown>>;

/** Keywords that say nothing once references are put in, or that servers refuse. */
const dropped = new Set(['$schema', '$id', 'id', '$anchor', '$comment', '$async', '$vocabulary', '$dynamicRef', '$dynamicAnchor', '$recursiveRef', '$recursiveAnchor', '$ref', '$defs', 'definitions', 'pattern', 'format', 'contentEncoding', 'contentMediaType']);
/** Keywords whose values are maps of names to schemas: a name may look like a keyword. */
const maps = new Set(['properties', 'patternProperties', 'dependentSchemas']);
/** Keywords whose values are schemas, or lists of them. */
const nested = new Set(['items', 'prefixItems', 'additionalProperties', 'contains', 'not', 'if', 'then', 'else', 'propertyNames', 'allOf', 'anyOf', 'oneOf', 'unevaluatedProperties', 'unevaluatedItems']);
const deepest = 32;
/** Schemas in one tool; references that fan out would grow beyond every request. */
const most = 5000;

interface Walk { readonly root: Schema; left: number }

export function plainSchema(schema: Schema): Schema {
  const plain = plainOf(schema, { root: schema, left: most }, [], deepest);
  return { properties: {}, ...withoutTopCombination(plain), type: 'object' };
}

function plainOf(schema: Schema, walk: Walk, open: readonly string[], depth: number): Schema {
  walk.left -= 1;
  if (depth === 0 || walk.left < 0) return {};
  const reference = schema['$ref'];
  const target = typeof reference === 'string' && !open.includes(reference) ? pointed(walk.root, reference) : null;
  const beneath = target === null ? {} : plainOf(target, walk, [...open, reference as string], depth - 1);
  const own: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) {
    if (dropped.has(key) || isDraft4(key, value)) continue;
    if (maps.has(key) && isSchema(value)) own[key] = Object.fromEntries(Object.entries(value).map(([name, each]) => [name, child(each, walk, open, depth)]));
    else if (key === 'items' && Array.isArray(value)) own['prefixItems'] = value.map((each: unknown) => child(each, walk, open, depth));
    else if (nested.has(key)) own[key] = Array.isArray(value) ? value.map((each: unknown) => child(each, walk, open, depth)) : child(value, walk, open, depth);
    else own[key] = value;
  }
  return described({ ...beneath, ...own }, schema);
}

function child(value: unknown, walk: Walk, open: readonly string[], depth: number): unknown {
  return isSchema(value) ? plainOf(value, walk, open, depth - 1) : value;
}

/** `exclusiveMinimum: true` is of a draft that the vendors' checkers no longer take. */
function isDraft4(key: string, value: unknown): boolean {
  return (key === 'exclusiveMinimum' || key === 'exclusiveMaximum') && typeof value === 'boolean';
}

function described(plain: Schema, { pattern, format }: Schema): Schema {
  const hints = [['pattern', pattern], ['format', format]].filter(([, value]) => typeof value === 'string').map(([name, value]) => `${name as string}: ${value as string}`);
  if (hints.length === 0) return plain;
  const description = typeof plain['description'] === 'string' ? `${plain['description']} ` : '';
  return { ...plain, description: `${description}(${hints.join(', ')})` };
}

/** Vendors want a plain object at the top. The branches' properties are all offered; only what every branch of `allOf` requires is required. */
function withoutTopCombination(schema: Schema): Schema {
  const { allOf, anyOf, oneOf, not: _not, enum: _enum, ...rest } = schema;
  const branches = [allOf, anyOf, oneOf].flatMap((list) => (Array.isArray(list) ? list.filter(isSchema) : []));
  if (branches.length === 0) return rest;
  const all = Array.isArray(allOf) ? allOf.filter(isSchema) : [];
  const properties = Object.assign({}, ...branches.map((branch) => branch['properties'] ?? {}), rest['properties'] ?? {}) as Schema;
  const required = [...new Set([rest, ...all].flatMap((each) => (Array.isArray(each['required']) ? each['required'] as unknown[] : [])))];
  return { ...rest, properties, ...(required.length === 0 ? {} : { required }) };
}

function isSchema(value: unknown): value is Schema {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** What a JSON pointer within the document points to; anchors and other documents are not followed. */
function pointed(root: Schema, reference: string): Schema | null {
  const parts = pointerParts(reference);
  if (parts === null) return null;
  let at: unknown = root;
  for (const part of parts) {
    if (at === null || typeof at !== 'object' || !Object.hasOwn(at, part)) return null;
    at = (at as Record<string, unknown>)[part];
  }
  return isSchema(at) ? at : null;
}

/** Null where it is no pointer. Shared with `schema.ts`. */
export function pointerParts(reference: string): readonly string[] | null {
  if (reference === '#') return [];
  if (!reference.startsWith('#/')) return null;
  try {
    return decodeURIComponent(reference.slice(2)).split('/').map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  } catch {
    return null;
  }
}
