/** A stack that is stopped, or loses its Redis, at a bad moment: it ends soon, with the right code, and nothing of it stays. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as later } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { started, type Started } from '../fixtures/started.ts';

const all: Started[] = [];
afterEach(() => { for (const each of all.splice(0)) each.clear(); });

function start(args: readonly string[], env?: Readonly<Record<string, string>>): Started {
  const one = started(args, env);
  all.push(one);
  return one;
}

const up = (env?: Readonly<Record<string, string>>) => start(['up', '--port', '0', '--data', 'data'], env);
const says = (one: Started, text: string) => vi.waitFor(() => { expect(one.output.stdout + one.output.stderr).toContain(text); }, { timeout: 15_000, interval: 20 });
const pidOf = (one: Started, what: RegExp) => Number(what.exec(one.output.stdout)?.[1]);

/** Children of a process that was killed need a moment to notice. */
async function nothingStays(one: Started): Promise<void> {
  await vi.waitFor(() => { expect(one.living()).toEqual([]); }, { timeout: 3000, interval: 20 });
}

describe('Ctrl-C', () => {
  // Before the command has begun node's own handling ends the process: 130 by the signal, null as an exit code.
  test.each([300, 500, 800, 1100, 1400])('%i ms after the start leaves no process and no folder', async (delayMs) => {
    const both = [start(['demo']), up()];
    await later(delayMs);
    for (const one of both) one.child.kill('SIGINT');
    const codes = await Promise.all(both.map((one) => one.exited));
    expect([[null, 1], [null, 0]].map((allowed, index) => allowed.includes(codes[index]!))).toEqual([true, true]);
    for (const one of both) await nothingStays(one);
    expect(both[0]!.files().filter((name) => name.startsWith('treadle-demo-'))).toEqual([]);
  });

  test('in the middle of the demo, too', async () => {
    const demo = start(['demo']);
    await says(demo, 'Question:');
    demo.child.kill('SIGINT');
    expect(await demo.exited).toBe(1);
    await nothingStays(demo);
    expect(demo.files().filter((name) => name.startsWith('treadle-demo-'))).toEqual([]);
  });

  test('while the named Redis cannot be reached', async () => {
    const one = up({ REDIS_URL: 'redis://127.0.0.1:1' });
    await says(one, 'ECONNREFUSED');
    one.child.kill('SIGINT');
    expect(await one.exited).toBe(0);
    await nothingStays(one);
  });

  test('a second time ends everything at once, also what hangs', async () => {
    const one = up();
    await says(one, 'ready; Ctrl-C');
    // All of it is seen while it lives, so that nothing is overlooked afterwards.
    expect(['redis-server', ' up', ' api', ' worker'].filter((what) => !one.living().some((line) => line.includes(what)))).toEqual([]);
    const worker = pidOf(one, /worker 1 .*pid (\d+)/);
    process.kill(worker, 'SIGSTOP');
    one.child.kill('SIGINT');
    await says(one, 'stopping');
    await later(400);
    const startMs = performance.now();
    one.child.kill('SIGINT');
    expect(await one.exited).toBe(130);
    expect(performance.now() - startMs).toBeLessThan(1000);
    await nothingStays(one);
  });
});

test('a Redis that is killed ends the stack with exit code 3', async () => {
  const one = up();
  await says(one, 'ready; Ctrl-C');
  const { pid } = JSON.parse(readFileSync(join(one.dir, 'data/redis.json'), 'utf8')) as { pid: number };
  const startMs = performance.now();
  process.kill(pid, 'SIGKILL');
  expect(await one.exited).toBe(3);
  expect(performance.now() - startMs).toBeLessThan(15_000);
  expect(one.output.stdout).toContain('the embedded Redis has ended');
  await nothingStays(one);
});
