import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { cronTimes } from '@treadle/cron';
import { fireSchedules, scheduledRunId } from '@treadle/engine';
import { testSpec } from '@treadle/testkit';
import { uuidv7 } from 'uuidv7';
import { asked, createTestApi, keysOf, type TestApi } from '../fixtures/test-api.ts';
import { scheduleSchema, type ScheduleView } from './schedule-schema.ts';

let api: TestApi;
beforeAll(() => { api = createTestApi(); });
afterAll(() => api.close());

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';
const ask = (method: Method, url: string, body?: unknown, { token = keysOf.alpha, headers = {} }: { token?: string; headers?: Record<string, string> } = {}) =>
  api.app.inject({ method, url: `/v1/schedules${url}`, ...asked(token, body, headers) });

const daily = { cron: '0 9 * * *', timezone: 'Europe/Berlin', run: { input: 'report' } };

async function created(body: object = {}, token?: string): Promise<ScheduleView> {
  const answer = await ask('POST', '', { ...daily, ...body }, token === undefined ? {} : { token });
  if (answer.statusCode !== 201) throw new Error(answer.body);
  return answer.json<ScheduleView>();
}

/** A worker's look at what is due, at the store's time. */
const work = () => fireSchedules({
  retention_ms: Infinity,
  store: api.memory, schedules: api.schedules, archive: api.archive, cron: cronTimes, clock: { nowMs: () => api.memory.nowMs(), monotonicMs: () => 0 }, random: { uuid: uuidv7, jitter: () => 0 }, shards: 2,
  agent: () => ({ spec: testSpec({ name: 'assistant' }), version: 'sha256:one' }),
}, 0, { limit: 100, concurrency: 2, retry_ms: 1000 });

test('a new one is answered 201 with where it is, when it is next due, and every default', async () => {
  const answer = await ask('POST', '', { ...daily, name: 'nightly', run: { input: 'report', tags: ['a', 'a'], limits: { max_turns: 3 } } });
  const schedule = answer.json<ScheduleView>();
  expect([answer.statusCode, answer.headers.location]).toEqual([201, `/v1/schedules/${schedule.id}`]);
  expect(scheduleSchema.safeParse(schedule).error).toBeUndefined();
  // The store's clock says 2023-11-14T22:13:20Z.
  expect(schedule).toEqual({
    id: expect.stringMatching(/^sch_[0-9a-f]{30}0[01]$/) as string, name: 'nightly', cron: '0 9 * * *', timezone: 'Europe/Berlin', catch_up_s: 3600, paused: false,
    run: { agent: 'assistant', input: 'report', limits: { max_turns: 3 }, metadata: {}, tags: ['a'], priority: 50, session_id: null, on_busy: 'reject', chain: null, webhook: null },
    created_at: '2023-11-14T22:13:20.000Z', next_run_at: '2023-11-15T08:00:00.000Z', last_run_at: null, last_run_id: null, last_error: null, counts: { fired: 0, skipped: 0, failed: 0 },
  });
  expect((await ask('GET', `/${schedule.id}`)).json()).toEqual(schedule);
});

describe('a bad request', () => {
  const image = { type: 'image', media_type: 'image/png', data: 'AAAA' };
  test.each<[string, unknown, number, string, string]>([
    ['nothing', undefined, 422, 'invalid_request', ''],
    ['no run', { cron: '* * * * *' }, 422, 'invalid_request', 'run'],
    ['no cron', { run: { input: 'x' } }, 422, 'invalid_request', 'cron'],
    ['a bad cron', { ...daily, cron: '61 * * * *' }, 422, 'invalid_request', 'cron'],
    ['seconds', { ...daily, cron: '*/5 * * * * *' }, 422, 'invalid_request', 'cron'],
    ['a day that never comes', { ...daily, cron: '0 0 30 2 *' }, 422, 'invalid_request', 'cron'],
    ['a bad zone', { ...daily, timezone: 'Mars' }, 422, 'invalid_request', 'timezone'],
    ['a window above an hour', { ...daily, catch_up_s: 3601 }, 422, 'invalid_request', 'catch_up_s'],
    ['an unknown field', { ...daily, colour: 'red' }, 422, 'invalid_request', 'colour'],
    ['a run with a time of its own', { ...daily, run: { input: 'x', run_at: '2030-01-01T00:00:00Z' } }, 422, 'invalid_request', 'run.run_at'],
    ['a run that steers', { ...daily, run: { input: 'x', on_busy: 'steer' } }, 422, 'invalid_request', 'run.on_busy'],
    ['a webhook nobody has', { ...daily, run: { input: 'x', webhook: { endpoint: 'nobody' } } }, 422, 'invalid_request', 'run.webhook.url'],
    ['no input', { ...daily, run: {} }, 422, 'invalid_request', 'run.input'],
    ['an unknown agent', { ...daily, run: { input: 'x', agent: 'nobody' } }, 404, 'agent_not_found', 'run.agent'],
    ['an unknown chain', { ...daily, run: { input: 'x', chain: 'nothing' } }, 422, 'invalid_request', 'run.chain'],
    ['a limit above the maximum', { ...daily, run: { input: 'x', limits: { max_turns: 11 } } }, 422, 'limit_above_maximum', 'run.limits.max_turns'],
    ['an image that nobody sees', { ...daily, run: { input: [image] } }, 422, 'invalid_request', 'run.input.0'],
    ['an unknown session', { ...daily, run: { input: 'x', session_id: `ses_${'1'.repeat(30)}00` } }, 404, 'not_found', 'run.session_id'],
    ['what comes later', { ...daily, run: { input: 'x', concurrency_key: 'k' } }, 422, 'not_supported', 'run.concurrency_key'],
  ])('%s', async (_, body, status, code, path) => {
    const answer = await ask('POST', '', body);
    expect([answer.statusCode, answer.json().code, answer.json().errors[0].path]).toEqual([status, code, path]);
  });

  test('an unknown chain is told which there are', async () => {
    expect((await ask('POST', '', { ...daily, run: { input: 'x', chain: 'nothing' } })).json().detail).toContain('there are: default, eyes');
  });
});

test('the same key is the same schedule; with another body a conflict; of a removed one nothing is left', async () => {
  const headers = { 'idempotency-key': 'once' };
  const [first, again] = [await ask('POST', '', daily, { headers }), await ask('POST', '', daily, { headers })];
  expect([first.statusCode, again.statusCode, again.json()]).toEqual([201, 200, first.json()]);
  expect((await ask('POST', '', { ...daily, name: 'other' }, { headers })).json().code).toBe('idempotency_conflict');
  expect((await ask('POST', '', daily, { headers, token: keysOf.beta })).statusCode).toBe(201);
  await ask('DELETE', `/${first.json().id}`);
  const gone = await ask('POST', '', daily, { headers });
  expect([gone.statusCode, gone.json().detail]).toEqual([404, expect.stringContaining('has been deleted')]);
});

test('another tenant’s are not there, whatever is asked', async () => {
  const theirs = await created({}, keysOf.beta);
  const absent = `sch_${'0'.repeat(32)}`;
  for (const [method, body] of [['GET', undefined], ['PATCH', { paused: true }], ['DELETE', undefined]] as const) {
    const [foreign, nobodys, malformed] = await Promise.all([theirs.id, absent, 'sch_x'].map((id) => ask(method, `/${id}`, body)));
    expect([method, foreign!.statusCode, foreign!.body, malformed!.body]).toEqual([method, 404, nobodys!.body, nobodys!.body]);
  }
  expect((await ask('GET', `/${theirs.id}`, undefined, { token: keysOf.beta })).json()).toEqual(theirs);
  expect((await ask('POST', '', daily, { token: keysOf.alphaRead })).statusCode).toBe(403);
});

test('are listed newest first, page by page', async () => {
  const own = createTestApi();
  const url = '/v1/schedules';
  const ids: string[] = [];
  for (const name of ['a', 'b', 'c']) ids.push((await own.app.inject({ method: 'POST', url, ...asked(keysOf.alpha, { ...daily, name }) })).json<ScheduleView>().id);
  const list = async (query: string) => (await own.app.inject({ url: `${url}${query}`, ...asked(keysOf.alpha) })).json<{ data: ScheduleView[]; next_cursor: string | null }>();
  const first = await list('?limit=2');
  const second = await list(`?limit=2&cursor=${first.next_cursor}`);
  expect([...first.data, ...second.data].map(({ id }) => id)).toEqual(ids.toSorted().reverse());
  expect([second.next_cursor, (await own.app.inject({ url: `${url}?cursor=x`, ...asked(keysOf.alpha) })).statusCode]).toEqual([null, 422]);
  await own.close();
});

test('a page ends early where its schedules are large', async () => {
  const own = createTestApi();
  const url = '/v1/schedules';
  for (let count = 0; count < 12; count++) await own.app.inject({ method: 'POST', url, ...asked(keysOf.alpha, { ...daily, run: { input: 'x'.repeat(900 * 1024) } }) });
  const ids: string[] = [];
  const sizes: number[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const page: { data: ScheduleView[]; next_cursor: string | null } = (await own.app.inject({ url: cursor === '' ? url : `${url}?cursor=${cursor}`, ...asked(keysOf.alpha) })).json();
    ids.push(...page.data.map(({ id }) => id));
    sizes.push(page.data.length);
    cursor = page.next_cursor;
  }
  expect([sizes, new Set(ids).size]).toEqual([[10, 2], 12]);
  await own.close();
});

describe('changing one', () => {
  test('a pause has no next time; it goes on where it stood', async () => {
    const { id, next_run_at } = await created();
    expect((await ask('PATCH', `/${id}`, { paused: true })).json()).toMatchObject({ paused: true, next_run_at: null });
    expect((await ask('PATCH', `/${id}`, { paused: false })).json()).toMatchObject({ paused: false, next_run_at });
  });

  test('other times are counted from now; the rest stays as it is, and null takes a name away', async () => {
    const before = await created({ name: 'x', run: { input: 'report', tags: ['a'] } });
    expect((await ask('PATCH', `/${before.id}`, { cron: '30 * * * *' })).json()).toEqual({ ...before, cron: '30 * * * *', next_run_at: '2023-11-14T22:30:00.000Z' });
    expect((await ask('PATCH', `/${before.id}`, { name: null, run: { input: 'other' } })).json()).toMatchObject({ name: null, cron: '30 * * * *', run: { input: 'other', tags: [] } });
  });

  test.each<[unknown, string]>([[{}, ''], [undefined, ''], [{ cron: 'x' }, 'cron'], [{ timezone: 'Mars' }, 'timezone'], [{ run: { input: 'x', limits: { max_turns: 99 } } }, 'run.limits.max_turns'], [{ id: 'x' }, 'id'], [{ paused: 'yes' }, 'paused']])(
    '%j is refused', async (body, path) => {
      const before = await created();
      const answer = await ask('PATCH', `/${before.id}`, body);
      expect([answer.statusCode, answer.json().errors[0].path]).toEqual([422, path]);
      expect((await ask('GET', `/${before.id}`)).json()).toEqual(before);
    });
});

test('a deleted one is gone; asked again the answer is the same', async () => {
  const { id } = await created();
  const first = await ask('DELETE', `/${id}`);
  expect([first.statusCode, first.json()]).toEqual([200, { id, deleted_at: expect.any(String) as string }]);
  expect((await ask('DELETE', `/${id}`)).json()).toEqual(first.json());
  for (const method of ['GET', 'PATCH'] as const) expect((await ask(method, `/${id}`, method === 'GET' ? undefined : { paused: true })).statusCode).toBe(404);
});

test('a tenant has a thousand at most', async () => {
  const own = createTestApi();
  const full = createTestApi({ deps: { schedules: { ...own.schedules, create: async (schedule) => own.schedules.create({ ...schedule, most: schedule.most - 1000 }) } } });
  const answer = await full.app.inject({ method: 'POST', url: '/v1/schedules', ...asked(keysOf.alpha, daily) });
  expect([answer.statusCode, answer.json().code]).toEqual([429, 'quota_exceeded']);
  await Promise.all([own.close(), full.close()]);
});

describe('what a worker makes of it', () => {
  afterEach(async () => { await api.close(); api = createTestApi(); });

  test('shows in the schedule, and in the run’s log', async () => {
    const { id } = await created({ cron: '30 22 * * *', timezone: 'UTC', run: { input: 'report', tags: ['mine'] } });
    api.memory.passTime(17 * 60_000);
    await work();
    const run_id = scheduledRunId(id, Date.parse('2023-11-14T22:30:00Z'));
    expect((await ask('GET', `/${id}`)).json()).toMatchObject({
      last_run_at: '2023-11-14T22:30:00.000Z', last_run_id: run_id, next_run_at: '2023-11-15T22:30:00.000Z', counts: { fired: 1, skipped: 0, failed: 0 }, last_error: null,
    });
    const log = await api.app.inject({ url: `/v1/runs/${run_id}/events`, ...asked(keysOf.alpha) });
    expect(log.json().data[0]).toMatchObject({ type: 'run_created', schedule_id: id });
    expect((await api.app.inject({ url: '/v1/runs?created_after=2023-11-14T22:20:00Z&tag=mine', ...asked(keysOf.alpha) })).json().data.map((run: { id: string }) => run.id)).toEqual([run_id]);
  });

  test('a session that is busy is said', async () => {
    const run = (await api.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, { input: 'x' }) })).json<{ id: string; session_id: string }>();
    const schedule = await created({ cron: '30 22 * * *', timezone: 'UTC', run: { input: 'more', session_id: run.session_id } });
    expect(schedule.id.slice(-2)).toBe(run.session_id.slice(-2));
    api.memory.passTime(17 * 60_000);
    await work();
    expect((await ask('GET', `/${schedule.id}`)).json()).toMatchObject({
      last_run_id: null, counts: { fired: 0, failed: 1 }, last_error: { due_at: '2023-11-14T22:30:00.000Z', code: 'session_busy', message: `The session was busy with ${run.id}.` },
    });
  });
});

test('a store that is away is said: before anything was sent 503 unavailable, afterwards outcome_unknown', async () => {
  const broken = createTestApi({ deps: { schedules: { ...api.schedules, create: () => Promise.reject(new Error('Command timed out')), schedule: () => Promise.reject(new Error('connect ECONNREFUSED')) } } });
  const post = await broken.app.inject({ method: 'POST', url: '/v1/schedules', ...asked(keysOf.alpha, daily) });
  const get = await broken.app.inject({ url: `/v1/schedules/sch_${'0'.repeat(32)}`, ...asked(keysOf.alpha) });
  expect([post.statusCode, post.json().code, get.statusCode, get.json().code]).toEqual([503, 'outcome_unknown', 503, 'unavailable']);
  await broken.close();
});
