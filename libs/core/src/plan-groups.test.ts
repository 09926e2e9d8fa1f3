import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EffectClass, ParallelClass } from './agent-spec.ts';
import { planGroups } from './plan-groups.ts';
import type { OpenCall } from './state.ts';

const tools = [
  { name: 'look', effect: 'read' as EffectClass }, { name: 'write', effect: 'once' as EffectClass, path_args: ['path'] },
  { name: 'read', effect: 'read' as EffectClass, path_args: ['path'] }, { name: 'move', effect: 'once' as EffectClass, path_args: ['from', 'to'] }, { name: 'ask', effect: 'once' as EffectClass },
];
const execution: Readonly<Record<string, ParallelClass>> = { look: 'parallel', write: 'path', read: 'path', move: 'path', ask: 'serial' };
const call = (tool_name: string, input: Record<string, unknown> = {}, index = 0): OpenCall => (
  { tool_use_id: `c${index}`, tool_name, tool_input: input, execution: execution[tool_name] ?? 'serial', invalid: null, settled: false, waiting_result: null });
/** `write:/a` names the tool and its path. */
const plan = (...calls: string[]): string => planGroups(calls.map((text, index) => {
  const [name = '', ...paths] = text.split(':');
  return call(name, name === 'move' ? { from: paths[0], to: paths[1] } : paths[0] === undefined ? {} : { path: paths[0] }, index);
}), tools).map((group) => group.map(({ tool_use_id }) => tool_use_id.slice(1)).join(' ')).join(' | ');

describe('a plan', () => {
  test.each([
    [['look', 'look', 'look'], '0 1 2', 'parallel calls run together'],
    [['look', 'ask', 'look'], '0 | 1 | 2', 'a serial one is a barrier'],
    [['write:/a', 'write:/b'], '0 1', 'writers of different paths run together'],
    [['write:/a', 'write:/a'], '0 | 1', 'writers of one path never do'],
    [['write:/a/x', 'write:/a'], '0 | 1', 'nor of a folder and what is in it'],
    [['write:/a', 'write:/a/x/y'], '0 | 1', 'either way round'],
    [['write:/ab', 'write:/a'], '0 1', 'paths are compared by parts'],
    [['write:/a/../b', 'write:/b'], '0 | 1', 'as they are meant'],
    [['write:./b', 'write:b/'], '0 | 1', 'as they are meant'],
    [['write:/A', 'write:/a'], '0 | 1', 'some file systems do not tell these apart'],
    [['write:\\a\\b', 'write:/a/b'], '0 | 1', 'nor these'],
    [['read:/a', 'read:/a'], '0 1', 'readers share a path'],
    [['read:/a', 'write:/a', 'read:/a'], '0 | 1 | 2', 'a reader waits for a writer, and a writer for a reader'],
    [['read:/a', 'write:/b', 'read:/c'], '0 1 2', 'but not for one of another path'],
    [['write:/a', 'write:/b', 'write:/a', 'write:/b'], '0 1 | 2 3', 'a later call joins the newest group'],
    [['write:/a', 'write:/a', 'write:/b'], '0 | 1 2', 'and never an older one'],
    [['write:/a', 'write'], '0 | 1', 'an unknown path is every path'],
    [['write', 'read:/a'], '0 | 1', 'either way round'],
    [['read', 'read'], '0 1', 'but nobody minds two readers'],
    [['write:/a', 'write:../x'], '0 | 1', 'a path that leads out is not known'],
    [['write:/a', 'write:/b*'], '0 | 1', 'nor is a pattern'],
    [['write:/a', 'write:~/b'], '0 | 1', 'nor a home'],
    [['write:/a', 'write:/b{1,2}'], '0 | 1', 'nor is one in braces'],
    [['write:/a', 'write:/[bc]'], '0 | 1', 'or brackets'],
    [['write:/a', 'write:%HOME%/b'], '0 | 1', 'nor a variable'],
    [['write:/a', 'write:/b/link/../c'], '0 | 1', 'nor the way up behind what may be a link'],
    [['write:/a', 'write:/b\0'], '0 | 1', 'nor one that some read only in part'],
    [['write:b', 'write:/b/'], '0 | 1', 'a slash at the end is none'],
    [['write: /a', 'write:/a\n'], '0 | 1', 'nor are blanks around it'],
    [['write://a//b', 'write:/a/b'], '0 | 1', 'nor slashes side by side'],
    [['write:/a/.', 'write:/a'], '0 | 1', 'nor a dot'],
    [['write:/caf\u00e9', 'write:/cafe\u0301'], '0 | 1', 'one letter in two forms is one letter'],
    [['write:/\u0130', 'write:/i\u0307'], '0 | 1', 'in either case'],
    [['write:/\u039f\u03a3', 'write:/\u03bf\u03c3'], '0 | 1', 'also where the end of a word is written otherwise'],
    [['write:/stra\u00dfe', 'write:/STRASSE'], '0 | 1', 'and where two letters are one'],
    [['write:/a.', 'write:/a'], '0 | 1', 'some file systems leave out a dot at the end'],
    [['write:/...', 'write:/a'], '0 1', 'but not a name of dots alone'],
    [['write:/w/a', 'write:b'], '0 | 1', 'a relative path may be any absolute one'],
    [['write:a', 'write:b'], '0 1', 'relative ones are told apart'],
    [['write:/a', 'write: '], '0 | 1', 'nor nothing'],
    [['move:/a:/b', 'write:/c'], '0 1', 'several paths of one call'],
    [['move:/a:/b', 'write:/b'], '0 | 1', 'all count'],
    [['look', 'read:/a'], '0 | 1', 'what is read without a path is not known'],
    [['write:/', 'write:/x'], '0 | 1', 'the root holds everything'],
  ])('%j: %s, %s', (calls, expected) => {
    expect(plan(...calls)).toBe(expected);
  });

  test('an address is not known, and a drive is the beginning of a path', () => {
    const with_ = (one: string, other: string) => planGroups([call('write', { path: one }, 0), call('write', { path: other }, 1)], tools).length;
    expect([with_('file:///w/a', 'b'), with_('FILE:/w/a', '/b'), with_('C:a', 'b'), with_('C:\\a', 'c:/A'), with_('C:\\a', 'C:\\b')]).toEqual([2, 2, 2, 2, 1]);
  });

  test('a list of paths names all of them; what is no text is not known', () => {
    const with_ = (path: unknown) => planGroups([call('write', { path }, 0), call('write', { path: '/b' }, 1)], tools).length;
    expect([with_(['/a', '/c']), with_(['/a', '/b']), with_([]), with_(7), with_(['/a', null])]).toEqual([1, 2, 2, 2, 2]);
  });

  test('keeps the order, loses nobody, and is the same again', () => {
    const name = fc.constantFrom(...Object.keys(execution));
    const path = fc.constantFrom('/a', '/a/b', '/b', '/a/../b', '', '/c/d');
    fc.assert(fc.property(fc.array(fc.tuple(name, path), { maxLength: 12 }), (drawn) => {
      const calls = drawn.map(([tool, where], index) => call(tool, { path: where, from: where, to: '/z' }, index));
      const groups = planGroups(calls, tools);
      expect(groups.flat()).toEqual(calls);
      expect(planGroups(calls, tools)).toEqual(groups);
      // Whoever writes a path in a group is alone with it.
      for (const group of groups) {
        const touching = group.filter((each) => each.execution === 'path').map((each) => String(each.tool_input['path']));
        const writers = group.filter((each) => each.execution === 'path' && each.tool_name !== 'read');
        for (const writer of writers) expect(touching.filter((each) => each === writer.tool_input['path'])).toHaveLength(1);
      }
    }));
  });
});
