import { keyDirectoryConformance, startRedis, workerRegistryConformance, type RedisServer } from '@treadle/testkit';
import { Redis } from 'ioredis';
import { afterAll, beforeAll } from 'vitest';
import { createKeyDirectory, createWorkerRegistry } from './index.ts';

let server: RedisServer;
let redis: Redis;
let made = 0;
beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const forgetMs = 2000;

workerRegistryConformance('Redis', () => ({
  registry: createWorkerRegistry(redis, { prefix: `workers-${++made}`, forgetMs }), forgetMs,
  passTime: (ms) => new Promise((resolve) => { setTimeout(resolve, ms); }),
}));

keyDirectoryConformance('Redis', () => createKeyDirectory(redis, { prefix: `keys-${++made}` }));
