import { setTimeout as sleep } from 'node:timers/promises';
import { turnJobs } from '@treadle/queue';
import { runStoreConformance, startRedis, type JobUnderTest, type RedisServer } from '@treadle/testkit';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll } from 'vitest';
import { connectRedis, createRunStore } from './index.ts';

let server: RedisServer;
let redis: Redis;
let count = 0;

beforeAll(async () => {
  server = await startRedis();
  redis = connectRedis(server.url, { role: 'command' });
});

afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

runStoreConformance('Redis, with BullMQ’s script inside ours', () => {
  const prefix = `t${++count}`;
  const graceMs = 100;
  const archiveAfterMs = 100;
  const store = createRunStore({ redis, jobs: turnJobs({ prefix }) }, { prefix, shards: 1, graceMs, archiveAfterMs });
  const queue = `{${prefix}:00}:turns`;
  return {
    store, graceMs, archiveAfterMs,
    passTime: async (ms) => { await sleep(ms); },
    jobs: async () => {
      const ids = await redis.zrange(`${queue}:prioritized`, 0, '-1');
      return Promise.all(ids.map(async (id): Promise<JobUnderTest> => {
        const [type, data] = await redis.hmget(`${queue}:${id}`, 'name', 'data');
        return { n: 0, ...JSON.parse(data!) as { run_id: string }, type: type as JobUnderTest['type'] };
      }));
    },
    loseJob: async ({ type, run_id, n }) => {
      const id = type === 'finish' ? `${run_id}-finish` : `${run_id}-${n}`;
      await redis.multi().zrem(`${queue}:prioritized`, id).del(`${queue}:${id}`).exec();
    },
  };
});
