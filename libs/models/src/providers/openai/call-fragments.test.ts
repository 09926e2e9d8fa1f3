import { describe, expect, it } from 'vitest';
import { createCallFragments } from './call-fragments.ts';

/** Each delta is the list of fragments that one chunk brings. */
function assembled(...deltas: readonly (readonly unknown[])[]) {
  const fragments = createCallFragments();
  for (const delta of deltas) fragments.take(delta);
  return fragments.calls();
}

const part = (index: number | undefined, id: string | undefined, name: string | undefined, args?: unknown) => ({
  ...(index === undefined ? {} : { index }), ...(id === undefined ? {} : { id }), function: { ...(name === undefined ? {} : { name }), ...(args === undefined ? {} : { arguments: args }) },
});

describe('fragments of calls', () => {
  it('are put together by their index, also where they alternate', () => {
    expect(assembled([part(0, 'A', 'save', '')], [part(1, 'B', 'load', '')], [part(0, undefined, undefined, '{"p":')], [part(1, undefined, undefined, '{}')], [part(0, undefined, undefined, '"a"}')])).toEqual([
      { id: 'A', name: 'save', args: '{"p":"a"}' }, { id: 'B', name: 'load', args: '{}' },
    ]);
  });

  it('C12: with index 0 on every one are told apart by their ids', () => {
    expect(assembled([part(0, 'A', 'save', '{"p":"a"}')], [part(0, 'B', 'save', '{"p":"b"}')])).toEqual([
      { id: 'A', name: 'save', args: '{"p":"a"}' }, { id: 'B', name: 'save', args: '{"p":"b"}' },
    ]);
    expect(assembled([part(0, 'A', 'save', '')], [part(0, undefined, undefined, '{"p":"a"}')], [part(0, 'B', 'save', '')], [part(0, undefined, undefined, '{"p":"b"}')])).toEqual([
      { id: 'A', name: 'save', args: '{"p":"a"}' }, { id: 'B', name: 'save', args: '{"p":"b"}' },
    ]);
  });

  it('C12: with an id of its own on every fragment are one, as long as it is not whole', () => {
    expect(assembled([part(0, 'a1', 'save', '')], [part(0, 'a2', undefined, '{"p":')], [part(0, 'a3', undefined, '1}')])).toEqual([{ id: 'a1', name: 'save', args: '{"p":1}' }]);
    expect(assembled([part(0, 'a', 'save', '{"p":1}')], [part(0, 'b', undefined, '{"p":2}')])).toHaveLength(2);
  });

  it('C12: that take turns under one index are put together by their ids', () => {
    const turns = (index: number | undefined) => assembled([part(index, 'A', 'save', '{"p"')], [part(index, 'B', 'save', '{"q"')], [part(index, 'A', undefined, ':1}')], [part(index, 'B', undefined, ':2}')]);
    for (const index of [0, undefined]) expect(turns(index)).toEqual([{ id: 'A', name: 'save', args: '{"p":1}' }, { id: 'B', name: 'save', args: '{"q":2}' }]);
  });

  it('are counted in text, too', () => {
    const counted = (index: string, args: string, id?: string) => ({ index, ...(id === undefined ? {} : { id }), function: { ...(id === undefined ? {} : { name: 'save' }), arguments: args } });
    expect(assembled([counted('0', '{"p":', 'A'), counted('1', '{"q":', 'B')], [counted('0', '1}')], [counted('1', '2}')]).map(({ args }) => args)).toEqual(['{"p":1}', '{"q":2}']);
  });

  it('behind an empty object that only held their place are what the call has', () => {
    expect(assembled([part(0, 'A', 'save', '{}')], [part(0, undefined, undefined, '{"p"')], [part(0, undefined, undefined, ':1}')])).toEqual([{ id: 'A', name: 'save', args: '{"p":1}' }]);
  });

  it('behind such an object may repeat name and id', () => {
    expect(assembled([part(0, 'A', 'save', '{}')], [part(0, 'A', 'save', '{"p"')], [part(0, 'A', 'save', ':1}')])).toEqual([{ id: 'A', name: 'save', args: '{"p":1}' }]);
  });

  it.each([['x', 'append'], [undefined, 'append'], [undefined, 'prepend']])('C09, C12: in pieces, with one index and one id (%s), are told apart by their beginnings', (id, second) => {
    for (const index of [0, undefined]) {
      const two = [{ id: id ?? '', name: 'append', args: '{"v":1}' }, { id: id ?? '', name: second, args: '{"v":2}' }];
      const piece = (args: string) => [part(index, undefined, undefined, args)];
      expect(assembled([part(index, id, 'append', '{"v":')], piece('1}'), [part(index, id, second, '{"v":')], piece('2}'))).toEqual(two);
      expect(assembled([part(index, id, 'append', '')], piece('{"v":'), piece('1}'), [part(index, id, second, '')], piece('{"v":'), piece('2}'))).toEqual(two);
      expect(assembled([part(index, id, 'append')], piece('{"v":1}'), [part(index, id, second)], piece('{"v":2}'))).toEqual(two);
    }
  });

  it('C19: with the name once more behind all are one', () => {
    expect(assembled([part(0, 'A', 'save', '')], [part(0, undefined, undefined, '{"k":1}')], [part(0, 'A', 'save', '')])).toEqual([{ id: 'A', name: 'save', args: '{"k":1}' }]);
  });

  it('C09, C12: with one index and one id (or none) are told apart by what is whole', () => {
    for (const id of ['x', undefined]) {
      expect(assembled([part(0, id, 'append', '{"v":1}')], [part(0, id, 'append', '{"v":2}')]).map((call) => call.args)).toEqual(['{"v":1}', '{"v":2}']);
    }
  });

  it('C12: are told apart by ids that are numbers, too', () => {
    const counted = (id: number) => ({ index: 0, id, function: { name: 'append', arguments: '{"v":1}' } });
    expect(assembled([counted(0)], [counted(1)])).toEqual([{ id: '0', name: 'append', args: '{"v":1}' }, { id: '1', name: 'append', args: '{"v":1}' }]);
  });

  it('C09: with one id and two indices are two', () => {
    expect(assembled([part(0, 'x', 'append', '{"v":1}'), part(1, 'x', 'append', '{"v":2}')])).toEqual([{ id: 'x', name: 'append', args: '{"v":1}' }, { id: 'x', name: 'append', args: '{"v":2}' }]);
  });

  it('without an index go by id, by place, or to the last call', () => {
    expect(assembled([part(undefined, 'A', 'save', '{"p":')], [part(undefined, undefined, undefined, '"a"}')], [part(undefined, 'B', 'load', '{')], [part(undefined, 'B', undefined, '}')])).toEqual([
      { id: 'A', name: 'save', args: '{"p":"a"}' }, { id: 'B', name: 'load', args: '{}' },
    ]);
    expect(assembled([part(undefined, undefined, 'save', '{"p":"a"}'), part(undefined, undefined, 'load', '{}')])).toEqual([
      { id: '', name: 'save', args: '{"p":"a"}' }, { id: '', name: 'load', args: '{}' },
    ]);
  });

  it('C18: may bring the arguments as an object', () => {
    expect(assembled([part(0, 'A', 'bash', { command: 'date' })])).toEqual([{ id: 'A', name: 'bash', args: { command: 'date' } }]);
    expect(assembled([part(0, 'A', 'bash', { command: 'date' })], [part(0, 'A', 'bash', { command: 'date' })])).toHaveLength(1);
    expect(assembled([part(0, 'A', 'bash', { command: 'a' })], [part(0, 'B', 'bash', { command: 'b' })])).toHaveLength(2);
  });

  it('C19: may repeat name, id and all so far', () => {
    const once = [{ id: 'A', name: 'save', args: '{"k":1}' }];
    expect(assembled([part(0, 'A', 'save', '{"k":')], [part(0, 'A', 'save', '{"k":1}')], [part(0, 'A', 'save', '{"k":1}')])).toEqual(once);
    expect(assembled([part(0, 'A', 'save', '{"k":')], [part(0, undefined, 'save', '1}')], [part(0, undefined, 'save', '{"k":1}')])).toEqual(once);
    expect(assembled([part(undefined, undefined, 'save', '{"k":')], [part(undefined, undefined, 'save', '{"k":1}')])).toEqual([{ ...once[0], id: '' }]);
  });

  it('that only look repeated are pieces', () => {
    expect(assembled([part(0, 'A', 'save', '{"k":"')], [part(0, undefined, undefined, 'aa')], [part(0, undefined, undefined, 'aa')], [part(0, undefined, undefined, '"}')])[0]?.args).toBe('{"k":"aaaa"}');
    expect(assembled([part(0, 'A', 'save', '1')], [part(0, undefined, undefined, '1')])[0]?.args).toBe('11');
    expect(assembled([part(0, 'A', 'save', '{"')], [part(0, undefined, undefined, '{":1}')])[0]?.args).toBe('{"{":1}');
  });

  it('may bring the name in pieces, before the arguments', () => {
    expect(assembled([part(0, 'A', 'files__', '')], [part(0, undefined, 'save', '')], [part(0, undefined, undefined, '{}')])[0]).toMatchObject({ name: 'files__save', args: '{}' });
  });

  it('keep what never became JSON as it came', () => {
    expect(assembled([part(0, 'A', 'save', '{"path":"a.txt"')], [part(0, undefined, undefined, ',"text":"hel')])[0]?.args).toBe('{"path":"a.txt","text":"hel');
  });

  it('that are no fragments make a call that nobody can take, not an error', () => {
    for (const junk of [[{}], [7, null, 'x']]) expect(assembled(junk)).toEqual([{ id: '', name: '', args: '' }]);
  });
});
