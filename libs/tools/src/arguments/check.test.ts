import type { ToolDefinition } from '@treadle/core';
import { testTool } from '@treadle/testkit';
import { describe, expect, test } from 'vitest';
import { checkArguments } from './check.ts';
import { createInTime } from './in-time.ts';
import { createSchemaStore } from './schema-store.ts';

let hashes = 0;
function toolWith(input_schema: Record<string, unknown>) {
  hashes += 1;
  return testTool('files/write', { wire_name: 'files__write', input_schema, hash: `sha256:${hashes}` });
}

describe('checking arguments', () => {
  const schemas = createSchemaStore();
  const inTime = createInTime();
  const check = (tool: ToolDefinition, input: Record<string, unknown>) => checkArguments({ schemas, inTime }, tool, input);

  test('says nothing where they fit', () => {
    expect(check(toolWith({ type: 'object' }), { any: 1 })).toBeNull();
  });

  test('names every fault with its place and what was expected, for the model', () => {
    const tool = toolWith({
      type: 'object', required: ['path', 'mode'], additionalProperties: false,
      properties: { path: { type: 'string' }, mode: { enum: ['r', 'w'] }, opts: { type: 'object', properties: { n: { type: 'integer', minimum: 1 } } } },
    });
    expect(check(tool, { mode: 'x', opts: { n: 0 }, paht: 'a' })).toBe(
      'The arguments do not fit files__write: "path" is missing; "paht" is not known; "mode" must be one of ["r","w"]; "opts.n" must be >= 1.');
    expect(check(tool, { path: 1, mode: 'r' })).toBe('The arguments do not fit files__write: "path" must be string.');
  });

  test('stays short for many faults', () => {
    const properties = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`field_${index}`, { type: 'string' }]));
    const input = Object.fromEntries(Object.keys(properties).map((key) => [key, 1]));
    const message = check(toolWith({ type: 'object', properties }), input)!;
    expect(message).toContain('and 45 more');
    expect(message.length).toBeLessThan(601);
  });

  test.each([
    ['2020-12', 'https://json-schema.org/draft/2020-12/schema', { prefixItems: [{ type: 'number' }] }],
    ['2019-09', 'https://json-schema.org/draft/2019-09/schema', { items: [{ type: 'number' }] }],
    ['draft-07', 'http://json-schema.org/draft-07/schema#', { items: [{ type: 'number' }] }],
    ['draft-04', 'http://json-schema.org/draft-04/schema#', { items: [{ type: 'number' }] }],
    ['one it does not know', 'https://example.org/own', { prefixItems: [{ type: 'number' }] }],
  ])('reads a schema of %s by its own rules', (_name, $schema, list) => {
    const tool = toolWith({ $schema, type: 'object', properties: { pair: { type: 'array', ...list } } });
    expect(check(tool, { pair: [1] })).toBeNull();
    expect(check(tool, { pair: ['x'] })).toContain('"pair.0" must be number');
  });

  test('lets unknown formats, keywords and odd patterns pass', () => {
    const tool = toolWith({ type: 'object', properties: { a: { type: 'string', format: 'moon-phase', 'x-own': 1, pattern: '^[\\w\\-]+$' } } });
    expect(check(tool, { a: 'a-b' })).toBeNull();
    expect(check(tool, { a: '?' })).toContain('must match pattern');
  });

  test.each<[string, string, string]>([
    ['^\\p{L}+$', 'größe', 'p{L}'], ['^\\p{Extended_Pictographic}$', '🧵', 'x'], ['^.$', '🧵', 'ab'], ['^[\\w\\-.]+$', 'a-b', 'a b'], ['^\\u{1F9F5}$', '🧵', 'u'], ['^a\\@b$', 'a@b', 'ab'],
  ])('a pattern is read as it is meant: %s takes %s, and not %s', (pattern, good, bad) => {
    const tool = toolWith({ type: 'object', properties: { a: { type: 'string', pattern }, by_name: { type: 'object', patternProperties: { [pattern]: { type: 'number' } } } } });
    expect(check(tool, { a: good })).toBeNull();
    expect(check(tool, { a: bad })).toContain('must match pattern');
    expect(check(tool, { a: good, by_name: { [good]: 'no number', [bad]: 'any' } })).toContain('must be number');
  });

  test.each([[{}], [{ $schema: 'http://json-schema.org/draft-07/schema#' }], [{ $schema: 'https://json-schema.org/draft/2019-09/schema' }], [{ $id: 'https://x/tree' }]])('a schema may be a part of itself as a whole: %j', (more) => {
    const tool = toolWith({ ...more, type: 'object', properties: { v: { type: 'integer' }, kids: { type: 'array', items: { $ref: '#' } } }, required: ['v'] });
    expect(check(tool, { v: 1, kids: [{ v: 2, kids: [{ v: 3 }] }] })).toBeNull();
    expect(check(tool, { v: 1, kids: [{ v: 2, kids: [{ v: 'x' }] }] })).toContain('"kids.0.kids.0.v" must be integer');
  });

  test('two schemas with one $id do not disturb each other', () => {
    expect(check(toolWith({ $id: 'https://x/y', type: 'object', required: ['a'] }), { a: 1 })).toBeNull();
    expect(check(toolWith({ $id: 'https://x/y', type: 'object', required: ['b'] }), { a: 1 })).toContain('"b" is missing');
  });

  test('leaves it to the tool where a pinned schema cannot be compiled', () => {
    expect(check(toolWith({ type: 'object', properties: { a: { type: 'nothing' } } }), { a: 1 })).toBeNull();
  });

  test.each<[string, Record<string, unknown>, unknown]>([
    ['a pattern', { type: 'string', pattern: '^(a+)+$' }, `${'a'.repeat(40)}!`],
    ['a list whose items are to differ', { type: 'array', uniqueItems: true }, Array.from({ length: 40_000 }, (_, n) => [n])],
  ])('refuses what cannot be checked in time: %s', (_what, schema, value) => {
    const tool = toolWith({ type: 'object', properties: { a: schema } });
    expect(check(tool, { a: value })).toBe('The arguments could not be checked against the schema of files__write in time.');
    // Another tool is not to blame for that.
    expect(check(toolWith({ type: 'object' }), { a: 1 })).toBeNull();
  });

  test('what every object has is no argument: a name like that may be left out, and is missed where it is required', () => {
    const optional = toolWith({ type: 'object', properties: { constructor: { type: 'string' }, valueOf: { type: 'number' } }, dependentRequired: { toString: ['a'] } });
    expect([check(optional, {}), check(optional, { constructor: 'x' })]).toEqual([null, null]);
    expect(check(optional, { constructor: 5 })).toContain('"constructor" must be string');
    expect(check(toolWith({ type: 'object', required: ['toString'] }), {})).toContain('"toString" is missing');
  });

  test('a schema whose validator would answer later is judged at once, and rejects nothing behind our back', async () => {
    const stray: unknown[] = [];
    const note = (reason: unknown) => stray.push(reason);
    process.on('unhandledRejection', note);
    const tool = toolWith({ $async: true, type: 'object', required: ['a'] });
    expect([check(tool, {}), check(tool, { a: 1 })]).toEqual(['The arguments do not fit files__write: "a" is missing.', null]);
    expect(schemas.compiled('inner', { type: 'object', properties: { a: { $async: true, type: 'string' } } })).toMatchObject({ type: 'unusable' });
    await new Promise((resolve) => { setImmediate(resolve); });
    process.off('unhandledRejection', note);
    expect(stray).toEqual([]);
  });

  test.each<[string, Record<string, unknown>]>([
    ['by its anchor', { type: 'object', $dynamicRef: '#x' }],
    ['over others', { type: 'object', $defs: { one: { allOf: [{ $ref: '#/$defs/two' }] }, two: { allOf: [{ $ref: '#/$defs/one' }] } }, properties: { a: { $ref: '#/$defs/one' } } }],
  ])('a schema that leads back to itself without end %s fits nothing, and harms nobody', (_how, schema) => {
    expect(check(toolWith(schema), { a: 1 })).toMatch(/leads back to itself without end/);
  });

  test('a schema that takes too long to read is not used, and the next one is read all the same', () => {
    const slow = { type: 'object', patternProperties: Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`^p${index}`, { type: 'string' }])) };
    let cpu = 0;
    const schemas = createSchemaStore(createInTime({ cpuMs: () => cpu += 10_000 }));
    const check = (tool: ToolDefinition, input: Record<string, unknown>) => checkArguments({ schemas, inTime }, tool, input);
    expect(schemas.compiled('slow', slow)).toEqual({ type: 'unusable', problem: 'its input schema takes too long to read' });
    expect(schemas.knows('slow')).toBe(true);
    expect(check(toolWith({ type: 'object', required: ['a'] }), {})).toContain('"a" is missing');
  });

  test('goes on working past the bound of its store', () => {
    for (let index = 0; index < 520; index++) expect(check(toolWith({ type: 'object', required: ['a'] }), {})).toContain('missing');
  });
});
