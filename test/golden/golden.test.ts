/** R4: logs of runs of many kinds, as they were once written, fold the same for ever. A field that came later may be there beside. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { foldedHashes, type FoldedHashes } from './fold.ts';

const folder = import.meta.dirname;
const hashes = JSON.parse(readFileSync(join(folder, 'folded.json'), 'utf8')) as Record<string, FoldedHashes>;
const logs = readdirSync(join(folder, 'logs')).filter((name) => name.endsWith('.jsonl')).map((name) => name.slice(0, -'.jsonl'.length)).sort();

test('there are fifty, each with what it folds to', () => {
  expect(logs.length).toBeGreaterThanOrEqual(50);
  expect(logs).toEqual(Object.keys(hashes).sort());
});

test.each(logs)('%s', (name) => {
  const folded = foldedHashes(readFileSync(join(folder, 'logs', `${name}.jsonl`), 'utf8'));
  expect(folded).toMatchObject(hashes[name]!);
});

test('a log in which one event is another folds to something else', () => {
  const name = logs.find((each) => readFileSync(join(folder, 'logs', `${each}.jsonl`), 'utf8').includes('"tool_result"'))!;
  const log = readFileSync(join(folder, 'logs', `${name}.jsonl`), 'utf8');
  const changed = log.replace(/("type":"tool_result"[^\n]*"content":")/, '$1other ');
  expect(changed).not.toBe(log);
  expect(foldedHashes(changed)).not.toMatchObject(hashes[name]!);
});
