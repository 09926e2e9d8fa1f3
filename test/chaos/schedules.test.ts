/** Schedules on a real Redis that dies, by workers that die anywhere: one run for each time, and none is left out. */
import { decodeEvent } from '@treadle/core';
import { cronTimes } from '@treadle/cron';
import { fireSchedules, scheduledRunId, type FireDeps } from '@treadle/engine';
import { turnJobs } from '@treadle/queue';
import { connectRedis, createRedisClock, createRunStore, createScheduleStore, whenReady } from '@treadle/run-store';
import { createMemoryArchive, newScheduleId, someDefinition, startRedis, testSpec } from '@treadle/testkit';
import { uuidv7 } from 'uuidv7';
import { expect, test } from 'vitest';
import { randomFrom, type Random } from './random.ts';

const many = 60;
const workers = 4;
const jobs = turnJobs({ prefix: 'treadle' });

class Died extends Error {}

/** Every call may be the last of its process: before it was sent, or when it had happened and the answer had not come. */
function mortal<T extends object>(port: T, random: Random): T {
  return new Proxy(port, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]) => {
        const fate = random();
        if (fate < 0.04) throw new Died(`before ${String(name)}`);
        const answer: unknown = await Reflect.apply(value, target, args);
        if (fate < 0.08) throw new Died(`after ${String(name)}`);
        return answer;
      };
    },
  });
}

test('each time makes its one run, whoever races and dies in between, and Redis with them', async () => {
  const redis = await startRedis();
  const client = connectRedis(redis.url, { role: 'command', onError: () => undefined });
  const clock = await createRedisClock(client);
  const store = createRunStore({ redis: client, jobs }, { prefix: 'treadle', shards: 1 });
  const schedules = createScheduleStore({ redis: client, jobs }, { prefix: 'treadle', shards: 1 });
  const now = await store.now();
  const due = new Map<string, number>();
  for (let index = 0; index < many; index++) {
    const id = newScheduleId();
    // By the calendar they are due on New Year's Day alone; these times are what was left of an earlier rule.
    const definition = { ...someDefinition, cron: '0 0 1 1 *', timezone: 'UTC' };
    due.set(id, now - 2000 + index * 80);
    await schedules.restore({ id, tenant: 'acme', definition, paused: false, created_at_ms: now, version: 1, next_ms: due.get(id)!, last: null, fired: 0, skipped: 0, failed: 0, last_error: null });
  }

  let deaths = 0;
  let over = false;
  async function work(seed: number): Promise<void> {
    const random = randomFrom(seed);
    while (!over) {
      const own = connectRedis(redis.url, { role: 'command', onError: () => undefined });
      const deps: FireDeps = {
        store: mortal(createRunStore({ redis: own, jobs }, { prefix: 'treadle', shards: 1 }), random), schedules: mortal(createScheduleStore({ redis: own, jobs }, { prefix: 'treadle', shards: 1 }), random),
        archive: createMemoryArchive(), cron: cronTimes, clock, random: { uuid: uuidv7, jitter: Math.random }, shards: 1, retention_ms: Infinity, agent: () => ({ spec: testSpec({ name: 'assistant' }), version: 'v' }),
      };
      try {
        await whenReady(own);
        while (!over) {
          // Handed out again at once, so that workers do meet.
          await fireSchedules(deps, 0, { limit: 10, concurrency: 4, retry_ms: 1 });
          await new Promise((resolve) => { setTimeout(resolve, 5); });
        }
      } catch (error) {
        if (error instanceof Died) deaths++;
      } finally {
        own.disconnect();
      }
    }
  }
  const fleet = Array.from({ length: workers }, (_, index) => work(index + 1));
  const fired = async (): Promise<number> => (await Promise.all([...due.keys()].map((id) => schedules.schedule(id)))).filter((schedule) => schedule?.fired === 1).length;
  await expect.poll(fired, { timeout: 20_000 }).toBeGreaterThan(many / 4);
  await redis.kill();
  await redis.restart();
  await expect.poll(fired, { timeout: 30_000 }).toBe(many);
  over = true;
  await Promise.all(fleet);

  // The test tests something.
  expect(deaths).toBeGreaterThan(5);
  const { run_ids } = await store.list({ tenant: 'acme', status: null, agent: null, tag: null, session_id: null, before_id: null, limit: 200 });
  expect(run_ids.toSorted()).toEqual([...due].map(([id, ms]) => scheduledRunId(id, ms)).toSorted());
  for (const [id, due_ms] of due) {
    expect(await schedules.schedule(id)).toMatchObject({ fired: 1, skipped: 0, failed: 0, last: { due_ms, run_id: scheduledRunId(id, due_ms) } });
    const log = (await store.events(scheduledRunId(id, due_ms), 0, 10))!.events.map((text) => decodeEvent(text));
    expect(log.map((event) => event.type)).toEqual(['run_created', 'user_message']);
    // Nobody was early, by the store's clock.
    expect(log[0]).toMatchObject({ schedule_id: id });
    expect(log[0]!.ts * 1000).toBeGreaterThanOrEqual(due_ms - 5);
  }
  expect((await store.activeRuns(0)).queued).toBe(many);
  client.disconnect();
  await redis.stop();
}, 90_000);
