import { afterEach, beforeEach, expect, test } from 'vitest';
import { asked, begins, createTestApi, ends, keysOf, type TestApi } from '../fixtures/test-api.ts';

/** run_created and input_appended. */
const createdEvents = 2;
let api: TestApi;
beforeEach(() => {
  api = createTestApi();
});
afterEach(() => api.close());

const ask = (method: 'GET' | 'POST', url: string, { body, token = keysOf.alpha }: { body?: unknown; token?: string } = {}) =>
  api.app.inject({ method, url, ...asked(token, body) });

async function created(body: object, token?: string): Promise<{ id: string; session_id: string }> {
  const answer = await ask('POST', '/v1/runs', { body, ...(token === undefined ? {} : { token }) });
  if (answer.statusCode !== 202) throw new Error(answer.body);
  return answer.json();
}

test('a session begun without a run is there for the first one', async () => {
  const begun = await ask('POST', '/v1/sessions');
  const { id } = begun.json<{ id: string }>();
  expect([begun.statusCode, begun.headers.location, begun.json()]).toEqual([201, `/v1/sessions/${id}`, { id, current_run_id: null, last_run_id: null }]);
  const run = await created({ input: 'hello', session_id: id });
  expect((await ask('GET', `/v1/sessions/${id}`)).json()).toEqual({ id, current_run_id: run.id, last_run_id: null });
  await api.work(run.id, begins);
  await api.work(run.id, ends);
  expect((await ask('GET', `/v1/sessions/${id}`)).json()).toEqual({ id, current_run_id: null, last_run_id: run.id });
});

test('its log is that of its runs, oldest first, each whole, wherever they are', async () => {
  const first = await created({ input: 'one' });
  await api.work(first.id, begins);
  await api.work(first.id, ends);
  await api.archiveRun(first.id);
  const second = await created({ input: 'two', session_id: first.session_id });
  await api.work(second.id, begins);
  await created({ input: 'of another session' });
  const answer = await ask('GET', `/v1/sessions/${first.session_id}/events`);
  expect(answer.headers['content-type']).toMatch(/^application\/x-ndjson/);
  const events = answer.body.trimEnd().split('\n').map((line) => JSON.parse(line) as { run_id: string; seq: number; type: string });
  expect(events.map(({ run_id, seq }) => [run_id, seq])).toEqual([
    ...Array.from({ length: createdEvents + begins.length + ends.length }, (_, index) => [first.id, index + 1]),
    ...Array.from({ length: createdEvents + begins.length }, (_, index) => [second.id, index + 1]),
  ]);
  const listed = await ask('GET', `/v1/runs?session_id=${first.session_id}`);
  expect(listed.json<{ data: { id: string }[] }>().data.map((run) => run.id)).toEqual([second.id, first.id]);
});

test('the list pages through a tenant\'s sessions, newest first, each once', async () => {
  const ids: string[] = [];
  for (let n = 0; n < 5; n += 1) ids.push((await ask('POST', '/v1/sessions')).json<{ id: string }>().id);
  await created({ input: 'of another tenant' }, keysOf.beta);
  const seen: string[] = [];
  for (let url: string | null = '/v1/sessions?limit=2'; url !== null;) {
    const page: { data: { id: string }[]; next_cursor: string | null } = (await ask('GET', url)).json();
    seen.push(...page.data.map((session) => session.id));
    url = page.next_cursor === null ? null : `/v1/sessions?limit=2&cursor=${page.next_cursor}`;
  }
  expect(seen).toEqual(ids.toSorted().reverse());
});

test('what a tenant does not have is not found, whoever else has it', async () => {
  const { session_id } = await created({ input: 'hello' });
  const problems = [];
  for (const [id, token] of [[session_id, keysOf.beta], ['ses_none', keysOf.alpha], [session_id.slice(0, -1), keysOf.alpha], ['run_x', keysOf.alpha]] as const) {
    for (const path of ['', '/events']) problems.push((await ask('GET', `/v1/sessions/${id}${path}`, { token })).statusCode);
  }
  expect(problems).toEqual(Array.from({ length: 8 }, () => 404));
  expect((await ask('POST', '/v1/runs', { body: { input: 'x', session_id }, token: keysOf.beta })).statusCode).toBe(404);
});

test.each([['limit=0', 'limit'], ['cursor=cnVuX3g', 'cursor'], ['tag=x', 'tag']])('the list refuses %s', async (query, path) => {
  const answer = await ask('GET', `/v1/sessions?${query}`);
  expect([answer.statusCode, answer.json().code, answer.json().errors[0].path]).toEqual([422, 'invalid_request', path]);
});

test('creating takes no fields, and needs the write scope', async () => {
  const refused = await ask('POST', '/v1/sessions', { body: { metadata: {} } });
  expect([refused.statusCode, refused.json().code]).toEqual([422, 'invalid_request']);
  expect((await ask('POST', '/v1/sessions', { token: keysOf.alphaRead })).statusCode).toBe(403);
});
