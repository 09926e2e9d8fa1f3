/**
 * Keeps the paths that a call names inside folders: a boundary in the host, whatever the tool itself checks. Links are resolved first, of a
 * path that is not there yet those of the folders that are. What is linked anew between this look and the tool's own is not seen: where
 * others can write in the roots, the tool must check too.
 *
 * A tool may read a path in other ways than the system does: without the blanks around it, with `\` for `/`. Each reading must lie inside;
 * what stands for another place altogether (a home, an address with a scheme) is refused.
 */
import { readlink, realpath } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';

export interface Bounds {
  /** The arguments that name paths: a text, or a list of texts. */
  readonly path_args: readonly string[];
  /** Folders; relative ones, as relative paths, count from the worker's own folder. */
  readonly roots: readonly string[];
}

/** Why a call may not be made; null where every path that it names lies inside. Never rejects. */
export async function outsideRoots({ path_args, roots }: Bounds, input: Readonly<Record<string, unknown>>): Promise<string | null> {
  const inside = await Promise.all(roots.map((root) => resolved(root)));
  for (const argument of path_args) {
    const value = Object.hasOwn(input, argument) ? input[argument] : undefined;
    for (const path of value === undefined ? [] : Array.isArray(value) ? value as unknown[] : [value]) {
      if (typeof path !== 'string' || path.includes('\0')) return `The argument ${argument} must be a path.`;
      if (/^\s*(~|(?![A-Za-z]:[\\/])[A-Za-z][A-Za-z0-9+.-]*:)/.test(path)) return `The path ${path} must be given in full: no home, no scheme.`;
      const places = await Promise.all([...new Set([path, path.trim(), path.trim().replaceAll('\\', '/')])].map((reading) => resolved(reading)));
      if (!places.every((where) => where !== null && inside.some((root) => root !== null && contains(root, where)))) return `The path ${path} is outside of what this tool may touch.`;
    }
  }
  return null;
}

function contains(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === '' || (way !== '..' && !way.startsWith(`..${sep}`) && resolve(root, way) === path);
}

/** Links that lead to nowhere, one behind the other. */
const mostLinks = 16;

/** Without links; null where it cannot be found out. A link to what is not there yet counts as that place: whoever writes through it makes it. */
async function resolved(path: string, links = mostLinks): Promise<string | null> {
  const absolute = resolve(path);
  try {
    return await realpath(absolute);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const parent = dirname(absolute);
    if ((code !== 'ENOENT' && code !== 'ENOTDIR') || parent === absolute || links === 0) return null;
    const above = await resolved(parent, links);
    if (above === null) return null;
    const place = join(above, basename(absolute));
    const target = await readlink(place).catch(() => null);
    return target === null ? place : resolved(resolve(above, target), links - 1);
  }
}
