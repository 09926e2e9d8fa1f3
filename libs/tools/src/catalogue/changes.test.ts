import type { ToolDefinition } from '@treadle/core';
import type { KnownChanges, ToolCatalogue } from '@treadle/engine';
import { describe, expect, test } from 'vitest';
import { toolChanges } from './changes.ts';

const tool = (name: string, hash = 'h', wire_name = name.replace('/', '__')): ToolDefinition => (
  { name, wire_name, description: hash, input_schema: { type: 'object' }, effect: 'read', parallel: 'parallel', timeout_ms: 1, hash });
const pinned = [tool('s/a'), tool('s/b'), tool('own'), tool('other/x')];
const nothing: KnownChanges = { kept: {}, instructions: { s: 'i1', other: 'o1' }, gone: [], problems: [], times: {} };

interface Over { readonly offered?: readonly ToolDefinition[]; readonly heard?: readonly string[]; readonly known?: Partial<KnownChanges>; readonly now?: Partial<ToolCatalogue>; readonly pinned?: readonly ToolDefinition[] }
const changes = ({ offered = [tool('s/a'), tool('s/b')], heard = ['s/'], known = {}, now = {}, ...over }: Over) => (
  toolChanges({ pinned, heard, known: { ...nothing, ...known }, now: { tools: offered, problems: [], instructions: { s: 'i1' }, ...now }, ...over }));
const said = { gone: [], kept: [], problems: [] };

test.each<[string, Over, object | null]>([
  ['all as it was', {}, null],
  ['another order', { offered: [tool('s/b'), tool('s/a')] }, null],
  ['a server that nobody asked has lost nothing', { offered: [], heard: [] }, null],
  ['one is gone', { offered: [tool('s/a')] }, { ...said, tools: [tool('s/a'), tool('own'), tool('other/x')], gone: ['s/b'] }],
  ['one is new', { offered: [tool('s/a'), tool('s/b'), tool('s/c')] }, { ...said, tools: [...pinned, tool('s/c')] }],
  ['one is described otherwise, and stays as it was', { offered: [tool('s/a', 'new'), tool('s/b')] }, { ...said, tools: pinned, kept: [{ name: 's/a', hash: 'new' }] }],
  ['which is told once', { offered: [tool('s/a', 'new'), tool('s/b')], known: { kept: { 's/a': 'new' } } }, null],
  ['and again when it changes again', { offered: [tool('s/a', 'newer'), tool('s/b')], known: { kept: { 's/a': 'new' } } }, { ...said, tools: pinned, kept: [{ name: 's/a', hash: 'newer' }] }],
  ['and when it is as before', { known: { kept: { 's/a': 'new' } } }, { ...said, tools: pinned, kept: [{ name: 's/a', hash: 'h' }] }],
  ['a server says other things about itself now', { known: { instructions: { s: 'i1' } }, now: { instructions: { s: 'i2' } } }, { ...said, tools: pinned, instructions: { s: 'i2' } }],
  ['or nothing any more', { now: { instructions: {} } }, { ...said, tools: pinned, instructions: { s: '' } }],
  ['which is told once', { known: { instructions: { s: '' } }, now: { instructions: {} } }, null],
  ['a server with the name of something that every object has says nothing', { heard: ['constructor/'], known: { instructions: { constructor: '' } } }, null],
  ['one is new and cannot be used', { now: { problems: ['Tool s/c is left out: x.'] } }, { ...said, tools: pinned, problems: ['Tool s/c is left out: x.'] }],
  ['which is told once', { known: { problems: ['Tool s/c is left out: x.'] }, now: { problems: ['Tool s/c is left out: x.'] } }, null],
])('%s', (_, over, expected) => {
  expect(changes(over)).toEqual(expected);
});

describe('a new tool whose name on the wire is taken', () => {
  const wires = (over: Over) => changes(over)?.tools.map(({ name, wire_name }) => [name, wire_name]).slice(-1)[0];

  test.each<[string, Over, string]>([
    ['by a tool of its server', { offered: [tool('s/a'), tool('s/b'), tool('s/c', 'h', 's__a')] }, 's/c'],
    ['by a tool of another server, or of the host', { pinned: [tool('s__c')], offered: [tool('s/c')] }, 's/c'],
    ['by one that is gone with the same list', { pinned: [tool('s/a.b', 'h', 's__a_b')], offered: [tool('s/a_b')] }, 's/a_b'],
    ['by one that was gone before', { known: { gone: ['s/a.b'] }, offered: [tool('s/a'), tool('s/b'), tool('s/a_b')] }, 's/a_b'],
  ])('%s gets another one, always the same', (_, over, name) => {
    const [given, wire] = wires(over)!;
    expect(given).toBe(name);
    expect(wire).toMatch(/^s__\w+_[0-9a-f]{8}$/);
    expect(wires(over)).toEqual([given, wire]);
  });

  test('has its own again when it comes back', () => {
    expect(wires({ known: { gone: ['s/c'] }, offered: [tool('s/a'), tool('s/b'), tool('s/c')] })).toEqual(['s/c', 's__c']);
  });

  test('two that are new at once never share one', () => {
    const names = changes({ pinned: [tool('s__c'), tool('s__d')], offered: [tool('s/c'), tool('s/d'), tool('s/e')] })!.tools.map(({ wire_name }) => wire_name);
    expect(new Set(names).size).toBe(5);
  });
});

describe('what goes back and forth', () => {
  test.each<[string, Over, object | null]>([
    ['a tool that has gone three times stays', { known: { times: { 's/b': 3 } }, offered: [tool('s/a')] }, null],
    ['and is offered where it was gone', { pinned: [tool('s/a')], known: { times: { 's/b': 3 } } }, { ...said, tools: [tool('s/a'), tool('s/b')] }],
    ['other words of it are told three times', { known: { times: { 's/a': 3 } }, offered: [tool('s/a', 'new'), tool('s/b')] }, null],
    ['and so are those of a server', { known: { times: { 's/': 3 } }, now: { instructions: { s: 'i9' } } }, null],
    ['others are followed as before', { known: { times: { 's/b': 3, 's/a': 2 } }, offered: [] }, { ...said, tools: [tool('s/b'), tool('own'), tool('other/x')], gone: ['s/a'] }],
  ])('%s', (_, over, expected) => {
    expect(changes(over)).toEqual(expected);
  });
});
