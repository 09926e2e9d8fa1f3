/**
 * `treadle test`: everything the tests need, then all tests: lint, types, unit and conformance suites, end to end.
 * Ends with one line `N passed, N failed, N skipped` that adds up every suite.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ensureRedisServer } from '../redis-server.ts';

const root = join(import.meta.dirname, '../../../..');
const results = join(root, 'dist/test-results');

interface VitestReport { numPassedTests: number; numFailedTests: number; numPendingTests: number; numTodoTests: number; success: boolean }

/** Exit code 0 when lint, types and every suite passed and at least one test ran. */
export async function testCommand(args: string[]): Promise<number> {
  ensureRedisServer();
  rmSync(results, { recursive: true, force: true });
  mkdirSync(results, { recursive: true });
  // The packages' own tests mostly wait, so two packages go at once. Those of whole systems come by themselves, and chaos behind them: what
  // kills processes and fills the machine shall disturb no other test.
  const whole = '@treadle/e2e';
  const steps = {
    'lint and types': ['lint', 'typecheck'],
    'tests of the packages': ['test', `--exclude=${whole}`, '--parallel=2'],
    'end to end': ['test', `--projects=${whole}`],
    chaos: ['chaos', `--projects=${whole}`],
  };
  const broken = Object.entries(steps).filter(([, targets]) => nx(['run-many', '-t', ...targets, ...args]) !== 0).map(([step]) => step);
  const total = addUp();
  if (broken.length > 0) process.stdout.write(`\nnot green: ${broken.join('; ')} (look for "Failed tasks" above)\n`);
  process.stdout.write(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped\n`);
  return broken.length === 0 && total.failed === 0 && total.passed > 0 ? 0 : 1;
}

function nx(args: string[]): number {
  const environment = { ...process.env, NX_DAEMON: 'false', NX_TUI: 'false', NX_NO_CLOUD: 'true', FORCE_COLOR: '0' };
  const done = spawnSync(process.execPath, [join(root, 'node_modules/.bin/nx'), ...args, '--outputStyle=stream'], { cwd: root, stdio: 'inherit', env: environment });
  return done.status ?? 1;
}

function addUp(): { passed: number; failed: number; skipped: number } {
  const sum = { passed: 0, failed: 0, skipped: 0 };
  if (!existsSync(results)) return sum;
  for (const file of readdirSync(results, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.json')) continue;
    const report = JSON.parse(readFileSync(join(results, file), 'utf8')) as VitestReport;
    sum.passed += report.numPassedTests;
    sum.failed += report.numFailedTests + (report.success || report.numFailedTests > 0 ? 0 : 1);
    sum.skipped += report.numPendingTests + report.numTodoTests;
  }
  return sum;
}
