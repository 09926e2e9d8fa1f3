/** What a store really does, found by doing it: headers for conditions are obeyed, refused, or silently ignored. */
import { randomUUID } from 'node:crypto';
import { assertPrefix, probeFolder } from './keys.ts';
import { ObjectsFailed, type Capabilities, type ConditionalPuts, type ObjectStore } from './objects.ts';

export interface ProbeReport extends Capabilities {
  /** The probe's key where it could not be removed: the archive itself never deletes, so that need not be allowed. */
  readonly leftover: string | null;
}

const first = Buffer.from('first\n');
const second = Buffer.from('second\n');

/**
 * Writes, writes again only where the key is new, reads, lists and removes one small object under `{prefix}probe/`. The key is
 * random, so processes that start together do not disturb one another. Throws `ObjectsFailed` where the store cannot be used.
 */
export async function probeObjects(objects: ObjectStore, prefix = ''): Promise<ProbeReport> {
  assertPrefix(prefix);
  const folder = probeFolder(prefix);
  const key = `${folder}${randomUUID()}`;
  try {
    const conditionalPuts = await probePuts(objects, key);
    await probeList(objects, folder, key);
    return { conditionalPuts, leftover: await remove(objects, key) };
  } catch (error) {
    await remove(objects, key);
    throw error;
  }
}

async function probePuts(objects: ObjectStore, key: string): Promise<ConditionalPuts> {
  if (!await putsNew(objects, key)) {
    await objects.put(key, first, 'replace');
    await expectBytes(objects, key, first);
    return 'unsupported';
  }
  await expectBytes(objects, key, first);
  const answer = await objects.put(key, second, 'create');
  const kept = Buffer.compare(await read(objects, key), first) === 0;
  return answer === 'exists' && kept ? 'enforced' : 'ignored';
}

/** False where the store refuses conditions. `exists` is a repeat by the client whose first answer was lost. */
async function putsNew(objects: ObjectStore, key: string): Promise<boolean> {
  try {
    await objects.put(key, first, 'create');
    return true;
  } catch (error) {
    if (error instanceof ObjectsFailed && error.kind === 'refused') return false;
    throw error;
  }
}

async function probeList(objects: ObjectStore, folder: string, key: string): Promise<void> {
  for await (const found of objects.list(folder, key.slice(0, -1))) {
    if (found === key) return;
  }
  throw new ObjectsFailed('refused', `${key} was written and is not listed`);
}

async function expectBytes(objects: ObjectStore, key: string, bytes: Uint8Array): Promise<void> {
  if (Buffer.compare(await read(objects, key), bytes) !== 0) throw new ObjectsFailed('refused', `${key} reads back as other bytes`);
}

async function read(objects: ObjectStore, key: string): Promise<Uint8Array> {
  const bytes = await objects.get(key, 64);
  if (bytes === null) throw new ObjectsFailed('refused', `${key} was written and cannot be read`);
  return bytes;
}

async function remove(objects: ObjectStore, key: string): Promise<string | null> {
  try {
    await objects.delete(key);
    return await objects.get(key, 64) === null ? null : key;
  } catch {
    return key;
  }
}
