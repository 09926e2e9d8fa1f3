/** Runs vitest on one file of a tree, and tells the tests that failed from a run that broke. */
import { execFile } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

export interface Outcome { readonly passed: readonly string[]; readonly failed: readonly Failed[] }

/** `honest`: a test that expected something else or waited in vain, and not one that could not even run. */
export interface Failed { readonly name: string; readonly message: string; readonly honest: boolean }

export interface RunOptions { readonly file: string; readonly names: readonly string[]; readonly signal: AbortSignal }

/** Throws where vitest has no results: a file that cannot be loaded, or a run that takes more than ten minutes. */
export async function runTests(tree: string, { file, names, signal }: RunOptions): Promise<Outcome> {
  const report = join(tree, 'dist', 'bite.json');
  rmSync(report, { force: true });
  const pattern = names.length === 0 ? [] : ['-t', names.map(escaped).join('|')];
  const output = await new Promise<string>((resolve) => {
    const args = [join(tree, 'node_modules/vitest/vitest.mjs'), 'run', file, ...pattern, '--reporter=json', `--outputFile=${report}`];
    execFile(process.execPath, args, { cwd: tree, signal, timeout: 600_000, maxBuffer: 2 ** 26, encoding: 'utf8' }, (_error, stdout, stderr) => { resolve(stdout + stderr); });
  });
  signal.throwIfAborted();
  return outcomeOf(report, `${file}: ${output.slice(-2000)}`);
}

interface Report { readonly testResults: readonly { readonly message: string; readonly assertionResults: readonly { readonly fullName: string; readonly status: string; readonly failureMessages?: readonly string[] }[] }[] }

function outcomeOf(path: string, otherwise: string): Outcome {
  let report: Report;
  try {
    report = JSON.parse(readFileSync(path, 'utf8')) as Report;
  } catch {
    throw new Error(`vitest did not report: ${otherwise}`);
  }
  const results = report.testResults.flatMap((each) => each.assertionResults);
  const failed = results.filter((each) => each.status === 'failed').map(({ fullName, failureMessages = [] }) => {
    const message = failureMessages.join('\n');
    return { name: fullName, message: message.split('\n')[0] ?? '', honest: /^AssertionError|^Error: promise resolved .* instead of rejecting|^Error: Test timed out in|did not succeed in time/.test(message) };
  });
  const passed = results.filter((each) => each.status === 'passed').map((each) => each.fullName);
  if (failed.length + passed.length === 0) throw new Error(`no test ran: ${report.testResults.map((each) => each.message).join('\n') || otherwise}`);
  return { passed, failed };
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
