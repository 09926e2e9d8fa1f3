import { afterEach, expect, test } from 'vitest';
import { asked, begins, createdRun, createTestApi, ends, increments, keysOf, type TestApi } from '../fixtures/test-api.ts';
import { createBacklogGuard, type BacklogGuard } from './backlog.ts';

let api: TestApi;
let guard: BacklogGuard;
afterEach(async () => {
  guard.stop();
  await api.close();
});

const create = (key: string) => api.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, { input: 'x' }, { 'idempotency-key': key }) });

test('with more in the archive’s backlog than is allowed no new run is taken; those under way go on, repeats are answered, and it ends with the backlog', async () => {
  api = createTestApi({ deps: { full: () => guard.full() } });
  guard = createBacklogGuard(api.memory, { shards: 1, most: 20 });
  const first = await create('first');
  const { id } = first.json<{ id: string }>();
  await api.work(id, [...begins, ...increments(30)]);
  await guard.look();
  const refused = await create('second');
  expect([refused.statusCode, refused.json<{ code: string }>().code, refused.headers['retry-after']]).toEqual([503, 'unavailable', '2']);
  expect(refused.json<{ detail: string }>().detail).toMatch(/^35 events wait for the archive, more than 20/);
  expect((await create('first')).statusCode).toBe(200);
  const fork = await api.app.inject({ method: 'POST', url: `/v1/runs/${id}/fork`, ...asked(keysOf.alpha, { after_seq: 2 }) });
  expect(fork.statusCode).toBe(503);
  await api.work(id, ends);
  await api.archiveRun(id);
  await guard.look();
  expect((await create('second')).statusCode).toBe(202);
});

test('without a bound nobody looks', async () => {
  api = createTestApi();
  guard = createBacklogGuard({ archiveBacklog: () => Promise.reject(new Error('asked')) }, { shards: 1, most: 0 });
  expect(guard.full()).toBeNull();
  await createdRun(api);
});
