import { decodeEvent, type RunEvent, type WebhookTarget } from '@treadle/core';
import { finishRun } from '@treadle/engine';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { asked, begins, createdRun, createTestApi, ends, keysOf, type TestApi } from '../fixtures/test-api.ts';

let api: TestApi;
const problem = (target: WebhookTarget) => 'endpoint' in target && target.endpoint !== 'backend' ? { field: 'endpoint' as const, problem: 'no endpoint has this name' } : 'url' in target && target.url.includes('127.') ? { field: 'url' as const, problem: 'expected a public address' } : null;
beforeEach(() => { api = createTestApi({ deps: { webhookProblem: problem } }); });
afterEach(async () => { await api.close(); });

const get = async (query = '', token: string | null = keysOf.alpha) => api.app.inject({ url: `/v1/webhooks/deliveries${query}`, ...asked(token) });
const post = async (id: string, token: string | null = keysOf.alpha) => api.app.inject({ method: 'POST', url: `/v1/webhooks/deliveries/${id}/redeliver`, ...asked(token) });
const all = { limit: 10, per_tenant: 10, per_lane: 10, busy: {}, lease_ms: 1000 };
const idOf = (run_id: string) => run_id.replace('run_', 'msg_');

/** A run that has ended, and whose end is to be told. */
async function ended(webhook: unknown = 'https://a.example/hook?token=of-the-query', token = keysOf.alpha): Promise<string> {
  const run_id = await createdRun(api, { input: 'x', ...(webhook === 'none' ? {} : { webhook }) }, token);
  await api.work(run_id, [...begins, ...ends]);
  await finishRun({ store: api.memory }, run_id);
  return run_id;
}

async function settled(run_id: string, how: Parameters<typeof api.memory.settleDelivery>[1]): Promise<void> {
  const taken = (await api.memory.takeDeliveries(0, all)).find((each) => each.run_id === run_id)!;
  expect(await api.memory.settleDelivery(taken, how)).toBe('settled');
}

test.each([
  ['https://a.example/hook?x=1', { url: 'https://a.example/hook?x=1' }], [{ url: 'https://a.example' }, { url: 'https://a.example' }], [{ endpoint: 'backend' }, { endpoint: 'backend' }], [undefined, null],
])('a run that names %j has it in its log', async (webhook, kept) => {
  const run_id = await createdRun(api, { input: 'x', ...(webhook === undefined ? {} : { webhook }) });
  const [created] = (await api.memory.events(run_id, 0, 1))!.events.map((text) => decodeEvent(text) as RunEvent & { webhook?: unknown });
  expect(created?.webhook).toEqual(kept);
});

test.each([
  ['http://127.0.0.1/', 'webhook'], [{ url: 'http://127.0.0.1/' }, 'webhook.url'], [{ endpoint: 'other' }, 'webhook.endpoint'], [5, 'webhook'], [{}, 'webhook'], [null, 'webhook'], [{ url: 'https://a.example', endpoint: 'backend' }, 'webhook'],
])('%j is refused', async (webhook, path) => {
  const answer = await api.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, { input: 'x', webhook }) });
  expect([answer.statusCode, answer.json().code]).toEqual([422, 'invalid_request']);
  expect(answer.json<{ errors: { path: string }[] }>().errors.every((error) => error.path.startsWith(path))).toBe(true);
});

test('a fork tells nobody unless it is said', async () => {
  const run_id = await ended();
  const fork = async (more: object) => api.app.inject({ method: 'POST', url: `/v1/runs/${run_id}/fork`, ...asked(keysOf.alpha, { after_seq: 2, input: 'again', ...more }) });
  for (const [more, kept] of [[{}, null], [{ webhook: { endpoint: 'backend' } }, { endpoint: 'backend' }]] as const) {
    const { id } = (await fork(more)).json<{ id: string }>();
    expect((decodeEvent((await api.memory.events(id, 0, 1))!.events[0]!) as { webhook?: unknown }).webhook).toEqual(kept);
  }
  expect((await fork({ webhook: { endpoint: 'other' } })).statusCode).toBe(422);
});

test('a delivery is shown as it stands, without the query of its address', async () => {
  const [run_id, named] = [await ended(), await ended({ endpoint: 'backend' })];
  const of = async (id: string) => (await get(`?run_id=${id}`)).json<{ data: Record<string, unknown>[]; next_cursor: null }>();
  expect(await of(run_id)).toEqual({
    data: [{
      id: idOf(run_id), run_id, url: 'https://a.example/hook', endpoint: null, status: 'pending', attempts: 0, last_attempt_at: null, last_status: null, last_error: null,
      next_attempt_at: expect.stringMatching(/Z$/) as string, created_at: expect.stringMatching(/Z$/) as string,
    }], next_cursor: null,
  });
  expect((await of(named)).data).toMatchObject([{ url: null, endpoint: 'backend' }]);
  const taken = await api.memory.takeDeliveries(0, all);
  await api.memory.settleDelivery(taken.find((each) => each.run_id === run_id)!, { type: 'dead', status: 410, error: 'the receiver answered 410' });
  expect((await of(run_id)).data).toMatchObject([{ status: 'dead', attempts: 1, last_status: 410, last_error: 'the receiver answered 410', next_attempt_at: null, last_attempt_at: expect.any(String) as string }]);
  expect((await get('?status=pending')).json()).toMatchObject({ data: [{ run_id: named }] });
  expect((await get(`?status=pending&run_id=${run_id}`)).json()).toMatchObject({ data: [] });
});

test('the body is the run as it is read', async () => {
  const run_id = await ended();
  const [taken] = await api.memory.takeDeliveries(0, all);
  const read = (await api.app.inject({ url: `/v1/runs/${run_id}`, ...asked(keysOf.alpha) })).json<Record<string, unknown>>();
  expect(JSON.parse(taken!.body)).toEqual({ type: 'run.completed', timestamp: read['ended_at'], data: read });
});

test('a list goes page by page, newest first', async () => {
  const runs = [];
  for (let n = 0; n < 5; n++) runs.unshift(await ended());
  const found: string[] = [];
  for (let query: string | null = '?limit=2'; query !== null;) {
    const page: { data: { run_id: string }[]; next_cursor: string | null } = (await get(query)).json();
    found.push(...page.data.map((each) => each.run_id));
    query = page.next_cursor === null ? null : `?limit=2&cursor=${page.next_cursor}`;
  }
  expect(found).toEqual(runs);
  for (const query of ['?cursor=x', '?limit=0', '?limit=201', '?status=gone', '?state=dead']) expect([query, (await get(query)).statusCode]).toEqual([query, 422]);
});

test('what has ended is sent again; what is on its way is not', async () => {
  const run_id = await ended();
  expect([(await post(idOf(run_id))).statusCode, (await post(idOf(run_id))).json().code]).toEqual([409, 'invalid_state']);
  await settled(run_id, { type: 'dead', status: null, error: 'no connection' });
  const answer = await post(idOf(run_id));
  expect([answer.statusCode, answer.json()]).toMatchObject([202, { id: idOf(run_id), run_id, status: 'pending', attempts: 1 }]);
  expect((await post(idOf(run_id))).statusCode).toBe(409);
  await settled(run_id, { type: 'delivered', status: 200 });
  expect((await post(idOf(run_id))).statusCode).toBe(202);
});

test('what waits for its next attempt is sent now', async () => {
  const run_id = await ended();
  await settled(run_id, { type: 'retry', delay_ms: 3_600_000, status: 503, error: 'the receiver answered 503' });
  const answer = await post(idOf(run_id));
  expect([answer.statusCode, answer.json()]).toMatchObject([202, { status: 'pending', attempts: 1 }]);
  expect(Date.parse(answer.json<{ next_attempt_at: string }>().next_attempt_at)).toBeLessThan(Date.now() + 60_000);
  expect((await post(idOf(run_id))).statusCode).toBe(409);
});

test('another tenant\'s delivery is not there, nor is one that was never', async () => {
  const run_id = await ended('none', keysOf.beta);
  const theirs = await ended('https://b.example/', keysOf.beta);
  const absent = 'msg_0193f0c0a0007000800000000000aa00';
  const bodies = new Set<string>();
  for (const id of [idOf(theirs), idOf(run_id), absent, theirs, 'x', '%00']) {
    const answer = await post(id);
    expect([id, answer.statusCode]).toEqual([id, 404]);
    bodies.add(answer.body);
  }
  expect(bodies.size).toBe(1);
  expect((await get()).json()).toEqual({ data: [], next_cursor: null });
  for (const query of [`?run_id=${theirs}`, `?run_id=${absent}`, '?run_id=x', `?cursor=${Buffer.from(`run_${'f'.repeat(32)}`).toString('base64url')}`]) expect((await get(query)).json()).toEqual({ data: [], next_cursor: null });
  expect((await get('', keysOf.beta)).json()).toMatchObject({ data: [{ run_id: theirs }] });
});

test('keys need their scopes', async () => {
  const run_id = await ended();
  expect([(await get('', null)).statusCode, (await get('', keysOf.alphaRead)).statusCode, (await post(idOf(run_id), keysOf.alphaRead)).statusCode]).toEqual([401, 200, 403]);
  expect((await post(idOf(run_id), keysOf.alphaWrite)).statusCode).toBe(409);
});

test('with its run a delivery is gone', async () => {
  const run_id = await ended();
  expect((await api.app.inject({ method: 'DELETE', url: `/v1/runs/${run_id}`, ...asked(keysOf.alpha) })).statusCode).toBe(202);
  expect((await get()).json()).toMatchObject({ data: [] });
  expect((await post(idOf(run_id))).statusCode).toBe(404);
});

test('with the store away both say so', async () => {
  const run_id = await ended();
  await api.close();
  api = createTestApi({ store: (store) => ({ ...store, deliveries: () => Promise.reject(new Error('Connection is closed.')), redeliver: () => Promise.reject(new Error('Connection is closed.')) }) });
  expect([(await get()).statusCode, (await post(idOf(run_id))).json()]).toMatchObject([503, { status: 503 }]);
});
