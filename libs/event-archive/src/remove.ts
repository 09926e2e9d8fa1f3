/**
 * Removing a run for good.
 *
 * 1  The removal is written and read back before anything is removed, and never removed itself.
 * 2  The document goes first: what is left after an interruption is no run that anybody is shown.
 * 3  Whatever is there is removed, whoever put it; a listing at the end says that nothing is left.
 */
import type { Removal } from '@treadle/engine';
import { indexKey, removalKey, runFolder, runKey } from './keys.ts';
import { ObjectsFailed, type ObjectStore } from './objects.ts';
import { putOver } from './put.ts';

const atOnce = 8;
const maxRemovalBytes = 4096;

/** Null unless there is one. Throws `ObjectsFailed`. */
export async function readRemoval(objects: ObjectStore, prefix: string, run_id: string): Promise<Removal | null> {
  const key = removalKey(prefix, run_id);
  const bytes = await objects.get(key, maxRemovalBytes);
  if (bytes === null) return null;
  try {
    const { tenant, deleted_at } = JSON.parse(Buffer.from(bytes).toString()) as Removal;
    return { run_id, tenant, deleted_at };
  } catch {
    throw new ObjectsFailed('refused', `${key} is damaged`);
  }
}

/** Throws `ObjectsFailed`; asking again goes on. */
export async function removeRun(objects: ObjectStore, prefix: string, removal: Removal): Promise<void> {
  const { run_id, tenant, deleted_at } = removal;
  // The first one stands: when a run was deleted does not change because its removal had to be finished.
  if (await readRemoval(objects, prefix, run_id) === null) await putOver(objects, removalKey(prefix, run_id), Buffer.from(JSON.stringify({ run_id, tenant, deleted_at })));
  await objects.delete(runKey(prefix, run_id));
  await objects.delete(indexKey(prefix, tenant, run_id));
  const folder = runFolder(prefix, run_id);
  const keys: string[] = [];
  for await (const key of objects.list(folder, '')) keys.push(key);
  const hand = async (): Promise<void> => {
    for (let key = keys.pop(); key !== undefined; key = keys.pop()) await objects.delete(key);
  };
  await Promise.all(Array.from({ length: atOnce }, hand));
  for await (const key of objects.list(folder, '')) throw new ObjectsFailed('unavailable', `${key} was removed and is listed`);
}
