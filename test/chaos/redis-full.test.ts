/** R8, C61 and C62: a Redis that is full refuses politely and loses nothing; one that would evict is not worked with. */
import { connectRedis } from '@treadle/run-store';
import { reply } from '@treadle/testkit';
import { afterEach, expect, test } from 'vitest';
import { until } from '../e2e/processes.ts';
import { problemsOf } from './checker.ts';
import { scaled } from './random.ts';
import { allEnded, historyOf, listedRuns, startChaos, type ChaosStage } from './stage.ts';

let stage: ChaosStage | null = null;
afterEach(async () => {
  await stage?.stop();
  stage = null;
});

async function config(here: ChaosStage, name: string, value: string): Promise<void> {
  const redis = connectRedis(here.redis.url, { role: 'command' });
  await redis.config('SET', name, value);
  redis.disconnect();
}

async function usedMb(here: ChaosStage): Promise<number> {
  const redis = connectRedis(here.redis.url, { role: 'command' });
  const used = /used_memory:(\d+)/.exec(await redis.info('memory'))?.[1];
  redis.disconnect();
  return Number(used) / 1024 / 1024;
}

interface Answer { readonly status: number; readonly retryAfter: string | null; readonly body: { id?: string; code?: string } }

async function create(here: ChaosStage, input: string): Promise<Answer> {
  const response = await fetch(`${here.url}/v1/runs`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ agent: 'tester', input }) });
  return { status: response.status, retryAfter: response.headers.get('retry-after'), body: await response.json() as Answer['body'] };
}

/** Posts until Redis has no room left; who was accepted, and that each other one was told to come again. */
async function fill(here: ChaosStage, round: number): Promise<string[]> {
  const accepted: string[] = [];
  const refused: Answer[] = [];
  const input = `[[full-${round}]] ${'x'.repeat(900_000)}`;
  await until('Redis is full', async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => create(here, input)));
    for (const answer of answers) {
      if (answer.status === 202) accepted.push(answer.body.id!);
      else refused.push(answer);
    }
    return refused.length >= 8;
  }, 60_000);
  expect(refused.filter(({ status, retryAfter, body }) => status !== 503 || retryAfter === null || (body.code !== 'unavailable' && body.code !== 'outcome_unknown'))).toEqual([]);
  expect(accepted.length).toBeGreaterThan(10);
  return accepted;
}

test('C61: a full Redis: posts are answered 503 with Retry-After, workers live on, and all that was accepted completes when there is room', async () => {
  const here = stage = await startChaos({ contextWindow: 1_000_000, script: () => reply({ text: 'done' }) });
  await here.workers.start(1);
  const pids = [...here.workers.roles, ...here.api.roles].map((role) => role.pid);
  const all: string[] = [];
  let rounds = 0;
  // Ended runs stay in Redis until their retention is over; what was there before has its room beside the new ones.
  for (const wanted = scaled({ small: 1, large: 200 }); all.length < wanted; rounds++) {
    await config(here, 'maxmemory', `${64 + Math.ceil(await usedMb(here))}mb`);
    // Runs that wait behind nobody: their inputs fill the memory before a worker can have ended them all.
    const accepted = await fill(here, rounds);
    await config(here, 'maxmemory', '0');
    await allEnded(here, accepted, 120_000);
    all.push(...accepted);
  }
  process.stdout.write(`full: ${all.length} runs accepted, Redis was full ${rounds} times\n`);
  expect([...here.workers.roles, ...here.api.roles].map((role) => role.pid)).toEqual(pids);
  // A request that was answered 503 has not left a run behind.
  const listed = await listedRuns(here);
  expect(listed.filter((id) => !all.includes(id))).toEqual([]);
  expect(problemsOf(await historyOf(here, all, [], { usagePerReply: null }))).toEqual([]);
}, scaled({ small: 240_000, large: 1_200_000 }));

test.each(['allkeys-lru', 'volatile-lru'])('C62: a Redis that would evict (%s) is not worked with: both processes say why and end with 2', async (policy) => {
  const here = stage = await startChaos();
  await config(here, 'maxmemory-policy', policy);
  for (const role of ['api', 'worker'] as const) {
    await expect(here.more(role)).rejects.toThrow(/maxmemory-policy/);
  }
}, 60_000);
