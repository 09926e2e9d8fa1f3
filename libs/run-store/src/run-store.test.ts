import { redisOfFile, runStoreConformance } from '@treadle/testkit';
import { underTest } from './fixtures/under-test.ts';
import { connectRedis, type RedisClient } from './index.ts';

let redis: RedisClient;
let count = 0;

redisOfFile(({ url }) => redis = connectRedis(url, { role: 'command' }));

runStoreConformance('Redis, with BullMQ’s script inside ours', () => underTest(redis, { prefix: `t${++count}`, shards: 1 }));
