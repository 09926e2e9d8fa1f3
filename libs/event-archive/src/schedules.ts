/** Schedules in the archive: a folder for each, with its newest version, or with the word that it was removed. */
import type { ArchivedSchedule } from '@treadle/engine';
import { readScheduleKey, scheduleFolder, scheduleKey, scheduleRemovalKey, schedulesFolder } from './keys.ts';
import { ObjectsFailed, type ObjectStore } from './objects.ts';
import { maxObjectBytes, putOver } from './put.ts';

/** Throws `ObjectsFailed`, as every call here does. */
export async function putSchedule(objects: ObjectStore, prefix: string, { id, version, document }: ArchivedSchedule): Promise<void> {
  const key = scheduleKey(prefix, id, version);
  await putOver(objects, key, Buffer.from(document));
  await deleteBefore(objects, scheduleFolder(prefix, id), key);
}

/** The removal is there before anything is removed, and is never removed itself. */
export async function removeSchedule(objects: ObjectStore, prefix: string, { id, tenant, deleted_at }: { readonly id: string; readonly tenant: string; readonly deleted_at: string }): Promise<void> {
  const key = scheduleRemovalKey(prefix, id);
  await putOver(objects, key, Buffer.from(JSON.stringify({ id, tenant, deleted_at })));
  // Digits sort before letters.
  await deleteBefore(objects, scheduleFolder(prefix, id), key);
}

async function deleteBefore(objects: ObjectStore, folder: string, key: string): Promise<void> {
  const older: string[] = [];
  for await (const each of objects.list(folder, '')) if (each < key) older.push(each);
  for (const each of older) await objects.delete(each);
}

/** The newest version of each that was not removed, in the order of ids. */
export async function* allSchedules(objects: ObjectStore, prefix: string): AsyncGenerator<ArchivedSchedule> {
  let newest: { id: string; version: number | null } | null = null;
  for await (const key of objects.list(schedulesFolder(prefix), '')) {
    const found = readScheduleKey(prefix, key);
    if (found === null) continue;
    if (newest !== null && newest.id !== found.id) yield* read(objects, prefix, newest);
    // In the order of keys, a removal comes last.
    newest = found;
  }
  if (newest !== null) yield* read(objects, prefix, newest);
}

async function* read(objects: ObjectStore, prefix: string, { id, version }: { readonly id: string; readonly version: number | null }): AsyncGenerator<ArchivedSchedule> {
  if (version === null) return;
  const key = scheduleKey(prefix, id, version);
  const bytes = await objects.get(key, maxObjectBytes);
  // Overtaken between the listing and now: whoever reads a living archive asks again.
  if (bytes === null) throw new ObjectsFailed('unavailable', `${key} was listed and is gone`);
  yield { id, version, document: Buffer.from(bytes).toString() };
}
