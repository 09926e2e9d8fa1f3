/** Writing what is read back before anybody relies on it (A1). Never by ETag: what that is a hash of differs between stores. */
import { ArchiveConflict } from '@treadle/engine';
import { ObjectsFailed, type ConditionalPuts, type ObjectStore } from './objects.ts';

/** 64 MiB: the largest object the archive writes or reads. */
export const maxObjectBytes = 64 * 1024 * 1024;

/**
 * Stores bytes under a key that never changes. Where a store does not enforce `create`, the key is read first; then two
 * writers of different bytes at the very same moment can still overwrite one another, and the read-back tells one of them.
 * Throws `ArchiveConflict` where other bytes are there, `ObjectsFailed` otherwise.
 */
export async function putOnce(objects: ObjectStore, conditionalPuts: ConditionalPuts, object: { readonly key: string; readonly bytes: Uint8Array }): Promise<void> {
  const { key, bytes } = object;
  const present = conditionalPuts === 'enforced' ? null : await objects.get(key, maxObjectBytes);
  if (present === null) await objects.put(key, bytes, conditionalPuts === 'enforced' ? 'create' : 'replace');
  if (!equal(present ?? await readBack(objects, key), bytes)) throw new ArchiveConflict(key);
}

/** Stores bytes whatever was there. Throws `ObjectsFailed`. */
export async function putOver(objects: ObjectStore, key: string, bytes: Uint8Array): Promise<void> {
  await objects.put(key, bytes, 'replace');
  if (!equal(await readBack(objects, key), bytes)) throw new ObjectsFailed('unavailable', `${key} reads back as other bytes`);
}

async function readBack(objects: ObjectStore, key: string): Promise<Uint8Array> {
  const bytes = await objects.get(key, maxObjectBytes);
  if (bytes === null) throw new ObjectsFailed('unavailable', `${key} cannot be read back`);
  return bytes;
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
