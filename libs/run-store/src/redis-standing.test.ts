import { startRedis, type RedisServer } from '@treadle/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectRedis, type RedisClient } from './redis-connection.ts';
import { createRedisStanding } from './redis-standing.ts';

let server: RedisServer;
let redis: RedisClient;
beforeAll(async () => {
  server = await startRedis();
  redis = connectRedis(server.url, { role: 'command' });
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

test('what Redis has become is told, as soon as it is looked at again', async () => {
  let now = 0;
  const standing = createRedisStanding(redis, { monotonicMs: () => now, everyMs: 1000 });
  expect(await standing.look()).toEqual({ problems: [], warnings: [] });
  await redis.config('SET', 'maxmemory-policy', 'allkeys-lfu');
  await redis.config('SET', 'appendfsync', 'everysec');
  now = 999;
  expect(await standing.look()).toEqual({ problems: [], warnings: [] });
  now = 1000;
  expect(await standing.look()).toEqual({ problems: [expect.stringContaining('maxmemory-policy is allkeys-lfu') as string], warnings: [expect.stringContaining('appendfsync is everysec') as string] });
  await redis.config('SET', 'maxmemory-policy', 'noeviction');
  await redis.config('SET', 'appendfsync', 'always');
  now = 2000;
  expect(await standing.look()).toEqual({ problems: [], warnings: [] });
});

test('of a Redis that does not answer it says what it said before, and asks again at once', async () => {
  await redis.config('SET', 'maxmemory-policy', 'volatile-ttl');
  let now = 0;
  const standing = createRedisStanding(redis, { monotonicMs: () => now });
  expect((await standing.look()).problems).toHaveLength(1);
  now = 60_000;
  process.kill(server.pid, 'SIGSTOP');
  try {
    expect((await standing.look()).problems).toHaveLength(1);
  } finally {
    process.kill(server.pid, 'SIGCONT');
  }
});
