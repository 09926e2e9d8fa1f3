import { archiveDue } from '@treadle/engine';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { asked, begins, createdRun, createTestApi, ends, keysOf, type TestApi } from '../fixtures/test-api.ts';

let api: TestApi;
beforeAll(() => { api = createTestApi(); });
afterAll(() => api.close());

const remove = (id: string, token = keysOf.alpha) => api.app.inject({ method: 'DELETE', url: `/v1/runs/${id}`, ...asked(token) });
const get = (path: string, token = keysOf.alpha, headers = {}) => api.app.inject({ url: `/v1/runs/${path}`, ...asked(token, undefined, headers) });
const archiver = () => archiveDue({ store: api.memory, archive: api.archive, options: { segment_events: 100, keep_events: 0, retention_ms: 1000 } }, 0, { limit: 100, concurrency: 4, retry_ms: 10 });

async function endedRun(): Promise<string> {
  const id = await createdRun(api);
  await api.work(id, [...begins, ...ends]);
  await api.archiveRun(id);
  return id;
}

/** Every way in which a run can be asked about. */
const reads = ['', '/wait', '/events', '/messages', '/ledger'];

async function expectGone(id: string): Promise<void> {
  for (const path of reads) {
    const answer = await get(`${id}${path}`);
    expect([path, answer.statusCode, answer.json().code]).toEqual([path, 410, 'run_deleted']);
    expect((await get(`${id}${path}`, keysOf.beta)).statusCode).toBe(404);
  }
  for (const accept of ['text/event-stream', 'application/x-ndjson']) expect((await get(`${id}/events`, keysOf.alpha, { accept })).statusCode).toBe(410);
  for (const url of ['cancel', 'pause', 'replay']) expect((await api.app.inject({ method: 'POST', url: `/v1/runs/${id}/${url}`, ...asked(keysOf.alpha) })).statusCode).toBe(410);
}

test('an ended run is gone for its owner at once, and from the archive when a worker has been there', async () => {
  const [id, other] = [await endedRun(), await endedRun()];
  const answer = await remove(id);
  expect([answer.statusCode, answer.json()]).toEqual([202, { id, deleted_at: expect.stringMatching(/^\d{4}-.*Z$/) }]);
  await expectGone(id);
  await archiver();
  expect([...api.archive.objects.keys()].filter((key) => key.includes(id))).toEqual([`deleted/${id}.json`]);
  expect((await api.app.inject({ url: '/v1/runs', ...asked(keysOf.alpha) })).json().data.map((run: { id: string }) => run.id)).toEqual([other]);
  expect((await get(other)).statusCode).toBe(200);
});

test('asked again it answers as the first time, also when only the archive remembers', async () => {
  const id = await endedRun();
  const first = (await remove(id)).json();
  expect((await remove(id)).json()).toEqual(first);
  await archiver();
  const forgetful = createTestApi({ archive: () => api.archive });
  const ask = (method: 'GET' | 'DELETE') => forgetful.app.inject({ method, url: `/v1/runs/${id}`, ...asked(keysOf.alpha) });
  expect([(await ask('GET')).json().code, (await ask('DELETE')).json()]).toEqual(['run_deleted', first]);
  await forgetful.close();
});

test('a run that has left the store is deleted from the archive', async () => {
  const id = await endedRun();
  const later = createTestApi({ archive: () => api.archive });
  const ask = (method: 'GET' | 'DELETE') => later.app.inject({ method, url: `/v1/runs/${id}`, ...asked(keysOf.alpha) });
  expect((await ask('GET')).statusCode).toBe(200);
  expect((await ask('DELETE')).statusCode).toBe(202);
  expect((await ask('GET')).statusCode).toBe(410);
  await archiveDue({ store: later.memory, archive: api.archive, options: { segment_events: 100, keep_events: 0, retention_ms: 1000 } }, 0, { limit: 100, concurrency: 1, retry_ms: 10 });
  expect([...api.archive.objects.keys()].filter((key) => key.includes(id))).toEqual([`deleted/${id}.json`]);
  await later.close();
});

test('a live run is not deleted, nor another tenant’s, nor what never was', async () => {
  const live = await createdRun(api);
  const answer = await remove(live);
  expect([answer.statusCode, answer.json().code]).toEqual([409, 'invalid_state']);
  const ended = await endedRun();
  expect((await remove(ended, keysOf.beta)).statusCode).toBe(404);
  expect((await remove(ended, keysOf.alphaRead)).statusCode).toBe(403);
  expect((await remove(`run_${'0'.repeat(32)}`)).statusCode).toBe(404);
  expect((await remove('nonsense')).statusCode).toBe(404);
  expect([(await get(live)).statusCode, (await get(ended)).statusCode]).toEqual([200, 200]);
});

test('the key of a deleted run makes no new one', async () => {
  const create = () => api.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, { input: 'once' }, { 'idempotency-key': 'gone' }) });
  const id = (await create()).json<{ id: string }>().id;
  await api.work(id, [...begins, ...ends]);
  await remove(id);
  expect([(await create()).statusCode, (await create()).json().code]).toEqual([410, 'run_deleted']);
});
