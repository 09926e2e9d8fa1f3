/**
 * The whole stack on one machine: Redis (its own, unless one is named), the API, N workers.
 * Stops in the order in which nothing is lost: API, workers (they drain), Redis.
 */
import { join, resolve } from 'node:path';
import type { Settings } from '@treadle/config';
import { makeFolder } from './data-folder.ts';
import { startRedis, type RedisProcess } from './redis-process.ts';
import { startRole, type RoleProcess } from './role-process.ts';

export interface StackOptions {
  readonly settings: Settings;
  readonly env: NodeJS.ProcessEnv;
  /** Folder of the embedded Redis and of the file archive. */
  readonly dataDir: string;
  readonly workers: number;
  /** 0 = any free one. */
  readonly port: number;
  readonly configPath?: string | undefined;
  readonly onNews: (line: string) => void;
  /** Aborts a stack that is still starting: what has been started is stopped again. */
  readonly signal: AbortSignal;
  /** Given what kills a part without waiting, as soon as the part exists. */
  readonly onSpawn: (killNow: () => void) => void;
}

/** The stack was told to stop before it was ready. */
export class StoppedWhileStarting extends Error {
  constructor() {
    super('stopped while it was starting');
    this.name = 'StoppedWhileStarting';
  }
}

export interface Stack {
  readonly apiUrl: string;
  readonly workers: readonly { readonly pid: number | undefined; readonly metricsUrl: string }[];
  readonly redisUrl: string;
  /** Resolves with what happened when the stack cannot go on. Stopping it then waits for nobody who needs what has gone. */
  readonly broken: Promise<string>;
  stop(): Promise<void>;
}

/** Resolves when the API and every worker are ready. Throws, with everything stopped, when one cannot be; `UnfitFolder` for the data folder. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const dir = resolve(options.dataDir);
  makeFolder(dir);
  const redis = options.settings.redisUrl === null ? await startRedis(dir, options.onSpawn) : null;
  if (options.signal.aborted) {
    await redis?.stop();
    throw new StoppedWhileStarting();
  }
  const redisUrl = redis?.url ?? options.settings.redisUrl ?? '';
  const env: NodeJS.ProcessEnv = {
    ...options.env, REDIS_URL: redisUrl, PORT: String(options.port),
    ...(options.settings.s3Bucket === null && options.settings.archiveDir === null ? { ARCHIVE_DIR: join(dir, 'archive') } : {}),
    ...(options.configPath === undefined ? {} : { TREADLE_CONFIG: resolve(options.configPath) }),
  };
  const onDeath = options.onNews;
  const api = startRole({ role: 'api', name: 'api', env, onDeath });
  const { metricsPort } = options.settings;
  const workers = Array.from({ length: options.workers }, (_, index) => startRole({
    role: 'worker', name: `worker-${index + 1}`, onDeath,
    env: { ...env, METRICS_PORT: String(metricsPort === 0 ? 0 : metricsPort + index + 1) },
  }));
  for (const part of [api, ...workers]) options.onSpawn(part.killNow);
  let stopping = false;
  let redisEnded = false;
  const stop = (): Promise<void> => {
    stopping = true;
    return stopAll({ api, workers, redis }, redisEnded ? brokenGrace : { apiMs: 5000, workerMs: options.settings.drainTimeoutMs + 10_000 });
  };
  const broken = new Promise<string>((resolve) => {
    void redis?.exited.then(() => {
      redisEnded = true;
      if (!stopping) resolve('the embedded Redis has ended');
    });
  });
  const aborted = new Promise<never>((_resolve, reject) => {
    options.signal.addEventListener('abort', () => { reject(new StoppedWhileStarting()); }, { once: true });
  });
  const failed = broken.then((what) => { throw new Error(what); });
  failed.catch(() => undefined);
  aborted.catch(() => undefined);
  try {
    const allReady = Promise.all([api.ready, ...workers.map((worker) => worker.ready)]);
    const [apiReady, ...workersReady] = await Promise.race([allReady, aborted, failed]);
    const ready = workersReady.map(({ url }, index) => ({ get pid() { return workers[index]?.pid; }, metricsUrl: url }));
    if (apiReady === undefined) throw new Error('the API has not said where it listens');
    return { apiUrl: apiReady.url, workers: ready, redisUrl, broken, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

interface Parts { readonly api: RoleProcess; readonly workers: readonly RoleProcess[]; readonly redis: RedisProcess | null }

/** Without Redis nothing can be finished or handed back. */
const brokenGrace = { apiMs: 2000, workerMs: 3000 };

async function stopAll({ api, workers, redis }: Parts, grace: { readonly apiMs: number; readonly workerMs: number }): Promise<void> {
  await api.stop(grace.apiMs);
  await Promise.all(workers.map((worker) => worker.stop(grace.workerMs)));
  await redis?.stop();
}
