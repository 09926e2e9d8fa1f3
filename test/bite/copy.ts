/** A copy of the source tree whose workspaces import one another inside the copy, and packages from where they are installed. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Files that git knows, or would; with what is not committed yet. */
export function copyOf(root: string): string {
  const copy = realpathSync(mkdtempSync(join(tmpdir(), 'treadle-bite-')));
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 });
  for (const file of files.split('\0')) {
    if (file === '' || !existsSync(join(root, file))) continue;
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(join(root, file), join(copy, file));
  }
  for (const modules of globSync(['node_modules', '{apps,libs}/*/node_modules', 'test/node_modules'], { cwd: root })) link(join(root, modules), join(copy, modules));
  return copy;
}

/** The folder is the copy's own, since tools write caches into it. */
function link(from: string, to: string): void {
  mkdirSync(to);
  for (const entry of readdirSync(from)) {
    if (entry === '@treadle') cpSync(join(from, entry), join(to, entry), { recursive: true, verbatimSymlinks: true });
    else if (!entry.startsWith('.')) symlinkSync(join(from, entry), join(to, entry));
  }
}
