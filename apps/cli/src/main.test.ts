/** What a command says, and leaves, when it can do nothing. */
import { afterEach, expect, test } from 'vitest';
import { started, type Started } from './fixtures/started.ts';

const all: Started[] = [];
afterEach(() => { for (const each of all.splice(0)) each.clear(); });

function start(args: readonly string[], env?: Readonly<Record<string, string>>): Started {
  const one = started(args, env);
  all.push(one);
  return one;
}

test.each(['/proc/nothing/here', '/dev/null/data'])('up names a data folder that cannot be made: %s', async (folder) => {
  const startMs = performance.now();
  const one = start(['up', '--data', folder]);
  expect(await one.exited).toBe(2);
  expect(one.output.stderr).toMatch(new RegExp(`^treadle: --data: the folder ${folder} cannot be made: .+\n$`));
  // Most of it is node's own start.
  expect(performance.now() - startMs).toBeLessThan(5000);
});

test('doctor leaves nothing in the folder where it is asked', async () => {
  const one = start(['doctor']);
  expect([0, 1]).toContain(await one.exited);
  expect(one.output.stdout).toMatch(/^ok +archive +folder \.treadle\/archive: write, conditional write, read$/m);
  expect(one.files()).toEqual([]);
});

test('doctor says when an archive cannot be made', async () => {
  const one = start(['doctor'], { ARCHIVE_DIR: '/proc/nothing/here' });
  expect(await one.exited).toBe(1);
  expect(one.output.stdout).toMatch(/^error +archive +folder \/proc\/nothing\/here: /m);
});

test('with --json a failure is one object on standard error', async () => {
  const failure = async (args: readonly string[], env?: Readonly<Record<string, string>>) => {
    const one = start([...args, '--json'], env);
    const exitCode = await one.exited;
    return { exitCode, stdout: one.output.stdout, said: JSON.parse(one.output.stderr) as unknown };
  };
  const problems: unknown[] = [];
  expect(await failure(['runs', 'ls'], { TREADLE_URL: 'http://127.0.0.1:1' })).toEqual({
    exitCode: 3, stdout: '', said: { code: 'unreachable', message: expect.stringContaining('cannot reach http://127.0.0.1:1') as string, problems } });
  expect(await failure(['runs', 'fly'])).toEqual({ exitCode: 2, stdout: '', said: { code: 'bad_usage', message: expect.stringContaining('usage: ') as string, problems } });
});
