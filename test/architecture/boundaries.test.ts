/**
 * The lint rules that keep the layers apart bite: text with a planted violation is linted through the real
 * configuration, under the path where a careless change would put it.
 */
import { ESLint } from 'eslint';
import { join } from 'node:path';
import { rmSync, writeFileSync } from 'node:fs';
import { afterEach, expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const eslint = new ESLint({ cwd: root });
const planted: string[] = [];

afterEach(() => {
  for (const path of planted.splice(0)) rmSync(path, { force: true });
});

/** The rule ids that the real configuration reports for `text` at `path`. A real file, since type-aware rules read it from disk. */
async function violations(path: string, text: string): Promise<string[]> {
  const file = join(root, path);
  planted.push(file);
  writeFileSync(file, text);
  const [result] = await eslint.lintFiles([file]);
  return result!.messages.map((message) => message.ruleId ?? message.message);
}

test.each([
  ['a node module', "import { readFileSync } from 'node:fs';\nexport const x = readFileSync;\n", 'no-restricted-imports'],
  ['an npm package', "import { z } from 'zod';\nexport const x = z;\n", 'no-restricted-imports'],
  ['another lib', "import { executeTurn } from '@treadle/engine';\nexport const x = executeTurn;\n", 'no-restricted-imports'],
  ['the clock', 'export const x = (): number => Date.now();\n', 'no-restricted-properties'],
  ['a new Date()', 'export const x = (): Date => new Date();\n', 'no-restricted-syntax'],
  ['randomness', 'export const x = (): number => Math.random();\n', 'no-restricted-properties'],
  ['a timer', 'export const x = (): unknown => setTimeout(() => {}, 1);\n', 'no-restricted-globals'],
  ['the environment', 'export const x = (): unknown => process.env;\n', 'no-restricted-globals'],
])('core may not use %s', async (_what, text, rule) => {
  expect(await violations('libs/core/src/planted.ts', text)).toContain(rule);
});

test.each([
  ['an adapter', 'libs/run-store/src/planted.ts', "import * as queue from '@treadle/queue';\nexport const x = queue;\n"],
  ['the engine', 'libs/engine/src/planted.ts', "import * as store from '@treadle/run-store';\nexport const x = store;\n"],
])('%s may not import an adapter', async (_what, path, text) => {
  expect(await violations(path, text)).toContain('@nx/enforce-module-boundaries');
});

test('what is allowed is not reported', async () => {
  expect(await violations('libs/core/src/planted.ts', 'export const double = (x: number): number => x * 2;\n')).toEqual([]);
});
