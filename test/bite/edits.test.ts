/**
 * `npm run test:bite` takes one protection after the other out of a copy of the product and shows that tests fail. Here only that
 * its edits still fit the source, so that a change beside one is noticed at once.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { apply, edited, StaleEdit } from './edits.ts';
import { protections } from './protections.ts';

const root = join(import.meta.dirname, '../..');

test.each(protections)('what takes out $name fits the source, and its tests are there', ({ edits, tests }) => {
  for (const [file, text] of edited(root, edits)) expect(text).not.toBe(readFileSync(join(root, file), 'utf8'));
  for (const { file } of tests) expect(existsSync(join(root, file)), file).toBe(true);
});

test('each has a name of its own, and a row in the docs that says what is taken out', () => {
  const names = protections.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  const rows = [...readFileSync(join(root, 'docs/reliability.md'), 'utf8').matchAll(/^\| `([a-z-]+)` \| (.*?) \|/gm)];
  expect(rows.map(([, name, without]) => [name, without])).toEqual(protections.map(({ name, without }) => [name, without]));
});

test('a text that is not there exactly once is refused, and nothing is written', () => {
  const dir = mkdtempSync(join(tmpdir(), 'treadle-edits-'));
  const file = join(dir, 'a.txt');
  writeFileSync(file, 'one two two');
  for (const find of ['three', 'two']) {
    expect(() => apply(dir, [{ file: 'a.txt', find: 'one', replace: '1' }, { file: 'a.txt', find, replace: '' }])).toThrow(StaleEdit);
    expect(readFileSync(file, 'utf8')).toBe('one two two');
  }
  const undo = apply(dir, [{ file: 'a.txt', find: 'one', replace: '$&' }, { file: 'a.txt', find: ' two two', replace: '' }]);
  expect(readFileSync(file, 'utf8')).toBe('$&');
  undo();
  expect(readFileSync(file, 'utf8')).toBe('one two two');
  rmSync(dir, { recursive: true });
});
