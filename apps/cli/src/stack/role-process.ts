/**
 * One child process of the stack (the API or a worker), kept alive.
 *
 * Owns: the current child and the pause before the next. States: starting → ready → (died → starting)… → stopping → stopped.
 * 1. A child that dies is started again after a pause that doubles up to 10 s, and begins anew after it has lived for a while.
 * 2. A child that could not be configured (exit code 2) is not started again: it would say the same. Nor is one that never was
 *    ready in three tries.
 * 3. The child ends itself when this process has gone (its channel closes).
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { projectRoot } from '../setup.ts';
import { nodeFlags } from './node-flags.ts';

export interface RoleReady {
  /** Where it listens: the API's address, or a worker's metrics. */
  readonly url: string;
}

export interface RoleProcess {
  /** Resolves when the first child is ready; rejects when it cannot be. */
  readonly ready: Promise<RoleReady>;
  readonly pid: number | undefined;
  stop(graceMs: number): Promise<void>;
  /** Without waiting. */
  killNow(): void;
}

export interface RoleOptions {
  readonly role: 'api' | 'worker';
  /** Shown beside its log lines. */
  readonly name: string;
  readonly env: NodeJS.ProcessEnv;
  readonly onDeath: (message: string) => void;
}

const firstPauseMs = 200;
const maxPauseMs = 10_000;
const livedMs = 30_000;

export function startRole(options: RoleOptions): RoleProcess {
  let child: ChildProcess | null = null;
  let stopping = false;
  let pauseMs = firstPauseMs;
  let exited: Promise<void> = Promise.resolve();
  let tries = 0;
  let wasReady = false;
  let timer: NodeJS.Timeout | null = null;
  const ready = Promise.withResolvers<RoleReady>();
  ready.promise.catch(() => undefined);

  function start(): void {
    const bornMs = Date.now();
    const started = spawn(process.execPath, [...nodeFlags, join(projectRoot, 'apps/cli/src/main.ts'), options.role], {
      env: { ...options.env, TREADLE_PROCESS: options.name }, stdio: ['ignore', 'inherit', 'inherit', 'ipc'], detached: true,
    });
    child = started;
    tries++;
    started.on('message', (message) => { wasReady = true; ready.resolve(message as RoleReady); });
    started.once('error', (error) => { options.onDeath(`${options.name} cannot be started: ${error.message}`); });
    exited = new Promise((resolve) => {
      started.once('exit', (code, signal) => {
        resolve();
        if (stopping) return;
        if (!wasReady && (code === 2 || tries === 3)) {
          ready.reject(new Error(`${options.name} ${code === 2 ? 'could not be configured' : 'does not start'}; its own words are above`));
          return;
        }
        if (Date.now() - bornMs > livedMs) pauseMs = firstPauseMs;
        options.onDeath(`${options.name} (pid ${started.pid ?? '?'}) ended by ${signal ?? `exit code ${code ?? '?'}`}; starting another in ${pauseMs} ms`);
        timer = setTimeout(start, pauseMs);
        pauseMs = Math.min(pauseMs * 2, maxPauseMs);
      });
    });
  }

  start();
  return {
    ready: ready.promise,
    get pid() { return child?.pid; },
    killNow: () => {
      stopping = true;
      if (timer !== null) clearTimeout(timer);
      child?.kill('SIGKILL');
    },
    stop: async (graceMs) => {
      stopping = true;
      if (timer !== null) clearTimeout(timer);
      if (child === null || child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      const hard = setTimeout(() => child?.kill('SIGKILL'), graceMs);
      await exited;
      clearTimeout(hard);
    },
  };
}
