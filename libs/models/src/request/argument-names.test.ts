import { testTool } from '@treadle/testkit';
import { describe, expect, test } from 'vitest';
import { withLegalNames, withOwnNames } from './argument-names.ts';

const schemaOf = (...names: string[]) => ({ type: 'object', properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])), required: names });
const sent = ({ input_schema }: { readonly input_schema: Readonly<Record<string, unknown>> }) => input_schema;
const back = (schema: Readonly<Record<string, unknown>>, input: Readonly<Record<string, unknown>>) => (
  withOwnNames({ provider_id: 'c', name: 't', input, problem: null }, [testTool('t', { wire_name: 't', input_schema: schema })], sent).input);

describe('names of arguments', () => {
  test.each<[string, readonly string[], readonly string[]]>([
    ['legal ones stay', ['a', 'b.c', 'd-e_1', 'x'.repeat(64)], ['a', 'b.c', 'd-e_1', 'x'.repeat(64)]],
    ['brackets', ['filter[id]', 'filter[name]'], ['filter_id_', 'filter_name_']],
    ['what others begin with', ['$top', '@odata.type'], ['_top', '_odata.type']],
    ['too long', ['y'.repeat(65), `${'y'.repeat(65)}z`], ['y'.repeat(64), `${'y'.repeat(62)}_2`]],
    ['no letters at all', ['名前', '住所', ''], ['_', '__2', '__3']],
    ['one that is there already', ['a b', 'a_b', 'a/b'], ['a_b_2', 'a_b', 'a_b_3']],
  ])('%s', (_, names, wire) => {
    const schema = schemaOf(...names);
    const legal = withLegalNames(schema) as ReturnType<typeof schemaOf>;
    expect([Object.keys(legal.properties), legal.required]).toEqual([wire, wire]);
    expect(Object.keys(legal.properties).every((name) => /^[a-zA-Z0-9_.-]{1,64}$/.test(name))).toBe(true);
    expect(back(schema, Object.fromEntries(wire.map((name, index) => [name, index])))).toEqual(Object.fromEntries(names.map((name, index) => [name, index])));
    // Who says them as the tool does is understood, too.
    expect(back(schema, Object.fromEntries(names.map((name, index) => [name, index])))).toEqual(Object.fromEntries(names.map((name, index) => [name, index])));
  });

  test('each says what the tool calls it; a schema of legal names is not touched', () => {
    const schema = { type: 'object', properties: { 'a b': { type: 'string', description: 'What.' }, 'c d': true } };
    expect(withLegalNames(schema)).toEqual({ type: 'object', properties: { a_b: { type: 'string', description: 'What. (the tool calls it "a b")' }, c_d: { description: '(the tool calls it "c d")' } } });
    const legal = schemaOf('a');
    expect(withLegalNames(legal)).toBe(legal);
  });

  test('both at once: the tool\'s own counts, the other is left as it is', () => {
    expect(back(schemaOf('a b'), { a_b: 1, 'a b': 2 })).toEqual({ a_b: 1, 'a b': 2 });
  });

  test('a call of nothing that is there stays as it is', () => {
    const call = { provider_id: 'c', name: 'other', input: { a_b: 1 }, problem: null };
    expect(withOwnNames(call, [], sent)).toBe(call);
    expect(back({ type: 'object' }, { toString: 1, __proto__: 2 })).toEqual({ toString: 1 });
  });
});
