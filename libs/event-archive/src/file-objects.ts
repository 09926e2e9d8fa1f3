/**
 * Objects as files below one directory, for a machine that has no bucket.
 *
 * It owns the directory: objects under their keys, and `.tmp/` for what is being written.
 *
 * 1  A file appears under its key whole and already on the disk: written and synced in `.tmp/`, then linked (create) or renamed
 *    (replace) to its name. A crash leaves nothing but a file in `.tmp/`, which nobody reads.
 * 2  `put` answers after the directories that lead to the file are on the disk, too.
 * 3  No key leads out of the directory: see `assertKey`; parts that begin with a dot are refused here besides.
 */
import { randomUUID } from 'node:crypto';
import { constants, type Dirent } from 'node:fs';
import { link, mkdir, open, readdir, rename, rm, rmdir, stat, type FileHandle } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { assertKey } from './keys.ts';
import { ObjectsFailed, type ObjectStore, type PutMode } from './objects.ts';

/** What a crash left in `.tmp/` goes after an hour: by then no writer can still be at it. */
const leftoverAgeMs = 60 * 60 * 1000;

/** The directory is made when it is first written to. It needs a file system with hard links. */
export function createFileObjects(directory: string): ObjectStore {
  const root = resolve(directory);
  const tmp = join(root, '.tmp');
  let prepared: Promise<void> | null = null;

  /** Once per store; a failure is tried again by the next put. */
  function prepare(): Promise<void> {
    prepared ??= prepareTmp(tmp).catch((error: unknown) => {
      prepared = null;
      throw error;
    });
    return prepared;
  }

  return {
    capabilities: { conditionalPuts: 'enforced' },

    put: (key, bytes, mode) => naming('PUT', key, async () => {
      const path = pathOf(root, key);
      await prepare();
      const draft = join(tmp, randomUUID());
      try {
        await writeSynced(draft, bytes);
        const answer = await place(draft, path, mode);
        await syncDirectories(root, dirname(path));
        return answer;
      } finally {
        await rm(draft, { force: true });
      }
    }),

    get: (key, maxBytes) => naming('GET', key, () => read(pathOf(root, key), maxBytes)),

    async *list(prefix, afterKey) {
      const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1);
      if (folder !== '') pathOf(root, folder.slice(0, -1));
      yield* walk({ root, prefix, afterKey }, folder);
    },

    delete: (key) => naming('DELETE', key, async () => {
      const path = pathOf(root, key);
      try {
        await rm(path);
      } catch (error) {
        if (!isMissing(error)) throw error;
        return;
      }
      await removeEmpty(root, dirname(path));
    }),

    close() {},
  };
}

async function prepareTmp(tmp: string): Promise<void> {
  await makeFolder(tmp);
  for (const name of await readdir(tmp)) {
    const path = join(tmp, name);
    const found = await stat(path).catch(() => null);
    if (found !== null && Date.now() - found.mtimeMs > leftoverAgeMs) await rm(path, { force: true });
  }
}

async function writeSynced(path: string, bytes: Uint8Array): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Again where somebody who removed the last object of a folder removed the folder, too, before this one was in it. */
async function place(draft: string, path: string, mode: PutMode): Promise<'stored' | 'exists'> {
  for (let left = 5; ; left--) {
    try {
      await makeFolder(dirname(path));
      return await reveal(draft, path, mode);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT' || left === 0) throw error;
    }
  }
}

/** Folders one by one, from the outermost that is missing: node's own recursive way never ends where the system denies that a parent is there (/proc). */
async function makeFolder(path: string): Promise<void> {
  const missing: string[] = [];
  for (let at = path; !await isFolder(at) && at !== dirname(at); at = dirname(at)) missing.unshift(at);
  for (const folder of missing) {
    try {
      await mkdir(folder);
    } catch (error) {
      // Somebody else was quicker.
      if (codeOf(error) !== 'EEXIST') throw error;
    }
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then((found) => found.isDirectory(), () => false);
}

/** The folder on the disk without the file that was in it; a folder that is empty now goes, and so those above it. */
async function removeEmpty(root: string, folder: string): Promise<void> {
  for (let at = folder; at !== root && at !== dirname(at); at = dirname(at)) {
    try {
      await rmdir(at);
    } catch (error) {
      // Not empty, or in use: then it stays, and its present content is what has to be on the disk. Somebody else may take it meanwhile.
      if (!isMissing(error) && await syncIfThere(at)) return;
    }
  }
  await syncDirectory(root);
}

async function reveal(draft: string, path: string, mode: PutMode): Promise<'stored' | 'exists'> {
  if (mode === 'replace') {
    await rename(draft, path);
    return 'stored';
  }
  try {
    await link(draft, path);
    return 'stored';
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return 'exists';
    throw error;
  }
}

/** From the file's directory up to the root: any of them may have been made a moment ago, by whichever process. */
async function syncDirectories(root: string, directory: string): Promise<void> {
  for (let at = directory; ; at = dirname(at)) {
    // A folder that is gone was emptied by somebody who removed this very object.
    await syncIfThere(at);
    if (at === root || at === dirname(at)) return;
  }
}

/** False where there is no such folder (any more). */
async function syncIfThere(path: string): Promise<boolean> {
  try {
    await syncDirectory(path);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function read(path: string, maxBytes: number): Promise<Uint8Array | null> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
  try {
    const { size } = await file.stat();
    if (size > maxBytes) throw new ObjectsFailed('refused', `an object of ${size} bytes, more than ${maxBytes}`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

interface Walk { readonly root: string; readonly prefix: string; readonly afterKey: string }

/** In the order of the keys' bytes: a directory sorts as its name with a slash does. */
async function* walk(of: Walk, folder: string): AsyncGenerator<string> {
  for (const name of await namesIn(of.root, folder)) {
    const key = `${folder}${name}`;
    const mayHold = key.startsWith(of.prefix) || of.prefix.startsWith(key);
    if (!mayHold) continue;
    if (name.endsWith('/')) {
      if (key > of.afterKey || of.afterKey.startsWith(key)) yield* walk(of, key);
    } else if (key > of.afterKey && key.startsWith(of.prefix)) yield key;
  }
}

async function namesIn(root: string, folder: string): Promise<readonly string[]> {
  return naming('LIST', folder, async () => {
    let entries: Dirent[];
    try {
      entries = await readdir(join(root, folder), { withFileTypes: true });
    } catch (error) {
      if (isMissing(error)) return [];
      throw error;
    }
    const names = entries.filter((entry) => !entry.name.startsWith('.')).map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name));
    return names.sort((a, b) => (a < b ? -1 : 1));
  });
}

function pathOf(root: string, key: string): string {
  assertKey(key);
  if (key.split('/').some((part) => part.startsWith('.'))) throw new ObjectsFailed('refused', 'a key with a part that begins with a dot');
  return join(root, key);
}

/** Conditions that pass by themselves or by an operator's broom; everything else is refused. */
const passing = new Set(['EAGAIN', 'EBUSY', 'EDQUOT', 'EINTR', 'EIO', 'EMFILE', 'ENFILE', 'ENOSPC', 'ESTALE', 'ETIMEDOUT']);

async function naming<T>(operation: string, key: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof ObjectsFailed) throw error;
    const code = codeOf(error);
    throw new ObjectsFailed(passing.has(code) ? 'unavailable' : 'refused', `${operation} ${key}: ${code}`);
  }
}

function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(codeOf(error));
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'failed';
}
