import { describe, expect, it } from 'vitest';
import { createSegmentCache } from './segment-cache.ts';

function stage(maxChars: number) {
  const cache = createSegmentCache(maxChars);
  const read: string[] = [];
  const ask = (key: string, lines: readonly string[] | null = ['xxxx']) => cache.lines(key, () => {
    read.push(key);
    return Promise.resolve(lines);
  });
  return { cache, read, ask };
}

describe('a cache of segments', () => {
  it('reads what it knows once, and forgets what was used longest ago', async () => {
    const { read, ask } = stage(8);
    for (const key of ['a', 'b', 'a', 'c', 'a', 'b']) expect(await ask(key)).toEqual(['xxxx']);
    expect(read).toEqual(['a', 'b', 'c', 'b']);
  });

  it('remembers neither what is not there, nor failures, nor what is larger than all of it', async () => {
    const { cache, read, ask } = stage(8);
    expect([await ask('gone', null), await ask('gone', null)]).toEqual([null, null]);
    await expect(cache.lines('bad', () => Promise.reject(new Error('planned')))).rejects.toThrow('planned');
    expect(await ask('bad')).toEqual(['xxxx']);
    for (let times = 0; times < 2; times++) await ask('large', ['x'.repeat(9)]);
    expect(read).toEqual(['gone', 'gone', 'bad', 'large', 'large']);
  });

  it('lets readers at the same time share one read', async () => {
    const { read, ask } = stage(8);
    await Promise.all([ask('a'), ask('a'), ask('a')]);
    expect(read).toEqual(['a']);
  });
});
