import { keyDirectoryConformance, redisOfFile, workerRegistryConformance } from '@treadle/testkit';
import { Redis } from 'ioredis';
import { createKeyDirectory, createWorkerRegistry } from './index.ts';

let redis: Redis;
let made = 0;
redisOfFile(({ url }) => redis = new Redis(url));
const forgetMs = 2000;

workerRegistryConformance('Redis', () => ({
  registry: createWorkerRegistry(redis, { prefix: `workers-${++made}`, forgetMs }), forgetMs,
  passTime: (ms) => new Promise((resolve) => { setTimeout(resolve, ms); }),
}));

keyDirectoryConformance('Redis', () => createKeyDirectory(redis, { prefix: `keys-${++made}` }));
