import { startRedis, type RedisServer } from '@treadle/testkit';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readinessProblems } from './index.ts';

let server: RedisServer;
let redis: Redis;
const options = { prefix: 'ready', shards: 2 };

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url, { maxRetriesPerRequest: null });
  redis.on('error', () => undefined);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

test('a Redis that takes writes is ready, and what was written goes by itself', async () => {
  expect(await readinessProblems(redis, options)).toEqual([]);
  for (const shard of ['00', '01']) expect(await redis.pttl(`{ready:${shard}}:probe`)).toBeGreaterThan(0);
});

test('one that answers and takes no writes is not', async () => {
  await redis.config('SET', 'maxmemory', '1');
  expect(await redis.ping()).toBe('PONG');
  expect(await readinessProblems(redis, options)).toEqual(['Redis takes no writes']);
  await redis.config('SET', 'maxmemory', '0');
  expect(await readinessProblems(redis, options)).toEqual([]);
});

test('one that is away is not, and that is said in time', async () => {
  await server.kill();
  expect(await readinessProblems(redis, options)).toEqual(['Redis does not answer']);
  await server.restart();
});
