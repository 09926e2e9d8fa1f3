import type { ToolDefinition } from '@treadle/core';
import { expect, test } from 'vitest';
import { toolChanges, type Compared } from './changes.ts';

const tool = (name: string, hash = 'h', wire_name = name.replace('/', '__')): ToolDefinition => (
  { name, wire_name, description: hash, input_schema: { type: 'object' }, effect: 'read', parallel: 'parallel', timeout_ms: 1, hash });
const pinned = [tool('s/a'), tool('s/b'), tool('own'), tool('other/x')];
const changes = (over: Partial<Compared>) => toolChanges({ pinned, offered: [tool('s/a'), tool('s/b')], heard: ['s/'], kept: {}, instructed: { before: { s: 'i1', other: 'o1' }, now: { s: 'i1' } }, ...over });

test.each<[string, Partial<Compared>, object | null]>([
  ['all as it was', {}, null],
  ['another order', { offered: [tool('s/b'), tool('s/a')] }, null],
  ['a server that nobody asked has lost nothing', { offered: [], heard: [] }, null],
  ['one is gone', { offered: [tool('s/a')] }, { tools: [tool('s/a'), tool('own'), tool('other/x')], gone: ['s/b'], kept: [] }],
  ['one is new', { offered: [tool('s/a'), tool('s/b'), tool('s/c')] }, { tools: [...pinned, tool('s/c')], gone: [], kept: [] }],
  ['one is described otherwise, and stays as it was', { offered: [tool('s/a', 'new'), tool('s/b')] }, { tools: pinned, gone: [], kept: [{ name: 's/a', hash: 'new' }] }],
  ['which is told once', { offered: [tool('s/a', 'new'), tool('s/b')], kept: { 's/a': 'new' } }, null],
  ['and again when it changes again', { offered: [tool('s/a', 'newer'), tool('s/b')], kept: { 's/a': 'new' } }, { tools: pinned, gone: [], kept: [{ name: 's/a', hash: 'newer' }] }],
  ['and when it is as before', { kept: { 's/a': 'new' } }, { tools: pinned, gone: [], kept: [{ name: 's/a', hash: 'h' }] }],
  ['a server says other things about itself now', { instructed: { before: { s: 'i1' }, now: { s: 'i2' } } }, { tools: pinned, gone: [], kept: [], instructions: { s: 'i2' } }],
  ['or nothing any more', { instructed: { before: { s: 'i1' }, now: {} } }, { tools: pinned, gone: [], kept: [], instructions: { s: '' } }],
  ['which is told once', { instructed: { before: { s: '' }, now: {} } }, null],
  ['a new one whose wire name is taken stays out', { offered: [tool('s/a'), tool('s/b'), tool('s/c', 'h', 's__a')] }, null],
])('%s', (_, over, expected) => {
  expect(changes(over)).toEqual(expected);
});
