/**
 * The embedded stack's own Redis: a child in a process group of its own, so that Ctrl-C does not reach it before the workers
 * have drained; every write fsynced before it is answered.
 *
 * Owns: the child, its data folder, and `redis.json` beside it, by which a later start finds a server that a killed stack
 * left behind, or a stack that still lives in this folder.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { openSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { connectRedis } from '@treadle/run-store';
import { ensureRedisServer } from '../redis-server.ts';
import { makeFolder } from './data-folder.ts';

export interface RedisProcess {
  readonly url: string;
  readonly pid: number;
  /** Resolves when the server has gone by itself. */
  readonly exited: Promise<void>;
  stop(): Promise<void>;
  /** Without waiting; nothing that was answered is lost, since it was fsynced before. */
  killNow(): void;
}

/** Starts a server on a free port of 127.0.0.1 with its data under `dir`. Throws with its log's place when it does not come up. */
export async function startRedis(dir: string, onSpawn: (killNow: () => void) => void): Promise<RedisProcess> {
  const folder = join(dir, 'redis');
  makeFolder(folder);
  // As Redis itself names it, symbolic links resolved.
  const data = realpathSync(folder);
  const note = join(dir, 'redis.json');
  await stopLeftOver(note, data);
  const port = await freePort();
  const log = join(dir, 'redis.log');
  const settings = [
    '--port', String(port), '--bind', '127.0.0.1', '--dir', data, '--appendonly', 'yes', '--appendfsync', 'always', '--no-appendfsync-on-rewrite', 'no',
    '--save', '', '--maxmemory-policy', 'noeviction', '--daemonize', 'no',
  ];
  const child = spawn(ensureRedisServer(), settings, { stdio: ['ignore', openSync(log, 'a'), openSync(log, 'a')], detached: true });
  const exited = new Promise<void>((resolve) => { child.once('exit', () => { resolve(); }); child.once('error', () => { resolve(); }); });
  const killNow = (): void => { child.kill('SIGKILL'); };
  onSpawn(killNow);
  const url = `redis://127.0.0.1:${port}`;
  if (!await answers(url, exited)) {
    child.kill('SIGKILL');
    throw new Error(`the embedded Redis did not start; its log is ${log}`);
  }
  const pid = child.pid ?? 0;
  writeFileSync(note, JSON.stringify({ pid, port, owner: process.pid } satisfies Note));
  return { url, pid, exited, killNow, stop: async () => { await stop(child, exited); rmSync(note, { force: true }); } };
}

async function stop(child: ChildProcess, exited: Promise<void>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  const timer = setTimeout(() => { child.kill('SIGKILL'); }, 10_000);
  await exited;
  clearTimeout(timer);
}

interface Note { readonly pid: number; readonly port: number; readonly owner: number }

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** A stack that was killed hard leaves its Redis running. It is ours only if it answers on the noted port with this data folder. */
async function stopLeftOver(note: string, data: string): Promise<void> {
  let noted: Note;
  try {
    noted = JSON.parse(readFileSync(note, 'utf8')) as Note;
  } catch {
    return;
  }
  if (!await servesFrom(noted.port, data)) return;
  if (lives(noted.owner)) throw new Error(`another treadle (pid ${noted.owner}) is running on this data folder; stop it, or use --data`);
  process.kill(noted.pid, 'SIGTERM');
  await gone(noted.pid);
}

async function servesFrom(port: number, data: string): Promise<boolean> {
  const redis = connectRedis(`redis://127.0.0.1:${port}`, { role: 'api' });
  try {
    await ready(redis);
    const [, dir] = await redis.config('GET', 'dir') as [string, string];
    return dir === data;
  } catch {
    return false;
  } finally {
    redis.disconnect();
  }
}

async function gone(pid: number): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    if (!lives(pid)) return;
    await new Promise((resolve) => { setTimeout(resolve, 100); });
  }
}

async function answers(url: string, exited: Promise<void>): Promise<boolean> {
  const redis = connectRedis(url, { role: 'command' });
  try {
    return await Promise.race([redis.ping().then(() => true), exited.then(() => false)]);
  } finally {
    redis.disconnect();
  }
}

async function ready(redis: ReturnType<typeof connectRedis>): Promise<void> {
  if (redis.status === 'ready') return;
  await new Promise<void>((resolve, reject) => {
    redis.once('ready', resolve);
    redis.once('error', reject);
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => { server.close(resolve); });
  return port;
}
