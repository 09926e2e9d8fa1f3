/**
 * Adds golden logs: `node test/golden/add.ts FILE…`. A log that is there already is refused: what was written once must fold the same
 * for ever, and a fold that must change is a new event form with a lift (libs/core/src/codec.ts), not a new hash.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { foldedHashes, type FoldedHashes } from './fold.ts';

const folder = import.meta.dirname;
const hashesFile = join(folder, 'folded.json');
const hashes = existsSync(hashesFile) ? JSON.parse(readFileSync(hashesFile, 'utf8')) as Record<string, FoldedHashes> : {};
for (const file of process.argv.slice(2)) {
  const name = basename(file, '.jsonl');
  if (name in hashes) {
    process.stderr.write(`${name} is golden already, and stays as it is\n`);
    process.exitCode = 1;
    continue;
  }
  const log = readFileSync(file, 'utf8');
  hashes[name] = foldedHashes(log);
  writeFileSync(join(folder, 'logs', `${name}.jsonl`), log);
}
writeFileSync(hashesFile, `${JSON.stringify(Object.fromEntries(Object.entries(hashes).sort(([a], [b]) => a < b ? -1 : 1)), null, 1)}\n`);
