/**
 * A server's JSON Schema as validators and providers take it. Servers written in Go put null where they have nothing to say
 * (`"required": null`), older ones write `exclusiveMinimum: true` beside `minimum`, or `required: true` in a property: each of these
 * would make the whole tool useless. What is left out makes the schema more permissive at most, and the server judges for itself.
 */

type Schema = Readonly<Record<string, unknown>>;

/** Keywords whose values are data, where null is a value like any other. */
const data = new Set(['default', 'const', 'enum', 'example', 'examples']);
/** Keywords whose values are maps of names to schemas: a name may look like a keyword. */
const maps = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies']);
const exclusive: Readonly<Record<string, string>> = { exclusiveMinimum: 'minimum', exclusiveMaximum: 'maximum' };

/** Goes down as deep as the schema does. */
export function usualSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(usualSchema);
  if (!isObject(schema)) return schema;
  const entries = Object.entries(schema).flatMap(([key, value]): [string, unknown][] => {
    if (data.has(key)) return [[key, value]];
    if (value === null || (key === 'required' && !Array.isArray(value))) return [];
    if (maps.has(key) && isObject(value)) return [[key, Object.fromEntries(Object.entries(value).flatMap(([name, each]) => each === null ? [] : [[name, usualSchema(each)]]))]];
    return [[key, usualSchema(value)]];
  });
  return withNumbers(Object.fromEntries(entries));
}

/** Bounds that are excluded, as numbers. */
function withNumbers(schema: Schema): Schema {
  let made = schema;
  for (const [key, bound] of Object.entries(exclusive)) {
    const { [key]: excluded, ...rest } = made;
    if (typeof excluded !== 'boolean') continue;
    const { [bound]: number, ...unbound } = rest;
    made = excluded && number !== undefined ? { ...unbound, [key]: number } : rest;
  }
  return made;
}

function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
