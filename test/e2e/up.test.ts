/** `treadle up`: comes up, keeps its workers alive, stops without losing anything, and finds its data again. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@treadle/client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { root, until } from './processes.ts';

let dir: string;
const started: ChildProcess[] = [];
beforeEach(() => { dir = mkdtempSync(join(tmpdir(), 'treadle-up-')); });
afterEach(async () => {
  for (const child of started.splice(0)) {
    child.kill('SIGTERM');
    if (child.exitCode === null && child.signalCode === null) await new Promise((resolve) => { child.once('exit', resolve); });
  }
  rmSync(dir, { recursive: true, force: true });
});

interface Up { readonly child: ChildProcess; readonly url: string; readonly workers: number[]; readonly redis: string; readonly exited: Promise<number | null>; output(): string }

async function up(): Promise<Up> {
  const env = { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', METRICS_PORT: '0', LOG_LEVEL: 'warn', TREADLE_LEASE_MS: '2000' };
  const child = spawn(process.execPath, [join(root, 'apps/cli/src/main.ts'), 'up', '--workers', '2', '--port', '0', '--data', dir], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  started.push(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => { output += chunk.toString(); });
  const exited = new Promise<number | null>((resolve) => { child.once('exit', resolve); });
  await until('the stack is ready', () => {
    if (child.exitCode !== null) throw new Error(output);
    return output.includes('ready; Ctrl-C');
  });
  const workers = [...output.matchAll(/worker \d .*pid (\d+)/g)].map((match) => Number(match[1]));
  return { child, url: /API +(\S+)/.exec(output)![1]!, workers, redis: /Redis +(\S+)/.exec(output)![1]!, exited, output: () => output };
}

const alive = (pid: number): boolean => { try { process.kill(pid, 0); return true; } catch { return false; } };

test('a killed worker is replaced, Ctrl-C stops everything, and a second start finds the runs', async () => {
  const first = await up();
  const client = createClient({ url: first.url });
  const { id } = await client.createRun({ input: 'What is a claim?' });
  expect(await client.wait(id, 30_000)).toMatchObject({ status: 'completed' });

  process.kill(first.workers[0]!, 'SIGKILL');
  await until('the death is told', () => first.output().includes('worker-1 (pid'));
  const again = await client.createRun({ input: 'What is the ledger?' });
  expect(await client.wait(again.id, 30_000)).toMatchObject({ status: 'completed' });

  first.child.kill('SIGINT');
  expect(await first.exited).toBe(0);
  expect(first.workers.filter(alive)).toEqual([]);
  await expect(fetch(`${first.url}/healthz`)).rejects.toThrow();

  const second = await up();
  const found = (await createClient({ url: second.url }).runs()).data.map((run) => run.id);
  expect(found.sort()).toEqual([id, again.id].sort());
}, 120_000);

test('a stack that is killed hard leaves no worker behind, and the next one takes its Redis over', async () => {
  const first = await up();
  const { id } = await createClient({ url: first.url }).createRun({ input: 'What is fencing?' });
  first.child.kill('SIGKILL');
  await until('its workers have gone', () => first.workers.every((pid) => !alive(pid)));

  const second = await up();
  expect(await createClient({ url: second.url }).wait(id, 30_000)).toMatchObject({ status: 'completed' });
}, 120_000);
