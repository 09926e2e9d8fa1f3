/** Finding runs by what lies in the archive alone. */
import { isId } from '@treadle/core';
import type { ArchivedRun } from '@treadle/engine';
import { indexFolder, readRunKey, readSegmentKey, removalsFolder, runsFolder, segmentsFolder, type IndexPlace } from './keys.ts';
import type { ObjectStore } from './objects.ts';

/** By one listing of all runs beside one of all removals: both are in the order of ids. Throws `ObjectsFailed`. */
export async function* allRuns(objects: ObjectStore, prefix: string): AsyncGenerator<ArchivedRun> {
  const isRemoved = removalsInOrder(objects, prefix);
  let run: ArchivedRun | null = null;
  for await (const key of objects.list(runsFolder(prefix), '')) {
    const found = readRunKey(prefix, key);
    if (found === null) continue;
    if (run !== null && run.run_id !== found.run_id && !(await isRemoved(run.run_id))) yield run;
    const before: ArchivedRun = run?.run_id === found.run_id ? run : { run_id: found.run_id, ended: false, last_seq: 0 };
    run = withObject(before, prefix, { key, name: found.name });
  }
  if (run !== null && !(await isRemoved(run.run_id))) yield run;
}

/** Segments come in the order of their first event: what leads on from the end so far belongs to the log without a gap. */
function withObject(run: ArchivedRun, prefix: string, { key, name }: { readonly key: string; readonly name: string }): ArchivedRun {
  if (name === 'run.json') return { ...run, ended: true };
  const segment = readSegmentKey(segmentsFolder(prefix, run.run_id), key);
  if (segment === null || segment.first_seq > run.last_seq + 1) return run;
  return { ...run, last_seq: Math.max(run.last_seq, segment.last_seq) };
}

/** To be asked in the order of ids. */
function removalsInOrder(objects: ObjectStore, prefix: string): (run_id: string) => Promise<boolean> {
  const folder = removalsFolder(prefix);
  const keys = objects.list(folder, '')[Symbol.asyncIterator]();
  let next: IteratorResult<string> | null = null;
  return async (run_id) => {
    const wanted = `${folder}${run_id}.json`;
    next ??= await keys.next();
    while (next.done !== true && next.value < wanted) next = await keys.next();
    return next.done !== true && next.value === wanted;
  };
}

/** Throws `ObjectsFailed`. */
export async function* indexedRuns(objects: ObjectStore, prefix: string, place: IndexPlace): AsyncGenerator<string> {
  const folder = indexFolder(prefix, place);
  for await (const key of objects.list(folder, '')) {
    const run_id = key.slice(folder.length);
    if (isId('run', run_id)) yield run_id;
  }
}
