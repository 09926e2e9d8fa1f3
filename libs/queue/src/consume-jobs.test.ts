import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Job, JobConsumer, JobHandler } from '@treadle/engine';
import { startRedis, type RedisServer } from '@treadle/testkit';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { consumeJobs, queueDepths, turnJobs, type ConsumerOptions } from './index.ts';

let server: RedisServer;
let redis: Redis;
let prefix: string;
let count = 0;
let open: JobConsumer[] = [];
let errors: Error[] = [];

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url, { maxRetriesPerRequest: null });
  redis.on('error', () => undefined);
});

beforeEach(() => {
  prefix = `c${++count}`;
  errors = [];
});

afterEach(async () => {
  await Promise.all(open.map((consumer) => consumer.close()));
  open = [];
});

afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

async function add(run_id: string, n: number, shard = 0): Promise<void> {
  const jobs = turnJobs({ prefix });
  const keys = jobs.keys(shard);
  const call = n === 0 ? "add_job(KEYS, 'finish', ARGV[1], 0, 'front', 50)" : "add_job(KEYS, 'turn', ARGV[1], tonumber(ARGV[2]), 'begun', 50)";
  await redis.eval(`${jobs.lua}\n${call}`, keys.length, ...keys, run_id, n);
}

function consume(handler: JobHandler, options: Partial<ConsumerOptions> & { shards?: number } = {}): JobConsumer {
  const { shards = 1, ...rest } = options;
  const connect = (): Redis => new Redis(server.url, { maxRetriesPerRequest: null });
  const consumer = consumeJobs({ connect, prefix, shards }, { concurrency: 4, leaseMs: 8000, handler, onError: (error) => { errors.push(error); }, ...rest });
  open.push(consumer);
  return consumer;
}

const left = () => redis.keys(`{${prefix}:00}:turns:run_*`);

test('delivers turns and finish jobs of every shard, and keeps nothing of what is done', async () => {
  const seen: Job[] = [];
  consume(async (job) => { seen.push(job); return 'done'; }, { shards: 2 });
  await add('run_a', 1);
  await add('run_b', 7, 1);
  await add('run_a', 0);
  await vi.waitFor(() => { expect(seen).toHaveLength(3); }, 5000);
  expect(seen).toEqual(expect.arrayContaining([{ type: 'turn', run_id: 'run_a', n: 1 }, { type: 'turn', run_id: 'run_b', n: 7 }, { type: 'finish', run_id: 'run_a' }]));
  await vi.waitFor(async () => { expect(await redis.keys(`*${prefix}:*run_*`)).toEqual([]); });
  expect(errors).toEqual([]);
});

test('a job that is handed back comes again at once, ahead of what waits with its priority', async () => {
  const seen: string[] = [];
  await add('run_a', 1);
  await add('run_b', 1);
  consume(async ({ run_id }) => { seen.push(run_id); return seen.length === 1 ? 'hand_back' : 'done'; }, { concurrency: 1 });
  await vi.waitFor(() => { expect(seen).toEqual(['run_a', 'run_a', 'run_b']); }, 1500);
  expect(errors).toEqual([]);
});

test('says of each job once how long it has waited', async () => {
  const waited: number[] = [];
  let deliveries = 0;
  await add('run_a', 1);
  await vi.waitFor(async () => { expect(Number((await redis.time())[0]) * 1000 - Number(await redis.hget(`{${prefix}:00}:turns:run_a-1`, 'timestamp'))).toBeGreaterThan(1000); }, 5000);
  consume(async () => { deliveries++; return deliveries === 1 ? 'hand_back' : 'done'; }, { concurrency: 1, onTaken: (ms) => { waited.push(ms); } });
  await vi.waitFor(() => { expect(deliveries).toBe(2); }, 5000);
  expect(waited).toHaveLength(1);
  expect(waited[0]).toBeGreaterThan(100);
});

test('a job that a closing worker hands back is taken by another at once', async () => {
  let hand = (): void => undefined;
  const told = new Promise<void>((resolve) => { hand = resolve; });
  let taken = false;
  const first = consume(async () => { taken = true; await told; return 'hand_back'; });
  await add('run_a', 1);
  await vi.waitFor(() => { expect(taken).toBe(true); }, 5000);
  const seen: Job[] = [];
  consume(async (job) => { seen.push(job); return 'done'; });
  const blocked = async (): Promise<number> => Number(/blocked_clients:(\d+)/.exec(await redis.info('clients'))?.[1]);
  await vi.waitFor(async () => { expect(await blocked()).toBe(2); }, 5000);
  const closed = first.close();
  await vi.waitFor(async () => { expect(await blocked()).toBe(1); }, 5000);
  hand();
  await closed;
  await vi.waitFor(() => { expect(seen).toHaveLength(1); }, 1000);
});

test('a job whose handler throws is never lost; it comes again after a pause', async () => {
  let calls = 0;
  const times: number[] = [];
  consume(async () => {
    times.push(performance.now());
    if (++calls < 3) throw new Error('broken');
    return 'done';
  }, { retryPauseMs: 100 });
  await add('run_a', 1);
  await vi.waitFor(async () => { expect([calls, await left()]).toEqual([3, []]); }, 5000);
  expect(times[1]! - times[0]!).toBeGreaterThan(90);
  expect(errors.map((error) => error.message)).toEqual(['broken', 'broken']);
});

test('a job of a killed holder is delivered again when its lease has run out', async () => {
  const holder = spawn(process.execPath, [join(import.meta.dirname, 'fixtures/holder.ts'), server.url, prefix, '600'], { stdio: ['ignore', 'pipe', 'inherit'] });
  await add('run_a', 1);
  const [line] = await once(holder.stdout, 'data') as [Buffer];
  expect(JSON.parse(line.toString())).toEqual({ type: 'turn', run_id: 'run_a', n: 1 });
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  const seen: Job[] = [];
  consume(async (job) => { seen.push(job); return 'done'; }, { leaseMs: 600 });
  await vi.waitFor(async () => { expect([seen, await left()]).toEqual([[{ type: 'turn', run_id: 'run_a', n: 1 }], []]); }, 10_000);
}, 20_000);

test('BullMQ’s own event stream is kept short', async () => {
  let done = 0;
  consume(async () => { done++; return 'done'; });
  await vi.waitFor(async () => { expect(await redis.hget(`{${prefix}:00}:turns:meta`, 'opts.maxLenEvents')).toBe('0'); }, 5000);
  for (let i = 0; i < 100; i++) await add(`run_${i}`, 1);
  await vi.waitFor(() => { expect(done).toBe(100); }, 5000);
  expect(await redis.xlen(`{${prefix}:00}:turns:events`)).toBeLessThan(20);
});

test('deaths without number do not make the queue give a job up', async () => {
  let calls = 0;
  consume(async (_job, signal) => {
    if (++calls < 6) await once(signal, 'abort');
    return 'done';
  }, { leaseMs: 200 });
  await add('run_a', 1);
  for (let dead = 1; dead < 6; dead++) {
    await vi.waitFor(() => { expect(calls).toBeGreaterThanOrEqual(dead); }, 5000);
    // Whoever holds the job has stopped renewing, as if it were dead.
    await redis.del(`{${prefix}:00}:turns:run_a-1:lock`);
  }
  await vi.waitFor(async () => { expect([calls >= 6, await left()]).toEqual([true, []]); }, 10_000);
}, 30_000);

test('a handler whose lock is gone is told, and its end harms nobody', async () => {
  const signals: AbortSignal[] = [];
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => { release = resolve; });
  consume(async (_job, signal) => {
    signals.push(signal);
    if (signals.length === 1) await released;
    return 'done';
  }, { leaseMs: 400 });
  await add('run_a', 1);
  await vi.waitFor(() => { expect(signals).toHaveLength(1); }, 5000);
  await redis.set(`{${prefix}:00}:turns:run_a-1:lock`, 'somebody else');
  await vi.waitFor(() => { expect(signals[0]!.aborted).toBe(true); }, 5000);
  release();
  await vi.waitFor(() => { expect(errors.length).toBeGreaterThan(0); });
  expect(await left()).toContain(`{${prefix}:00}:turns:run_a-1`);
  await redis.del(`{${prefix}:00}:turns:run_a-1:lock`);
  await vi.waitFor(async () => { expect([signals.length, await left()]).toEqual([2, []]); }, 5000);
});

test('a handler is told when no renewal was heard of for a whole lease, because Redis is away', async () => {
  const own = await startRedis();
  const signals: AbortSignal[] = [];
  const connect = (): Redis => new Redis(own.url, { maxRetriesPerRequest: null, retryStrategy: () => 50 });
  const consumer = consumeJobs({ connect, prefix, shards: 1 }, {
    concurrency: 1, leaseMs: 400, onError: () => undefined,
    handler: async (_job, signal) => { signals.push(signal); if (signals.length === 1) await once(signal, 'abort'); return 'done'; },
  });
  const jobs = turnJobs({ prefix });
  const client = new Redis(own.url);
  client.on('error', () => undefined);
  await client.eval(`${jobs.lua}\nadd_job(KEYS, 'turn', 'run_a', 1, 'begun', 50)`, 9, ...jobs.keys(0));
  await vi.waitFor(() => { expect(signals).toHaveLength(1); }, 5000);
  await own.kill();
  await vi.waitFor(() => { expect(signals[0]!.aborted).toBe(true); }, 3000);
  await own.restart();
  await vi.waitFor(async () => { expect(await client.keys('*run_a*')).toEqual([]); }, 10_000);
  client.disconnect();
  await consumer.close();
  await own.stop();
}, 30_000);

test('a lease that is renewed is not taken away', async () => {
  let aborted = false;
  let calls = 0;
  consume(async (_job, signal) => {
    calls++;
    signal.addEventListener('abort', () => { aborted = true; });
    await vi.waitFor(async () => { expect(Number(await redis.get(`${prefix}:done`))).toBe(1); }, 10_000);
    return 'done';
  }, { leaseMs: 300 });
  await add('run_a', 1);
  const stalledChecks = 5;
  for (let i = 0; i < stalledChecks; i++) {
    // Each check leaves this key for about its interval.
    await vi.waitFor(async () => { expect(await redis.del(`{${prefix}:00}:turns:stalled-check`)).toBe(1); }, 5000);
  }
  await redis.set(`${prefix}:done`, 1);
  await vi.waitFor(async () => { expect(await left()).toEqual([]); }, 5000);
  expect([aborted, calls]).toEqual([false, 1]);
});

test('two workers on one queue share its jobs, and each job goes to one of them', async () => {
  const seen: string[][] = [[], []];
  for (const mine of seen) consume(async ({ run_id }) => { mine.push(run_id); await new Promise((resolve) => { setImmediate(resolve); }); return 'done'; }, { concurrency: 2 });
  const ids = Array.from({ length: 200 }, (_, i) => `run_${i}`);
  await Promise.all(ids.map((id) => add(id, 1)));
  await vi.waitFor(() => { expect(seen.flat()).toHaveLength(200); }, 10_000);
  expect(seen.flat().sort()).toEqual(ids.sort());
  expect(seen.every((mine) => mine.length > 0)).toBe(true);
});

test('close takes nothing new, waits for what runs, and aborts nothing', async () => {
  let finish = (): void => undefined;
  const finishing = new Promise<void>((resolve) => { finish = resolve; });
  const signals: AbortSignal[] = [];
  const consumer = consume(async (_job, signal) => { signals.push(signal); await finishing; return 'done'; }, { concurrency: 1 });
  await add('run_a', 1);
  await vi.waitFor(() => { expect(signals).toHaveLength(1); }, 5000);
  let closed = false;
  const closing = consumer.close().then(() => { closed = true; });
  await add('run_b', 1);
  expect(closed).toBe(false);
  expect(signals[0]!.aborted).toBe(false);
  finish();
  await closing;
  expect(signals).toHaveLength(1);
  expect(await left()).toEqual([`{${prefix}:00}:turns:run_b-1`]);
});

test('depths count what waits and what is in hand', async () => {
  let finish = (): void => undefined;
  const finishing = new Promise<void>((resolve) => { finish = resolve; });
  for (const id of ['run_a', 'run_b', 'run_c']) await add(id, 1);
  expect(await queueDepths(redis, { prefix, shards: 2 })).toEqual([{ shard: 0, waiting: 3, active: 0 }, { shard: 1, waiting: 0, active: 0 }]);
  consume(async () => { await finishing; return 'done'; }, { concurrency: 1 });
  await vi.waitFor(async () => { expect(await queueDepths(redis, { prefix, shards: 1 })).toEqual([{ shard: 0, waiting: 2, active: 1 }]); }, 5000);
  finish();
});

test('a worker that hears nothing is told of and replaced; the new one takes what waits', async () => {
  const seen: Job[] = [];
  const consumer = consume(async (job) => { seen.push(job); return 'done'; }, { hearingMs: 100 });
  await add('run_before', 1);
  await vi.waitFor(() => { expect(seen).toHaveLength(1); });
  // What a paused queue looks like to a worker is what a deaf one looks like from outside.
  const queue = new Queue('turns', { connection: redis, prefix: `{${prefix}:00}` });
  await queue.pause();
  await add('run_waits', 1);
  await vi.waitFor(() => { expect(consumer.problems()).toEqual(['shard 0: jobs wait and none is taken']); }, { timeout: 5000 });
  await vi.waitFor(() => { expect(errors.map((error) => error.message)).toContain('shard 0: jobs wait and none is taken; its worker is replaced'); });
  await queue.resume();
  await vi.waitFor(() => { expect(seen).toHaveLength(2); }, { timeout: 5000 });
  await vi.waitFor(() => { expect(consumer.problems()).toEqual([]); }, { timeout: 5000 });
  await queue.close();
});
