/** R8, C61 and C62: a Redis that is full refuses politely and loses nothing; one that would evict is not worked with. */
import { connectRedis } from '@treadle/run-store';
import { reply } from '@treadle/testkit';
import { afterEach, expect, test } from 'vitest';
import { until } from '../e2e/processes.ts';
import { problemsOf } from './checker.ts';
import { allEnded, historyOf, startChaos, type ChaosStage } from './stage.ts';

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

interface Answer { readonly status: number; readonly retryAfter: string | null; readonly body: { id?: string; code?: string } }

async function create(here: ChaosStage, input: string): Promise<Answer> {
  const response = await fetch(`${here.url}/v1/runs`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ agent: 'tester', input }) });
  return { status: response.status, retryAfter: response.headers.get('retry-after'), body: await response.json() as Answer['body'] };
}

test('C61: a full Redis: posts are answered 503 with Retry-After, workers live on, and all that was accepted completes when there is room', async () => {
  const here = stage = await startChaos({ contextWindow: 1_000_000, script: () => reply({ text: 'done' }) });
  await here.workers.start(1);
  const pids = [...here.workers.roles, ...here.api.roles].map((role) => role.pid);
  await config(here, 'maxmemory', '64mb');
  // Runs that wait behind nobody: their inputs fill the memory before a worker can have ended them all.
  const accepted: string[] = [];
  const refused: Answer[] = [];
  const input = `[[full]] ${'x'.repeat(900_000)}`;
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
  await config(here, 'maxmemory', '0');
  await allEnded(here, accepted, 120_000);
  expect([...here.workers.roles, ...here.api.roles].map((role) => role.pid)).toEqual(pids);
  // A request that was answered 503 has not left a run behind.
  const listed = (await here.client.runs({ limit: '200' })).data.map((run) => run.id);
  expect(listed.filter((id) => !accepted.includes(id))).toEqual([]);
  expect(problemsOf(await historyOf(here, accepted, [], { usagePerReply: null }))).toEqual([]);
}, 240_000);

test.each(['allkeys-lru', 'volatile-lru'])('C62: a Redis that would evict (%s) is not worked with: both processes say why and end with 2', async (policy) => {
  const here = stage = await startChaos();
  await config(here, 'maxmemory-policy', policy);
  for (const role of ['api', 'worker'] as const) {
    await expect(here.more(role)).rejects.toThrow(/maxmemory-policy/);
  }
}, 60_000);
