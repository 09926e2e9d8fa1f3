import { boardQueues, turnJobs, type BoardQueues } from '@treadle/queue';
import { startRedis, type RedisServer } from '@treadle/testkit';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestApi, keysOf, type TestApi } from '../fixtures/test-api.ts';

let server: RedisServer;
let redis: Redis;
let board: BoardQueues;
let api: TestApi;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url, { maxRetriesPerRequest: null });
  const jobs = turnJobs({ prefix: 'board' });
  await redis.eval(`${jobs.lua}\nadd_job(KEYS, 'turn', 'run_seen', 1, 'first', 50)`, jobs.keys(1).length, ...jobs.keys(1));
  board = boardQueues({ redis, prefix: 'board', shards: 2, onError: () => undefined });
  api = createTestApi({ deps: { boardQueues: board.queues } });
});
afterAll(async () => {
  await api.close();
  await board.close();
  redis.disconnect();
  await server.stop();
});

const basic = (key: string) => ({ authorization: `Basic ${Buffer.from(`anybody:${key}`).toString('base64')}` });

test('the page, its files and its calls ask for an admin key, which a browser may send as a password', async () => {
  const page = await api.app.inject({ url: '/queues', headers: basic(keysOf.alpha) });
  expect([page.statusCode, page.headers['content-type']]).toEqual([200, expect.stringContaining('text/html')]);
  const file = /(?:src|href)="([^"]*static[^"]*\.(?:js|css))"/.exec(page.body)?.[1] ?? '';
  expect(file).not.toBe('');
  for (const url of ['/queues', '/queues/api/queues', new URL(file, 'http://x/queues/').pathname]) {
    const refused = await api.app.inject(url);
    expect([url, refused.statusCode, refused.headers['www-authenticate']]).toEqual([url, 401, 'Basic realm="treadle", charset="UTF-8"']);
    expect((await api.app.inject({ url, headers: basic('tk_wrong') })).statusCode, url).toBe(401);
    expect((await api.app.inject({ url, headers: basic(keysOf.alphaWrite) })).statusCode, url).toBe(403);
    for (const headers of [basic(keysOf.alpha), { authorization: `Bearer ${keysOf.alpha}` }]) expect((await api.app.inject({ url, headers })).statusCode, url).toBe(200);
  }
  // Nowhere else is a password a key.
  expect((await api.app.inject({ url: '/v1/runs', headers: basic(keysOf.alpha) })).statusCode).toBe(401);
});

test('the queues of all shards are shown with their jobs, and cannot be changed', async () => {
  const { queues } = (await api.app.inject({ url: '/queues/api/queues?activeQueue=shard%201%3A%20turns&page=1', headers: basic(keysOf.alpha) })).json<{ queues: { name: string; readOnlyMode: boolean; counts: Record<string, number> }[] }>();
  expect(queues.map(({ name, readOnlyMode, counts }) => [name, readOnlyMode, counts['prioritized']])).toEqual([['shard 0: turns', true, 0], ['shard 1: turns', true, 1]]);
  const before = (await redis.keys('*')).sort();
  for (const [method, url] of [['PUT', '/queues/api/queues/shard%201%3A%20turns/empty'], ['PUT', '/queues/api/queues/shard%201%3A%20turns/pause'], ['POST', '/queues/api/queues/shard%201%3A%20turns/add']] as const) {
    expect((await api.app.inject({ method, url, headers: basic(keysOf.alpha) })).statusCode, url).toBe(403);
  }
  expect((await redis.keys('*')).sort()).toEqual(before);
});
