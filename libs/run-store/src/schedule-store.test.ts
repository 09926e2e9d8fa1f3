import { setTimeout as sleep } from 'node:timers/promises';
import { turnJobs } from '@treadle/queue';
import { newScheduleId, scheduleStoreConformance, someDefinition, redisOfFile, startRedis } from '@treadle/testkit';
import { expect, test } from 'vitest';
import { connectRedis, createScheduleStore, type RedisClient } from './index.ts';

let redis: RedisClient;
let count = 0;

redisOfFile(({ url }) => redis = connectRedis(url, { role: 'command' }));

const storeOf = (prefix: string, shards: number, keepRemovedMs?: number) => createScheduleStore({ redis, jobs: turnJobs({ prefix }) }, { prefix, shards, ...(keepRemovedMs === undefined ? {} : { keepRemovedMs }) });
const now = async (): Promise<number> => { const [seconds, micros] = await redis.time(); return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000); };

scheduleStoreConformance('Redis', () => ({ store: storeOf(`s${++count}`, 1), now, passTime: async (ms) => { await sleep(ms); } }));

test('a tenant’s schedules of all shards are counted and listed together', async () => {
  const store = storeOf(`s${++count}`, 3);
  const ids = [0, 1, 2, 1].map((shard) => newScheduleId(shard));
  const schedule = { tenant: 'acme', definition: someDefinition, paused: false, next_ms: null, not_after_ms: Number.MAX_SAFE_INTEGER };
  for (const id of ids.slice(0, 3)) expect(await store.create({ ...schedule, id, most: 3 })).toBe('created');
  expect(await store.create({ ...schedule, id: ids[3]!, most: 3 })).toBe('too_many');
  const first = await store.list({ tenant: 'acme', before_id: null, limit: 2 });
  const second = await store.list({ tenant: 'acme', before_id: first.next_before_id, limit: 2 });
  expect([...first.ids, ...second.ids]).toEqual(ids.slice(0, 3).reverse());
});

test('a removed one is forgotten a while after the archive has it; what is kept of one is bounded', async () => {
  const prefix = `s${++count}`;
  const store = storeOf(prefix, 1, 50);
  const id = newScheduleId();
  await store.create({ id, tenant: 'acme', definition: someDefinition, paused: false, next_ms: 1000, not_after_ms: Number.MAX_SAFE_INTEGER, most: 1 });
  await store.remove({ id, tenant: 'acme', not_after_ms: Number.MAX_SAFE_INTEGER });
  expect(Object.keys(await redis.hgetall(`{${prefix}:00}:schedule:${id}`)).sort()).toEqual(['removed_at', 'tenant', 'version']);
  await store.archived(id, 2);
  await expect.poll(() => redis.exists(`{${prefix}:00}:schedule:${id}`)).toBe(0);
  expect(await redis.keys(`{${prefix}:00}:*`)).toEqual([]);
});

test('what was acknowledged survives the death of the server', async () => {
  const own = await startRedis();
  const client = connectRedis(own.url, { role: 'command' });
  const store = createScheduleStore({ redis: client, jobs: turnJobs({ prefix: 'kill' }) }, { prefix: 'kill', shards: 1 });
  const id = newScheduleId();
  await store.create({ id, tenant: 'acme', definition: someDefinition, paused: false, next_ms: 1000, not_after_ms: Number.MAX_SAFE_INTEGER, most: 1 });
  await store.advance({ id, from_ms: 1000, next_ms: 2000, skipped: 0, outcome: { type: 'fired', due_ms: 1000, run_id: 'run_x' } });
  await own.kill();
  await own.restart();
  expect(await store.schedule(id)).toMatchObject({ next_ms: 2000, fired: 1 });
  expect((await store.due(0, { limit: 9, retry_ms: 1000 })).ids).toEqual([id]);
  client.disconnect();
  await own.stop();
});
