/** The folder that a stack keeps its data in. */
import { mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** The folder cannot be made, or is something else. The message names it and says why, in a line. */
export class UnfitFolder extends Error {
  constructor(path: string, why: string) {
    super(`the folder ${path} cannot be made: ${why}`);
    this.name = 'UnfitFolder';
  }
}

/** Makes a folder and those above it, one by one: node's own recursive way never ends where the system denies that a parent is there (/proc). */
export function makeFolder(path: string): void {
  const missing = missingFolders(resolve(path));
  for (const folder of missing) {
    try {
      mkdirSync(folder);
    } catch (error) {
      const { code = 'failed' } = error as NodeJS.ErrnoException;
      // Somebody else was quicker.
      if (code !== 'EEXIST' || !isFolder(folder)) throw new UnfitFolder(path, code === 'EEXIST' ? `${folder} is no folder` : code);
    }
  }
}

/** The nearest folder above, or at, `path` that is there. */
export function nearestFolder(path: string): string {
  const outermost = missingFolders(resolve(path))[0];
  return outermost === undefined ? resolve(path) : dirname(outermost);
}

/** From the outermost one inwards. */
function missingFolders(path: string): string[] {
  const missing: string[] = [];
  for (let at = path; !isFolder(at) && at !== dirname(at); at = dirname(at)) missing.unshift(at);
  return missing;
}

/** A file in the place of a folder is for `mkdir` to complain about. */
function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
