import { expect, test } from 'vitest';
import { offeredTool } from './offered-tool.ts';

const schema = { type: 'object' };
const nested = (depth: number): unknown => JSON.parse('{"items":'.repeat(depth) + '{}' + '}'.repeat(depth));
const entry = (over: object) => offeredTool('s', { name: 'a', inputSchema: schema, ...over }, false);

test.each([
  ['half a character', 'a\ud800'], ['a NUL', 'a\0'], ['a line break', 'a\nb'], ['an escape', 'a\u001b[31m'], ['nothing', ''], ['no text', 5], ['too much', 'a'.repeat(201)],
])('a name with %s is none', (_what, name) => {
  expect(entry({ name })).toBe('MCP server s lists a tool without a usable name.');
});

test.each(['get-item', 'a/b', 'über', 'naïve tool', '工具'])('%j is a name', (name) => {
  expect(entry({ name })).toMatchObject({ name: `s/${name}` });
});

test('a schema without an end is left out, and nothing else with it', () => {
  expect(entry({ inputSchema: { type: 'object', properties: { a: nested(20_000) } } })).toBe('Tool s/a is left out: its input schema is nested deeper than 64 levels.');
  expect(entry({ inputSchema: nested(63) })).toMatchObject({ input_schema: nested(63) });
});

test('half a character in a schema, as a key or a value, reaches no model', () => {
  const tool = entry({ description: 'x\udfff', inputSchema: { type: 'object', properties: { 'k\ud800': { description: 'v\udc00', enum: ['\ud800'] } } } });
  expect(tool).toMatchObject({ description: 'x\ufffd', input_schema: { type: 'object', properties: { 'k\ufffd': { description: 'v\ufffd', enum: ['\ufffd'] } } } });
});
