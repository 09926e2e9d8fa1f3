import { startRedis, type RedisServer } from '@treadle/testkit';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { checked, loadAddScript } from './add-script.ts';
import { oldestWaiting, turnJobs } from './index.ts';

let server: RedisServer;
let redis: Redis;
let prefix: string;
let count = 0;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url, { maxRetriesPerRequest: null });
});

beforeEach(() => { prefix = `q${++count}`; });

afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

/** As a script of the run store calls the fragment. */
async function run(lua: string, ...args: (string | number)[]): Promise<unknown> {
  const jobs = turnJobs({ prefix });
  const keys = jobs.keys(0);
  return redis.eval(`${jobs.lua}\n${lua}`, keys.length, ...keys, ...args);
}

const add = (run_id: string, n: number, urgency = 'first', priority = 50) =>
  run("add_job(KEYS, 'turn', ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]))", run_id, n, urgency, priority);
const waiting = () => redis.zrange(`{${prefix}:00}:turns:prioritized`, 0, '-1');

test('the installed BullMQ is the one whose script was tried', () => {
  const script = loadAddScript();
  expect(checked(script)).toBe(script);
  expect(() => checked({ ...script, version: '6.7.1' })).toThrow(/version is 6\.7\.1, expected 6\.7\.0/);
  expect(() => checked({ ...script, keys: 10 })).toThrow(/keys is 10, expected 9/);
  expect(() => checked({ ...script, content: `${script.content} ` })).toThrow(/sha256 is/);
});

test('a job that our script adds is the one that BullMQ’s own client would add', async () => {
  await add('run_1', 3, 'begun', 7);
  const queue = new Queue('turns', { connection: redis, prefix: `{${prefix}:00}` });
  await queue.add('turn', { run_id: 'run_2', n: 3 }, { jobId: 'run_2-3', priority: 8, attempts: 1, removeOnComplete: true, removeOnFail: true });
  const hash = async (run_id: string) => {
    const { opts, data, timestamp, ...rest } = await redis.hgetall(`{${prefix}:00}:turns:${run_id}-3`);
    const { jobId: _, ...options } = JSON.parse(opts!) as Record<string, unknown>;
    return { ...rest, options, data: { ...JSON.parse(data!) as object, run_id: 'either' }, recent: Math.abs(Number(timestamp) - Date.now()) < 60_000 };
  };
  expect(await hash('run_1')).toEqual(await hash('run_2'));
  expect(await waiting()).toEqual(['run_1-3', 'run_2-3']);
  expect(await queue.getJobCounts()).toMatchObject({ prioritized: 2, waiting: 0, active: 0 });
  await queue.close();
});

test('a job that exists is not added again', async () => {
  await add('run_1', 1);
  await add('run_1', 1, 'front');
  expect(await waiting()).toEqual(['run_1-1']);
  expect(await redis.hget(`{${prefix}:00}:turns:run_1-1`, 'priority')).toBe('1050');
});

test('jobs are ordered by urgency, then by the run’s priority, then by time', async () => {
  for (const [id, urgency, priority] of [['a', 'first', 100], ['b', 'first', 1], ['c', 'begun', 100], ['d', 'begun', 1], ['e', 'front', 100], ['f', 'begun', 1]] as const) {
    await add(id, 1, urgency, priority);
  }
  expect(await waiting()).toEqual(['e-1', 'd-1', 'f-1', 'c-1', 'b-1', 'a-1']);
});

test('a finish job has an id of its own and says no number', async () => {
  await run("add_job(KEYS, 'finish', 'run_1', 0, 'front', 50)");
  expect(await waiting()).toEqual(['run_1-finish']);
  expect(await redis.hmget(`{${prefix}:00}:turns:run_1-finish`, 'name', 'data')).toEqual(['finish', '{"run_id":"run_1"}']);
});

test('whether a job exists can be asked', async () => {
  const has = (n: number) => run("return has_job(KEYS, 'turn', 'run_1', tonumber(ARGV[1])) and 'yes' or 'no'", n);
  await add('run_1', 1);
  expect([await has(1), await has(2)]).toEqual(['yes', 'no']);
});

test('a script that refuses before it adds has added nothing, one that goes on has', async () => {
  const script = "if ARGV[1] == 'old' then return 'fenced' end add_job(KEYS, 'turn', 'run_1', 2, 'begun', 50) return 'committed'";
  expect(await run(script, 'old')).toBe('fenced');
  expect(await redis.keys(`*${prefix}:*`)).toEqual([]);
  expect(await run(script, 'new')).toBe('committed');
  expect(await waiting()).toEqual(['run_1-2']);
});

test('one script can add many jobs', async () => {
  await run("for n = 1, 500 do add_job(KEYS, 'turn', 'run_1', n, 'begun', 50) end");
  expect(await redis.zcard(`{${prefix}:00}:turns:prioritized`)).toBe(500);
});

test('the job that waits longest is found whatever its priority, and none where none waits', async () => {
  const oldest = () => oldestWaiting(redis, { prefix, shard: 0 });
  const added = async (id: string, ms: number) => redis.hset(`{${prefix}:00}:turns:${id}`, 'timestamp', ms);
  expect(await oldest()).toBe(null);
  for (const [n, [urgency, priority]] of ([['first', 50], ['front', 1], ['first', 100], ['begun', 50], ['first', 100]] as const).entries()) await add('run_1', n, urgency, priority);
  for (const [n, ms] of [5000, 4000, 1000, 3000, 2000].entries()) await added(`run_1-${n}`, ms);
  expect(await oldest()).toBe(1000);
  await redis.zrem(`{${prefix}:00}:turns:prioritized`, 'run_1-2');
  expect(await oldest()).toBe(2000);
  await redis.lpush(`{${prefix}:00}:turns:wait`, 'given-back');
  await added('given-back', 500);
  expect(await oldest()).toBe(500);
});
