import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { EventBody, LedgerEntry } from '@treadle/core';
import { asked, begins, createdRun, createTestApi, ends, increments, keysOf, type TestApi } from '../fixtures/test-api.ts';
import { runSchema } from './run-schema.ts';

let api: TestApi;
let inStore = true;
beforeAll(() => {
  api = createTestApi({ store: (store) => ({
    ...store,
    read: (run_id) => (inStore ? store.read(run_id) : Promise.resolve(null)),
    events: (run_id, after, limit) => (inStore ? store.events(run_id, after, limit) : Promise.resolve(null)),
    ledger: (run_id) => (inStore ? store.ledger(run_id) : Promise.resolve(null)),
  }) });
});
afterAll(() => api.close());

const get = (url: string, token = keysOf.alpha) => api.app.inject({ url, ...asked(token) });
const post = (url: string, body?: unknown, token = keysOf.alpha) => api.app.inject({ method: 'POST', url, ...asked(token, body) });

const toolTurn: readonly EventBody[] = [
  ...begins,
  { type: 'tool_use', tool_name: 'add', tool_input: { a: 1 }, tool_use_id: 'c1', provider_id: null, execution: 'serial' },
  { type: 'tool_use', tool_name: 'touch', tool_input: {}, tool_use_id: 'c2', provider_id: null, execution: 'serial' },
  { type: 'tool_result', tool_use_id: 'c1', tool_name: 'add', content: '3', is_error: false, duration: 1 },
  { type: 'tool_result', tool_use_id: 'c2', tool_name: 'touch', content: 'nobody knows', is_error: true, duration: 1, outcome: 'unknown' },
  { type: 'turn_end', duration: 1, usage: { input_tokens: 1, output_tokens: 1, cached_tokens: 0, wasted_tokens: 0, cost_usd: 0 } },
];
const entry = (tool_use_id: string, over: Partial<LedgerEntry>): LedgerEntry => ({
  tool_use_id, tool_name: 'add', status: 'settled', started_epoch: 1, settled_epoch: 1, idempotency_key: `key-${tool_use_id}`, effect: 'once', outcome: null, ...over,
});
const secondTurn: readonly EventBody[] = [{ type: 'turn_start', attempt: 1, worker: 'w' }, ...ends];

describe('the list of runs', () => {
  test('pages through a tenant\'s runs, newest first, each once', async () => {
    const own = createTestApi();
    const ids: string[] = [];
    for (let n = 0; n < 7; n++) ids.push(await createdRun(own, { input: `${n}`, tags: [n % 2 === 0 ? 'even' : 'odd'] }));
    await createdRun(own, { input: 'theirs' }, keysOf.beta);
    const seen: string[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const page: { json(): { data: { id: string }[]; next_cursor: string | null } } = await own.app.inject({ url: `/v1/runs?limit=3${cursor === '' ? '' : `&cursor=${cursor}`}`, ...asked(keysOf.alpha) });
      expect(runSchema.array().safeParse(page.json().data).error).toBeUndefined();
      seen.push(...page.json().data.map((run) => run.id));
      cursor = page.json().next_cursor;
    }
    expect(seen).toEqual(ids.toSorted().reverse());
    const filtered = async (query: string) => (await own.app.inject({ url: `/v1/runs?${query}`, ...asked(keysOf.alpha) })).json().data.length;
    expect([await filtered('tag=odd'), await filtered('status=running'), await filtered('agent=assistant&status=queued'), await filtered('agent=x')]).toEqual([3, 0, 7, 0]);
    await own.close();
  });

  test.each([['colour=red', 'invalid_request', 'colour'], ['limit=0', 'invalid_request', 'limit'], ['limit=201', 'invalid_request', 'limit'], ['limit=x', 'invalid_request', 'limit'],
    ['limit=1&limit=2', 'invalid_request', 'limit'], ['status=happy', 'invalid_request', 'status'], ['cursor=%21', 'invalid_request', 'cursor'],
    ['cursor=cnVuX3g', 'invalid_request', 'cursor'], ['stop_reason=tired', 'invalid_request', 'stop_reason'],
    ['session_id=', 'invalid_request', 'session_id'], ['metadata=v', 'invalid_request', 'metadata'], ['metadata[k]=v&metadata[k]=w', 'invalid_request', 'metadata[k]'],
    ['created_after=2020-01-01', 'invalid_request', 'created_after']])('refuses %s', async (query, code, path) => {
    const answer = await get(`/v1/runs?${query}`);
    expect([answer.statusCode, answer.json().code, answer.json().errors[0].path]).toEqual([422, code, path]);
  });
});

describe('waiting', () => {
  test('answers as soon as the run has ended', async () => {
    const id = await createdRun(api);
    const waiting = get(`/v1/runs/${id}/wait?timeout_ms=20000`);
    await expect.poll(() => api.followers.size).toBe(1);
    await api.work(id, begins);
    await api.work(id, ends);
    expect((await waiting).json()).toMatchObject({ id, status: 'completed', answer: 'The answer.' });
    expect((await get(`/v1/runs/${id}/wait`)).json().status).toBe('completed');
    expect(api.followers.size).toBe(0);
  });

  test('answers the run as it is when the time is over', async () => {
    const id = await createdRun(api);
    expect((await get(`/v1/runs/${id}/wait?timeout_ms=30`)).json()).toMatchObject({ id, status: 'queued' });
    expect((await get(`/v1/runs/${id}/wait?timeout_ms=0`)).json().status).toBe('queued');
    expect(api.followers.size).toBe(0);
  });

  test.each(['-1', '300001', 'soon', '1.5', ''])('refuses a timeout of "%s"', async (timeout) => {
    const id = await createdRun(api);
    expect((await get(`/v1/runs/${id}/wait?timeout_ms=${timeout}`)).statusCode).toBe(422);
  });
});

describe('transcript, ledger and replay', () => {
  test('say the same of a run in the store and of one that only the archive has', async () => {
    const id = await createdRun(api, { input: 'add it', metadata: { z: 1, a: { y: 2, b: 3 } } });
    await api.work(id, toolTurn, [entry('c1', {}), entry('c2', { tool_name: 'touch', outcome: 'unknown' })]);
    await api.work(id, [...secondTurn]);
    await api.archiveRun(id);
    const paths = ['', '/messages', '/ledger', '/events?limit=200', '/wait'];
    const stored = await Promise.all(paths.map(async (path) => (await get(`/v1/runs/${id}${path}`)).json()));
    expect(stored[1]).toMatchObject({ model: 'small', system: 'Be brief.', next_cursor: null });
    expect(stored[1].data.map((message: { role: string }) => message.role)).toEqual(['user', 'assistant', 'tool', 'tool', 'assistant']);
    expect(stored[2].data.map((call: { tool_use_id: string; status: string }) => [call.tool_use_id, call.status])).toEqual([['c1', 'settled'], ['c2', 'in_doubt']]);
    expect((await post(`/v1/runs/${id}/replay`)).json()).toEqual({ identical: true, events: stored[0].last_seq, differences: [] });

    inStore = false;
    try {
      const archived = await Promise.all(paths.map(async (path) => (await get(`/v1/runs/${id}${path}`)).json()));
      const shape = (call: { idempotency_key: string }) => ({ ...call, idempotency_key: '' });
      expect(archived[2].data.map(shape)).toEqual(stored[2].data.map(shape));
      expect([archived[0], archived[1], archived[3], archived[4]]).toEqual([stored[0], stored[1], stored[3], stored[4]]);
      expect((await post(`/v1/runs/${id}/replay`)).json()).toEqual({ identical: true, events: stored[0].last_seq, differences: [] });
      expect((await get(`/v1/runs/${id}`, keysOf.beta)).statusCode).toBe(404);
      expect((await post(`/v1/runs/${id}/cancel`)).statusCode).toBe(409);
    } finally {
      inStore = true;
    }
  });

  test('a steering text stands in the transcript as a user message with a note', async () => {
    const id = await createdRun(api);
    await api.work(id, [...begins, { type: 'steer', content: 'be quick' }]);
    expect((await get(`/v1/runs/${id}/messages`)).json().data[1]).toEqual({ role: 'user', note: 'steer', content: 'be quick' });
  });

  test('a call that was begun is started, and in doubt once another claim has written', async () => {
    const id = await createdRun(api);
    await api.work(id, toolTurn.slice(0, 5), [entry('c1', { status: 'started', settled_epoch: null })]);
    const status = async () => (await get(`/v1/runs/${id}/ledger`)).json().data[0].status;
    expect(await status()).toBe('started');
    await api.work(id, [{ type: 'turn_start', attempt: 2, worker: 'other' }]);
    expect(await status()).toBe('in_doubt');
  });

  test('replay names what differs', async () => {
    const liar = createTestApi({ store: (store) => ({
      ...store,
      read: async (run_id) => {
        const snapshot = await store.read(run_id);
        return snapshot && { ...snapshot, stored: { ...snapshot.stored, fields: { ...snapshot.stored.fields, tool_calls: '9' } } };
      },
    }) });
    const id = await createdRun(liar);
    const answer = await liar.app.inject({ method: 'POST', url: `/v1/runs/${id}/replay`, ...asked(keysOf.alpha) });
    expect(answer.json()).toEqual({ identical: false, events: 2, differences: [{ field: 'tool_calls', stored: 9, replayed: 0 }] });
    await liar.close();
  });
});

describe('the log as a JSON page', () => {
  test('pages to the end, and filters by type', async () => {
    const id = await createdRun(api);
    await api.work(id, [...begins, ...increments(20), ...ends]);
    const seqs: number[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const page: { data: { seq: number }[]; next_cursor: string | null } = (await get(`/v1/runs/${id}/events?limit=7${cursor === '' ? '' : `&cursor=${cursor}`}`)).json();
      seqs.push(...page.data.map((event) => event.seq));
      cursor = page.next_cursor;
    }
    expect(seqs).toEqual(Array.from({ length: 30 }, (_, index) => index + 1));
    const some = (await get(`/v1/runs/${id}/events?types=run_created,run_end&after=1`)).json();
    expect(some.data.map((event: { type: string }) => event.type)).toEqual(['run_end']);
  });
});

test('agents, models and chains are listed without what they are told', async () => {
  const [agents, models, chains] = await Promise.all(['/v1/agents', '/v1/models', '/v1/chains'].map(async (url) => (await get(url)).json()));
  expect(agents.data.map((agent: { name: string }) => agent.name)).toEqual(['assistant', 'seer']);
  expect(JSON.stringify(agents)).not.toContain('Be brief');
  expect([models.data.length, chains.data]).toEqual([2, [{ name: 'default', models: ['small'], canary: null }, { name: 'eyes', models: ['eye'], canary: null }]]);
});
