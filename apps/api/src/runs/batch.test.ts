import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RunDirectory } from '@treadle/engine';
import { asked, createdRun, createTestApi, keysOf, type TestApi } from '../fixtures/test-api.ts';

let api: TestApi;
let store: Partial<RunDirectory>;
beforeEach(() => {
  store = {};
  api = createTestApi({ store: (inner) => new Proxy(inner, { get: (target, name: keyof RunDirectory) => store[name] ?? target[name] }), options: { callTimeoutMs: 300 } });
});
afterEach(() => api.close());

const post = (body: unknown, key?: string, token = keysOf.alpha) => api.app.inject({ method: 'POST', url: '/v1/runs/batch', ...asked(token, body, key === undefined ? {} : { 'idempotency-key': key }) });
const count = async (): Promise<number> => (await api.app.inject({ url: '/v1/runs?limit=200', ...asked(keysOf.alpha) })).json().data.length;
const inputs = (many: number) => Array.from({ length: many }, (_, index) => ({ input: `run ${index}`, tags: [`t${index}`] }));

test('creates the runs and answers them in their order', async () => {
  const answer = await post({ runs: [...inputs(20), { agent: 'seer', input: 'x', priority: 1 }] });
  const { data } = answer.json<{ data: { id: string; agent: string; tags: string[] }[] }>();
  expect(answer.statusCode).toBe(202);
  expect(data.map(({ agent, tags }) => [agent, ...tags])).toEqual([...inputs(20).map(({ tags }) => ['assistant', ...tags]), ['seer']]);
  expect(new Set(data.map(({ id }) => id)).size).toBe(21);
  expect((await api.app.inject({ url: `/v1/runs/${data[7]!.id}`, ...asked(keysOf.alpha) })).json()).toEqual(data[7]);
});

describe('one that is not valid', () => {
  const good = { input: 'x' };
  const image = { type: 'image', media_type: 'image/png', data: 'AAAA' };
  test.each<[string, unknown, number, string, string]>([
    ['no body', undefined, 422, 'invalid_request', ''], ['no runs', {}, 422, 'invalid_request', 'runs'], ['none at all', { runs: [] }, 422, 'invalid_request', 'runs'],
    ['more than a thousand', { runs: Array.from({ length: 1001 }, () => good) }, 422, 'invalid_request', 'runs'],
    ['a run without an input', { runs: [good, {}] }, 422, 'invalid_request', 'runs.1.input'],
    ['an unknown field', { runs: [good, good, { input: 'x', colour: 'red' }] }, 422, 'invalid_request', 'runs.2.colour'],
    ['what comes later', { runs: [good, { input: 'x', concurrency_key: 'k' }] }, 422, 'not_supported', 'runs.1.concurrency_key'],
    ['an unknown agent', { runs: [good, { input: 'x', agent: 'nobody' }] }, 404, 'agent_not_found', 'runs.1.agent'],
    ['a limit above the maximum', { runs: [good, { input: 'x', limits: { max_turns: 11 } }] }, 422, 'limit_above_maximum', 'runs.1.limits.max_turns'],
    ['an image that nobody sees', { runs: [good, { input: [image] }] }, 422, 'invalid_request', 'runs.1.input.0'],
    ['an unknown chain', { runs: [good, { input: 'x', chain: 'nothing' }] }, 422, 'invalid_request', 'runs.1.chain'],
    ['an unknown session', { runs: [good, { input: 'x', session_id: `ses_${'1'.repeat(30)}00` }] }, 404, 'not_found', 'runs.1.session_id'],
  ])('%s: none is created, and the key is still free', async (_, body, status, code, path) => {
    const answer = await post(body, 'k');
    expect([answer.statusCode, answer.json().code, answer.json().errors[0].path]).toEqual([status, code, path]);
    expect(await count()).toBe(0);
    expect((await post({ runs: [good] }, 'k')).statusCode).toBe(202);
  });

  test('a session that is busy, or would be: none is created', async () => {
    const { id, session_id } = (await api.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, good) })).json<{ id: string; session_id: string }>();
    const free = (await api.app.inject({ method: 'POST', url: '/v1/sessions', ...asked(keysOf.alpha) })).json<{ id: string }>().id;
    const busy = await post({ runs: [good, { input: 'x', session_id }] });
    expect([busy.statusCode, busy.json().code, busy.json().errors]).toEqual([409, 'session_busy', [{ path: 'runs.1.session_id', problem: `busy with ${id}` }]]);
    const twice = await post({ runs: [{ input: 'x', session_id: free }, good, { input: 'y', session_id: free }] });
    expect([twice.statusCode, twice.json().errors]).toEqual([409, [{ path: 'runs.2.session_id', problem: 'busy with runs.0' }]]);
    expect(await count()).toBe(1);
  });
});

test('runs of one session follow each other in their order', async () => {
  const session_id = (await api.app.inject({ method: 'POST', url: '/v1/sessions', ...asked(keysOf.alpha) })).json<{ id: string }>().id;
  const { data } = (await post({ runs: Array.from({ length: 6 }, (_, index) => ({ input: `${index}`, session_id, on_busy: 'queue' })) })).json<{ data: { id: string }[] }>();
  expect(data.map(({ id }) => id)).toEqual(data.map(({ id }) => id).toSorted());
  expect(api.memory.jobs().map((job) => job.run_id)).toEqual([data[0]!.id]);
});

describe('the key', () => {
  test('is the whole batch’s: the same runs again, also where their session is busy with them; another body is a conflict', async () => {
    const session_id = (await api.app.inject({ method: 'POST', url: '/v1/sessions', ...asked(keysOf.alpha) })).json<{ id: string }>().id;
    const body = { runs: [...inputs(5), { input: 'x', session_id }] };
    const [first, again] = [await post(body, 'k'), await post(body, 'k')];
    expect([first.statusCode, again.statusCode, again.json()]).toEqual([202, 200, first.json()]);
    const other = await post({ runs: inputs(4) }, 'k');
    expect([other.statusCode, other.json().code]).toEqual([409, 'idempotency_conflict']);
    expect(await count()).toBe(6);
    // One of a run, or of another tenant, is another key.
    expect((await api.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, { input: 'x' }, { 'idempotency-key': 'k' }) })).statusCode).toBe(202);
    expect((await post({ runs: inputs(1) }, 'k', keysOf.beta)).statusCode).toBe(202);
  });

  test('completes what the store’s absence has interrupted, each run once', async () => {
    let left = 7;
    store.create = (run) => (left-- > 0 ? api.memory.create(run) : Promise.reject(new Error('connect ECONNREFUSED')));
    const interrupted = await post({ runs: inputs(30) }, 'k');
    expect([interrupted.statusCode, interrupted.json().code, interrupted.json().detail]).toEqual([503, 'outcome_unknown', expect.stringContaining('Asking again with the same Idempotency-Key and body answers these, and tries the rest.')]);
    expect(await count()).toBe(7);
    delete store.create;
    const { data } = (await post({ runs: inputs(30) }, 'k')).json<{ data: { tags: string[] }[] }>();
    expect(data.map(({ tags }) => tags)).toEqual(inputs(30).map(({ tags }) => tags));
    expect(await count()).toBe(30);
    expect((await post({ runs: inputs(30) }, 'k')).json()).toEqual({ data });
  });

  test('two requests at once make the runs once', async () => {
    const answers = await Promise.all([post({ runs: inputs(12) }, 'k'), post({ runs: inputs(12) }, 'k'), post({ runs: inputs(12) }, 'k')]);
    expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
    expect(await count()).toBe(12);
  });
});

test('a store that is away from the start: 503 unavailable, and nothing has happened', async () => {
  store.now = () => Promise.reject(new Error('connect ECONNREFUSED'));
  const answer = await post({ runs: inputs(3) });
  expect([answer.statusCode, answer.json().code, await count()]).toEqual([503, 'unavailable', 0]);
});

test('a run that is refused in the middle is named; the others are there', async () => {
  const session_id = (await api.app.inject({ method: 'POST', url: '/v1/sessions', ...asked(keysOf.alpha) })).json<{ id: string }>().id;
  // Somebody else is quicker, between the look and the creation.
  store.session = async (id) => { const seen = await api.memory.session(id); await createdRun(api, { input: 'first', session_id }).catch(() => undefined); return seen; };
  const answer = await post({ runs: [...inputs(3), { input: 'x', session_id }] });
  expect([answer.statusCode, answer.json().code, answer.json().errors[0].path]).toEqual([409, 'session_busy', 'runs.3']);
  expect(answer.json().detail).toContain('Other runs of the batch were created. Without an Idempotency-Key asking again makes these again.');
  // Three of the batch, and the one of somebody else.
  expect(await count()).toBe(4);
});

test('the body may have eight megabytes, where others may have one', async () => {
  const large = { input: 'x'.repeat(900 * 1024) };
  expect((await post({ runs: [large, large, large] })).statusCode).toBe(202);
  const tooLarge = await post({ runs: Array.from({ length: 10 }, () => large) });
  expect([tooLarge.statusCode, tooLarge.json().code, tooLarge.json().detail]).toEqual([413, 'body_too_large', 'A body may have 8388608 bytes.']);
  expect((await api.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, { input: 'x'.repeat(1200 * 1024) }) })).statusCode).toBe(413);
});
