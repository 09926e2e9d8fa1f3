/**
 * Proves that the tests of reliability can fail: takes one protection after the other out of a copy of the product, and shows
 * which test notices. `npm run test:bite`, with `-- --only NAME` (again for more) and `-- --json` (a line per protection).
 *
 * 1. The working tree is never edited.
 * 2. The same tests pass without the edit; with it at least one fails for what it expects, not because it cannot run.
 * 3. Exit code 1 if nothing notices, 2 if that could not be found out (an edit that no longer fits, a test that is red anyway).
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { copyOf } from './copy.ts';
import { apply } from './edits.ts';
import { protections, type Protection } from './protections.ts';
import { runTests, type Failed } from './vitest-run.ts';

interface Bite { readonly protection: string; readonly without: string; readonly state: 'noticed' | 'unnoticed' | 'unclear'; readonly by: string; readonly says: string }

const root = join(import.meta.dirname, '../..');
const { values } = parseArgs({ options: { only: { type: 'string', multiple: true }, json: { type: 'boolean', default: false } } });
const chosen = chosenOf(values.only ?? protections.map(({ name }) => name));
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => { stop.abort(); });

const tree = copyOf(root);
try {
  process.exitCode = await biteAll();
} catch (error) {
  if (!stop.signal.aborted) throw error;
  process.exitCode = 130;
} finally {
  rmSync(tree, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}

function chosenOf(names: readonly string[]): Protection[] {
  return names.map((name) => {
    const found = protections.find((each) => each.name === name);
    if (found !== undefined) return found;
    process.stderr.write(`there is no protection ${name}; there are: ${protections.map((each) => each.name).join(', ')}\n`);
    return process.exit(2);
  });
}

async function biteAll(): Promise<number> {
  const red = await redWithoutEdits();
  let code = 0;
  for (const protection of chosen) {
    const bite = await biteOf(protection, red);
    print(bite);
    if (bite.state === 'unclear') code = 2;
    else if (bite.state === 'unnoticed') code = Math.max(code, 1);
  }
  return code;
}

/** By file and name: what is wrong with a test before anything was edited. Each file is run once. */
async function redWithoutEdits(): Promise<Map<string, string>> {
  const red = new Map<string, string>();
  const tests = chosen.flatMap((each) => each.tests);
  for (const [file, ofFile] of Map.groupBy(tests, (each) => each.file)) {
    const names = ofFile.map((each) => each.named);
    const all = names.some((name) => name === undefined);
    const outcome = await runTests(tree, { file, names: all ? [] : names.map((name) => name!), signal: stop.signal });
    for (const name of names) {
      const failed = outcome.failed.find((each) => each.name.includes(name ?? ''));
      if (failed !== undefined) red.set(keyOf({ file, named: name }), `fails without the edit, too: ${failed.name}: ${failed.message}`);
      else if (!outcome.passed.some((each) => each.includes(name ?? ''))) red.set(keyOf({ file, named: name }), 'there is no such test');
    }
  }
  return red;
}

async function biteOf({ name, without, edits, tests }: Protection, red: ReadonlyMap<string, string>): Promise<Bite> {
  const bite = (state: Bite['state'], by: string, says: string): Bite => ({ protection: name, without, state, by, says });
  const wrong = tests.flatMap((each) => red.get(keyOf(each)) ?? []);
  if (wrong.length > 0) return bite('unclear', '', wrong.join('; '));
  const failed: Failed[] = [];
  let undo = (): void => undefined;
  try {
    undo = apply(tree, edits);
    for (const { file, named } of tests) failed.push(...(await runTests(tree, { file, names: named === undefined ? [] : [named], signal: stop.signal })).failed);
  } catch (error) {
    stop.signal.throwIfAborted();
    return bite('unclear', '', error instanceof Error ? error.message : String(error));
  } finally {
    undo();
  }
  const honest = failed.find((each) => each.honest);
  if (honest !== undefined) return bite('noticed', honest.name, honest.message);
  return failed[0] === undefined ? bite('unnoticed', '', '') : bite('unclear', failed[0].name, `could not run: ${failed[0].message}`);
}

function keyOf({ file, named }: { readonly file: string; readonly named?: string | undefined }): string {
  return `${file} ${named ?? ''}`;
}

function print(bite: Bite): void {
  if (values.json) return void process.stdout.write(`${JSON.stringify(bite)}\n`);
  const detail = bite.state === 'noticed' ? bite.by : bite.state === 'unnoticed' ? `no test notices that ${bite.without}` : `${bite.by} ${bite.says}`.trim();
  process.stdout.write(`${bite.state.padEnd(10)} ${bite.protection.padEnd(21)} ${detail}\n`);
}
