/**
 * Where a scenario plays: the in-memory double, or a real Redis with BullMQ's own jobs in it.
 */
import type { RunStore } from '@treadle/engine';
import { turnJobs } from '@treadle/queue';
import { createRunStore, type RedisClient } from '@treadle/run-store';
import { createMemoryRunStore, type Protections } from '@treadle/testkit';

export interface StageJob { readonly run_id: string; readonly n: number }

export interface Stage {
  readonly store: RunStore;
  /** The turn jobs that exist, in the order of delivery. */
  jobs(): Promise<readonly StageJob[]>;
  /** What the queue does when a handler is done. */
  removeJob(job: StageJob): Promise<void>;
  passTime(ms: number): void;
  /** Undoes the last steps that changed something, but never the creation of the run. */
  loseWrites(count: number): Promise<void>;
  /** The scenario is over. Deliveries that never end hold the stage until their timers do. */
  close?(): void;
}

export function memoryStage(protections: Partial<Protections> = {}): Stage {
  const store = createMemoryRunStore();
  Object.assign(store.protections, protections);
  return {
    store,
    jobs: () => Promise.resolve(store.jobs().filter((job) => job.type === 'turn')),
    removeJob: (job) => { store.removeJob({ type: 'turn', ...job }); return Promise.resolve(); },
    passTime: (ms) => { store.passTime(ms); },
    loseWrites: (count) => { store.rollBack(Math.min(count, store.writes - 1)); return Promise.resolve(); },
    close: () => { store.forget(); },
  };
}

const prefix = 'il';
const queue = `{${prefix}:00}:turns`;
const writers = ['claim', 'commit', 'appendMany', 'command', 'handBack', 'pump', 'finished'] as const;

/** Empties the Redis it is given. Time does not pass in it: its scenarios wait for nothing. */
export async function redisStage(redis: RedisClient): Promise<Stage> {
  await redis.flushdb();
  const real = createRunStore({ redis, jobs: turnJobs({ prefix }) }, { prefix, shards: 1 });
  const history: Dump[] = [];
  const remember = async (): Promise<void> => {
    const dump = await dumpOf(redis);
    if (JSON.stringify([...dump]) !== JSON.stringify([...(history.at(-1) ?? [])])) history.push(dump);
  };
  const watched = Object.fromEntries(writers.map((name) => [name, async (...args: unknown[]) => {
    await remember();
    return (real[name] as (...args: unknown[]) => Promise<unknown>)(...args);
  }])) as Pick<RunStore, (typeof writers)[number]>;
  return {
    store: { ...real, ...watched },
    jobs: async () => {
      const ids = await redis.zrange(`${queue}:prioritized`, 0, '-1');
      return ids.flatMap((id) => { const at = id.lastIndexOf('-'); const n = Number(id.slice(at + 1)); return Number.isNaN(n) ? [] : [{ run_id: id.slice(0, at), n }]; });
    },
    removeJob: async ({ run_id, n }) => {
      await redis.multi().zrem(`${queue}:prioritized`, `${run_id}-${n}`).del(`${queue}:${run_id}-${n}`).exec();
    },
    passTime: () => undefined,
    loseWrites: async (count) => {
      await remember();
      const target = history[Math.max(0, history.length - 1 - count)];
      if (target !== undefined) await restore(redis, target);
    },
  };
}

type Dump = ReadonlyMap<string, string>;

async function dumpOf(redis: RedisClient): Promise<Dump> {
  const keys = (await redis.keys('*')).sort();
  const values = await Promise.all(keys.map((key) => redis.dumpBuffer(key)));
  return new Map(keys.map((key, index) => [key, values[index]?.toString('base64') ?? '']));
}

async function restore(redis: RedisClient, dump: Dump): Promise<void> {
  await redis.flushdb();
  await Promise.all([...dump].map(([key, value]) => redis.restore(key, 0, Buffer.from(value, 'base64'))));
}
