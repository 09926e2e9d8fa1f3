/**
 * A real redis-server (or valkey-server) from PATH, for tests: on 127.0.0.1, a free port, a directory of its own.
 *
 * Owns one process and one temporary directory. States: running → stopped (directory gone), or running ↔ killed (it stays).
 * It ends, and its directory goes, with the process that started it, however that ends.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../free-port.ts';

export interface RedisServerOptions {
  /** Default `yes`. */
  readonly appendonly?: 'yes' | 'no';
  /** Default `always`. */
  readonly appendfsync?: 'always' | 'everysec' | 'no';
  /** More settings, as on the command line. */
  readonly args?: readonly string[];
}

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** Of the process that runs now. */
  readonly pid: number;
  /** Ends it in order and removes its directory. */
  stop(): Promise<void>;
  /** SIGKILL, as a crash. */
  kill(): Promise<void>;
  /** Starts it again on the same port with the same directory, after `kill` or while it runs (then it is ended in order first). */
  restart(): Promise<void>;
  /**
   * SIGKILL, and a start without what was written after that second of the Unix clock, as after a machine's death under `everysec`. Needs
   * `aof-timestamp-enabled yes`; throws where nothing would be left.
   */
  rewind(toSecond: number): Promise<void>;
}

/** Throws where neither server is installed, or where it is not ready after 10 s. */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  return startServer((dir, port) => [
    '--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', '', '--daemonize', 'no',
    '--appendonly', options.appendonly ?? 'yes', '--appendfsync', options.appendfsync ?? 'always', ...options.args ?? [],
  ]);
}

/** The program's arguments, asked for at each start. */
type Arguments = (dir: string, port: number) => readonly string[];

/** As `startRedis`, for whatever else the program can be. */
export async function startServer(args: Arguments): Promise<RedisServer> {
  const dir = await mkdtemp(join(tmpdir(), 'treadle-redis-'));
  let process_ = await startOnFreePort(dir, args);
  return {
    url: `redis://127.0.0.1:${process_.port}`,
    port: process_.port,
    get pid() { return process_.child.pid!; },
    stop: async () => {
      await end(process_.child, 'SIGTERM');
      await rm(dir, { recursive: true, force: true });
    },
    kill: () => end(process_.child, 'SIGKILL'),
    restart: async () => {
      await end(process_.child, 'SIGTERM');
      process_ = { port: process_.port, child: await start(dir, process_.port, args) };
    },
    rewind: async (toSecond) => {
      await end(process_.child, 'SIGKILL');
      cutBack(join(dir, 'appendonlydir/appendonly.aof.manifest'), toSecond);
      process_ = { port: process_.port, child: await start(dir, process_.port, args) };
    },
  };
}

function cutBack(manifest: string, toSecond: number): void {
  for (const program of ['redis-check-aof', 'valkey-check-aof']) {
    const { status, error, stdout } = spawnSync(program, ['--truncate-to-timestamp', String(toSecond), manifest], { encoding: 'utf8' });
    if (error !== undefined) continue;
    if (status !== 0) throw new Error(`${program} ended with ${String(status)}: ${stdout.slice(-500)}`);
    return;
  }
  throw new Error('neither redis-check-aof nor valkey-check-aof is installed');
}

/** Somebody else may take the port between finding and using it. */
async function startOnFreePort(dir: string, args: Arguments): Promise<{ child: ChildProcess; port: number }> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    try {
      return { port, child: await start(dir, port, args) };
    } catch (error) {
      if (attempt === 3) throw error;
    }
  }
}

async function start(dir: string, port: number, argsAt: Arguments): Promise<ChildProcess> {
  const args = argsAt(dir, port);
  let child = await spawned('redis-server', args) ?? await spawned('valkey-server', args);
  if (child === null) throw new Error('neither redis-server nor valkey-server is installed');
  endWithThisProcess(child, dir);
  const deadline = performance.now() + 10_000;
  while (!await answers(port, child.pid!)) {
    if (child.exitCode !== null || performance.now() > deadline) {
      await end(child, 'SIGKILL');
      child = null;
      throw new Error(`redis-server did not become ready on port ${port}`);
    }
    await sleep(10);
  }
  return child;
}

/** A test runner ends its workers by force: a small process waits for the end of a pipe that only this one holds. */
function endWithThisProcess(server: ChildProcess, dir: string): void {
  const watcher = spawn('sh', ['-c', 'cat; kill -9 "$0"; rm -rf "$1"', String(server.pid), dir], { stdio: ['pipe', 'ignore', 'ignore'] });
  watcher.unref();
  server.once('exit', () => { watcher.kill('SIGKILL'); });
}

/** Null where there is no such program. */
function spawned(program: string, args: readonly string[]): Promise<ChildProcess | null> {
  const child = spawn(program, args, { stdio: 'ignore' });
  return new Promise((resolve) => {
    child.once('spawn', () => { resolve(child); });
    child.once('error', () => { resolve(null); });
  });
}

/** PING is answered with an error while the server still loads its file, and by whoever else listens there where the port was taken. */
async function answers(port: number, pid: number): Promise<boolean> {
  if (await told(port, 'PING') !== '+PONG\r\n') return false;
  return (await told(port, 'INFO server'))?.includes(`process_id:${pid}\r\n`) ?? false;
}

/** The first piece of the answer to one command, as the protocol writes it; null where nobody answers within a second. Enough for short answers. */
export function told(port: number, command: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => { socket.write(`${command}\r\n`); });
    socket.setTimeout(1000, () => { socket.destroy(); });
    socket.once('data', (data) => { socket.destroy(); resolve(data.toString()); });
    socket.once('error', () => { resolve(null); });
    socket.once('close', () => { resolve(null); });
  });
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => { child.once('exit', resolve); });
  child.kill(signal);
  await ended;
}
