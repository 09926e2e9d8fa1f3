/** C64 with a real Redis: away means 503 in time, and nothing that was answered so happens afterwards. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { turnJobs } from '@treadle/queue';
import { connectRedis, createRunStore } from '@treadle/run-store';
import { startRedis, type RedisServer } from '@treadle/testkit';
import { asked, createTestApi, keysOf, type TestApi } from '../fixtures/test-api.ts';

let server: RedisServer;
let redis: ReturnType<typeof connectRedis>;
let api: TestApi;

beforeAll(async () => {
  server = await startRedis();
  redis = connectRedis(server.url, { role: 'api' });
  const store = createRunStore({ redis, jobs: turnJobs({ prefix: 'test' }) }, { prefix: 'test', shards: 2 });
  api = createTestApi({ store: () => store });
  await new Promise((resolve) => { redis.once('ready', resolve); });
});
afterAll(async () => {
  await api.close();
  redis.disconnect();
  await server.stop();
});

const create = (key: string) => api.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, { input: 'x' }, { 'idempotency-key': key }) });
const cancel = (id: string) => api.app.inject({ method: 'POST', url: `/v1/runs/${id}/cancel`, ...asked(keysOf.alpha) });
const runIds = async () => (await api.app.inject({ url: '/v1/runs?limit=200', ...asked(keysOf.alpha) })).json<{ data: { id: string }[] }>().data.map((run) => run.id);

/** While Redis is away: 20 runs and 5 cancels are asked for at once. */
async function askAll(prefix: string, id: string) {
  const startMs = performance.now();
  const answers = await Promise.all([
    ...Array.from({ length: 20 }, (_, n) => create(`${prefix}-${n}`)), ...Array.from({ length: 5 }, () => cancel(id)),
  ]);
  expect(new Set(answers.map((answer) => `${answer.statusCode} ${answer.json().code}`))).toEqual(new Set(['503 unavailable']));
  expect(performance.now() - startMs).toBeLessThan(5000);
}

async function expectNoGhosts(prefix: string, before: readonly string[]): Promise<void> {
  await expect.poll(async () => (await create(`${prefix}-0`)).statusCode, { timeout: 15_000, interval: 100 }).toBe(202);
  const after = await runIds();
  expect(after.filter((id) => !before.includes(id))).toHaveLength(1);
  expect((await create(`${prefix}-0`)).statusCode).toBe(200);
}

test('a run is made once by 50 parallel requests with one key', async () => {
  const answers = await Promise.all(Array.from({ length: 50 }, () => create('fifty')));
  expect(new Set(answers.map((answer) => answer.json<{ id: string }>().id)).size).toBe(1);
  expect(answers.filter((answer) => answer.statusCode === 202)).toHaveLength(1);
});

test('a Redis that hangs', async () => {
  const { id } = (await create('live-1')).json<{ id: string }>();
  const before = await runIds();
  process.kill(server.pid, 'SIGSTOP');
  try {
    await askAll('hung', id);
  } finally {
    process.kill(server.pid, 'SIGCONT');
  }
  await expectNoGhosts('hung', before);
  expect((await api.app.inject({ url: `/v1/runs/${id}/events`, ...asked(keysOf.alpha) })).json<{ data: unknown[] }>().data).toHaveLength(2);
});

test('a Redis that is gone', async () => {
  const { id } = (await create('live-2')).json<{ id: string }>();
  const before = await runIds();
  await server.kill();
  await askAll('gone', id);
  await server.restart();
  await expectNoGhosts('gone', before);
});

test('a batch of a thousand that a Redis which goes away has interrupted is completed by its key, each run once', async () => {
  const batch = () => api.app.inject({ method: 'POST', url: '/v1/runs/batch', ...asked(keysOf.alpha, { runs: Array.from({ length: 1000 }, (_, n) => ({ input: `${n}`, tags: [`batch-${n}`] })) }, { 'idempotency-key': 'thousand' }) });
  const indexed = async () => (await Promise.all([0, 1].map((shard) => redis.zcard(`{test:0${shard}}:index:alpha`)))).reduce((sum, count) => sum + count, 0);
  const before = await indexed();
  const interrupted = batch();
  await expect.poll(indexed, { interval: 1 }).toBeGreaterThan(before + 50);
  await server.kill();
  expect([(await interrupted).statusCode, (await interrupted).json().code]).toEqual([503, 'outcome_unknown']);
  await server.restart();
  await expect.poll(async () => (await batch()).statusCode, { timeout: 30_000, interval: 200 }).toBeLessThan(300);
  const whole = await batch();
  expect(whole.statusCode).toBe(200);
  const { data } = whole.json<{ data: { id: string; tags: string[] }[] }>();
  expect(data.map(({ tags }) => tags[0])).toEqual(Array.from({ length: 1000 }, (_, n) => `batch-${n}`));
  expect(new Set(data.map(({ id }) => id)).size).toBe(1000);
  expect(await indexed()).toBe(before + 1000);
}, 60_000);
