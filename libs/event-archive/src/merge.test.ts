import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ArchiveConflict } from '@treadle/engine';
import { archivedEvents, archivedSegment, freshRunId } from '@treadle/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createArchive, createFileObjects, ObjectsFailed, type ObjectStore } from './index.ts';
import { segmentKey, segmentsFolder } from './keys.ts';
import { mergeSegments } from './merge.ts';
import { encodeSegment } from './segment.ts';

let directory: string;
let objects: ObjectStore;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'treadle-merge-'));
  objects = createFileObjects(directory);
});
afterEach(() => rm(directory, { recursive: true, force: true }));

type Range = readonly [first_seq: number, last_seq: number];

async function store(run_id: string, ranges: readonly Range[], text?: string): Promise<void> {
  for (const [first, last] of ranges) {
    const segment = archivedSegment(run_id, first, last, text);
    await objects.put(segmentKey('', segment), encodeSegment(segment), 'replace');
  }
}

async function ranges(run_id: string): Promise<Range[]> {
  const found: Range[] = [];
  const folder = segmentsFolder('', run_id);
  for await (const key of objects.list(folder, '')) {
    const [first, last] = key.slice(folder.length, -'.jsonl'.length).split('-').map(Number);
    found.push([first!, last!]);
  }
  return found;
}

const log = (run_id: string) => createArchive(objects).events(run_id, 0, 1000);
const merge = (run_id: string, on: ObjectStore = objects, maxBytes = 8 * 1024 * 1024) => mergeSegments(on, { prefix: '', run_id, conditionalPuts: 'enforced', maxBytes });

/** The store under which the `at`th call that writes fails: before it happens, or after it has. */
function failing(at: number, when: 'before' | 'after'): ObjectStore {
  let calls = 0;
  const strike = async <T>(act: () => Promise<T>): Promise<T> => {
    const struck = ++calls === at;
    if (struck && when === 'before') throw new ObjectsFailed('unavailable', 'planned');
    const answer = await act();
    if (struck) throw new ObjectsFailed('unavailable', 'planned');
    return answer;
  };
  return { ...objects, put: (key, bytes, mode) => strike(() => objects.put(key, bytes, mode)), get: (key, most) => strike(() => objects.get(key, most)), delete: (key) => strike(() => objects.delete(key)) };
}

describe('merging segments', () => {
  it('goes on where somebody else merges the same run meanwhile, and gives up where parts vanish for ever', async () => {
    const run_id = freshRunId();
    await store(run_id, [[1, 3], [4, 4], [5, 9]]);
    let other: Promise<void> | null = null;
    await merge(run_id, { ...objects, get: async (key, most) => {
      await (other ??= merge(run_id));
      return objects.get(key, most);
    } });
    expect(await ranges(run_id)).toEqual([[1, 9]]);
    await store(run_id, [[10, 11]]);
    await expect(merge(run_id, { ...objects, get: async () => null })).rejects.toThrow('vanish');
  });

  it('makes one of many, with the same lines', async () => {
    const run_id = freshRunId();
    await store(run_id, [[1, 3], [4, 4], [5, 9]]);
    await merge(run_id);
    expect(await ranges(run_id)).toEqual([[1, 9]]);
    expect(await log(run_id)).toEqual(archivedEvents(run_id, 1, 9));
    await merge(run_id);
    expect(await ranges(run_id)).toEqual([[1, 9]]);
  });

  it('leaves a single segment alone, and a run without any', async () => {
    const run_id = freshRunId();
    await merge(run_id);
    await store(run_id, [[1, 3]]);
    await merge(run_id, failing(1, 'before'));
    expect(await ranges(run_id)).toEqual([[1, 3]]);
  });

  it('keeps to the size of a segment; what is larger alone stays as it is', async () => {
    const run_id = freshRunId();
    const one = encodeSegment(archivedSegment(run_id, 1, 1)).length;
    await store(run_id, [[1, 1], [2, 2], [3, 3], [4, 8], [9, 9]]);
    await merge(run_id, objects, 2 * one + 1);
    expect(await ranges(run_id)).toEqual([[1, 2], [3, 3], [4, 8], [9, 9]]);
    expect(await log(run_id)).toEqual(archivedEvents(run_id, 1, 9));
  });

  it('goes on from what an interrupted merge has left, wherever that stopped', async () => {
    let at = 0;
    for (let done = false; !done; at++) {
      for (const when of ['before', 'after'] as const) {
        const run_id = freshRunId();
        await store(run_id, [[1, 2], [3, 3], [4, 6], [7, 8]]);
        done = await merge(run_id, failing(at + 1, when)).then(() => true, () => false);
        expect(await log(run_id)).toEqual(archivedEvents(run_id, 1, 8));
        await merge(run_id);
        expect(await ranges(run_id)).toEqual([[1, 8]]);
        expect(await log(run_id)).toEqual(archivedEvents(run_id, 1, 8));
      }
    }
    // Four reads, a put and its read-back, four deletes.
    expect(at - 1).toBe(10);
  });

  it('makes one of segments that overlap', async () => {
    const run_id = freshRunId();
    await store(run_id, [[1, 4], [2, 3], [3, 6], [6, 6], [7, 8]]);
    await merge(run_id);
    expect(await ranges(run_id)).toEqual([[1, 8]]);
    expect(await log(run_id)).toEqual(archivedEvents(run_id, 1, 8));
  });

  it.each([['an overlapping segment', [3, 6] as Range], ['a part that should have been deleted', [2, 3] as Range], ['the merged one', [1, 5] as Range]])('deletes nothing where %s tells another history', async (_what, other) => {
    const run_id = freshRunId();
    await store(run_id, [[1, 4], [5, 5]]);
    await store(run_id, [other], 'another history');
    const before = await ranges(run_id);
    await expect(merge(run_id)).rejects.toThrow(ArchiveConflict);
    expect((await ranges(run_id)).filter(([first, last]) => before.some((range) => range[0] === first && range[1] === last))).toEqual(before);
  });

  it('deletes nothing where the log has a gap', async () => {
    const run_id = freshRunId();
    await store(run_id, [[1, 2], [4, 5]]);
    await expect(merge(run_id)).rejects.toMatchObject({ kind: 'refused' });
    await store(run_id, [[3, 3]]);
    await merge(run_id);
    expect(await ranges(run_id)).toEqual([[1, 5]]);
  });

  it('is harmless while others read, and while another merges', async () => {
    const run_id = freshRunId();
    await store(run_id, Array.from({ length: 30 }, (_, index) => [index * 3 + 1, index * 3 + 3] as const));
    const merging = Promise.allSettled([merge(run_id), merge(run_id)]);
    for (let round = 0; round < 20; round++) expect(await log(run_id)).toEqual(archivedEvents(run_id, 1, 90));
    await merging;
    await merge(run_id);
    expect(await ranges(run_id)).toEqual([[1, 90]]);
  });
});
