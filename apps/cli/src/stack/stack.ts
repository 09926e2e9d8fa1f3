/**
 * The whole stack on one machine: Redis (its own, unless one is named), the API, N workers.
 * Stops in the order in which nothing is lost: API, workers (they drain), Redis.
 */
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Settings } from '@treadle/config';
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
}

export interface Stack {
  readonly apiUrl: string;
  readonly workers: readonly { readonly pid: number | undefined; readonly metricsUrl: string }[];
  readonly redisUrl: string;
  /** Resolves with what happened when the stack cannot go on. */
  readonly broken: Promise<string>;
  stop(): Promise<void>;
}

/** Resolves when the API and every worker are ready. Throws, with everything stopped, when one cannot be. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const dir = resolve(options.dataDir);
  mkdirSync(dir, { recursive: true });
  const redis = options.settings.redisUrl === null ? await startRedis(dir) : null;
  if (options.signal.aborted) {
    await redis?.stop();
    throw new Error('stopped while it was starting');
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
  let stopping = false;
  const stop = (): Promise<void> => {
    stopping = true;
    return stopAll({ api, workers, redis }, options.settings.drainTimeoutMs);
  };
  const broken = new Promise<string>((resolve) => { void redis?.exited.then(() => { if (!stopping) resolve('the embedded Redis has ended'); }); });
  const aborted = new Promise<never>((_resolve, reject) => {
    options.signal.addEventListener('abort', () => { reject(new Error('stopped while it was starting')); }, { once: true });
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

async function stopAll({ api, workers, redis }: Parts, drainMs: number): Promise<void> {
  await api.stop(5000);
  await Promise.all(workers.map((worker) => worker.stop(drainMs + 10_000)));
  await redis?.stop();
}
