import { runStoreConformance, startRedis, type RedisServer } from '@treadle/testkit';
import { afterAll, beforeAll } from 'vitest';
import { underTest } from './fixtures/under-test.ts';
import { connectRedis, type RedisClient } from './index.ts';

let server: RedisServer;
let redis: RedisClient;
let count = 0;

beforeAll(async () => {
  server = await startRedis();
  redis = connectRedis(server.url, { role: 'command' });
});

afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

runStoreConformance('Redis, with BullMQ’s script inside ours', () => underTest(redis, { prefix: `t${++count}`, shards: 1 }));
