import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { asked, begins, createdRun, createTestApi, ends, keysOf, type TestApi } from '../fixtures/test-api.ts';

let api: TestApi;
beforeEach(() => { api = createTestApi(); });
afterEach(() => api.close());

const post = (body: unknown, token = keysOf.alpha) => api.app.inject({ method: 'POST', url: '/v1/runs/cancel', ...asked(token, body) });

async function cancelled(body: unknown): Promise<string[]> {
  const answer = await post(body);
  expect([answer.statusCode, answer.json().cancelled]).toEqual([202, answer.json().run_ids.length]);
  return answer.json<{ run_ids: string[] }>().run_ids.sort();
}

async function isCancelling(run_id: string): Promise<boolean> {
  const claimed = await api.memory.claim({ run_id, n: Math.max(...api.memory.jobs().filter((job) => job.run_id === run_id).map((job) => job.n)), claim_id: 'look', held: null });
  return claimed.type === 'claimed' && claimed.inbox.some(({ command }) => command.type === 'cancel');
}

test('cancels the live runs that the filter names, and no others', async () => {
  const [blue, red, session] = [await createdRun(api, { input: 'x', tags: ['blue'] }), await createdRun(api, { input: 'x', tags: ['red'], metadata: { order: 7, by: 'ann' } }), await createdRun(api, { agent: 'seer', input: 'x' })];
  const ended = await createdRun(api, { input: 'x', tags: ['blue'] });
  await api.work(ended, begins);
  await api.work(ended, ends);
  const foreign = await createdRun(api, { input: 'x', tags: ['blue'] }, keysOf.beta);
  expect(await cancelled({ tag: 'blue' })).toEqual([blue]);
  expect([await isCancelling(blue), await isCancelling(red), await isCancelling(foreign)]).toEqual([true, false, false]);
  expect(await cancelled({ metadata: { order: 7, by: 'ann' } })).toEqual([red]);
  expect(await cancelled({ metadata: { order: 8 } })).toEqual([]);
  expect(await cancelled({ agent: 'seer', status: 'queued' })).toEqual([session]);
  expect(await cancelled({ created_after: '2030-01-01T00:00:00Z' })).toEqual([]);
  expect(await cancelled({ status: 'paused' })).toEqual([]);
  expect(await cancelled({ all: true })).toEqual([blue, red, session].sort());
  expect((await api.app.inject({ url: `/v1/runs/${ended}`, ...asked(keysOf.alpha) })).json().status).toBe('completed');
});

describe('a request that does not say what it means', () => {
  test.each<[unknown, string]>([
    [undefined, ''], [{}, ''], [{ metadata: {} }, ''], [{ cursor: 'x' }, ''], [{ all: false }, 'all'], [{ all: true, tag: 'x' }, 'all'], [{ status: 'completed' }, 'status'], [{ colour: 'red' }, 'colour'], [{ tag: 'x', cursor: 'x' }, 'cursor'], [{ metadata: Object.fromEntries(Array.from({ length: 51 }, (_, n) => [`k${n}`, n])) }, 'metadata'],
  ])('%j is refused, and nothing is cancelled', async (body, path) => {
    const id = await createdRun(api);
    const answer = await post(body);
    expect([answer.statusCode, answer.json().code, answer.json().errors[0].path]).toEqual([422, 'invalid_request', path]);
    expect(await isCancelling(id)).toBe(false);
  });
});

test('a run that ends meanwhile is passed over', async () => {
  const [one, two] = [await createdRun(api), await createdRun(api)];
  const racing = createTestApi({ store: () => ({ ...api.memory, command: async (sent) => (sent.run_id === one ? { type: 'invalid_state', status: 'completed' } : api.memory.command(sent)) }) });
  const answer = await racing.app.inject({ method: 'POST', url: '/v1/runs/cancel', ...asked(keysOf.alpha, { all: true }) });
  expect(answer.json()).toEqual({ cancelled: 1, run_ids: [two], next_cursor: null });
  await racing.close();
});

test('goes on from its cursor', async () => {
  const ids = [await createdRun(api), await createdRun(api), await createdRun(api)];
  const cursor = Buffer.from(ids.toSorted()[2]!).toString('base64url');
  expect(await cancelled({ all: true, cursor })).toEqual(ids.toSorted().slice(0, 2));
});

test('a store that goes away in the middle: some are cancelled, and it is said that nobody knows', async () => {
  for (let count = 0; count < 3; count++) await createdRun(api);
  let left = 1;
  const broken = createTestApi({ store: () => ({ ...api.memory, command: (sent) => (left-- > 0 ? api.memory.command(sent) : Promise.reject(new Error('connect ECONNREFUSED'))) }) });
  const answer = await broken.app.inject({ method: 'POST', url: '/v1/runs/cancel', ...asked(keysOf.alpha, { all: true }) });
  expect([answer.statusCode, answer.json().code]).toEqual([503, 'outcome_unknown']);
  const none = await broken.app.inject({ method: 'POST', url: '/v1/runs/cancel', ...asked(keysOf.alpha, { all: true }) });
  expect([none.statusCode, none.json().code]).toEqual([503, 'unavailable']);
  await broken.close();
});
