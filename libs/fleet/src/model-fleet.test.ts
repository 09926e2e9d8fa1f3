import { setTimeout as sleep } from 'node:timers/promises';
import { modelFleetConformance, startRedis, type FleetUnderTest, type RedisServer } from '@treadle/testkit';
import { Redis } from 'ioredis';
import { afterAll, beforeAll } from 'vitest';
import { createModelFleet } from './index.ts';

let server: RedisServer;
let redis: Redis;
let count = 0;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url, { enableAutoPipelining: false });
});

afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

/** A fleet that nobody knows yet. */
function under(): FleetUnderTest {
  const prefix = `t${++count}`;
  return {
    // A machine that is slow for a while must not fail a test that is not about that.
    join: (options) => createModelFleet({ redis, prefix, callTimeoutMs: 20_000, ...options }),
    passTime: async (ms) => { await sleep(Math.ceil(ms) + 1); }, nowMs: () => performance.now(), still: false, courses: 4, courseMinuteMs: 600,
  };
}

modelFleetConformance('one Redis server', under);
