import { createHash } from 'node:crypto';
import { StoreAway } from '@treadle/engine';
import { createMemoryKeyDirectory } from '@treadle/testkit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ApiLogger } from '../dependencies.ts';
import { asked, createdRun, createTestApi, keysOf, type TestApi } from '../fixtures/test-api.ts';

interface NewKey { readonly id: string; readonly key: string }

const logged: unknown[] = [];
const at = (...said: unknown[]): void => { logged.push(said); };
const logger: ApiLogger = { debug: at, info: at, warn: at, error: at };

let api: TestApi;
beforeEach(() => {
  logged.length = 0;
  api = createTestApi({ deps: { logger } });
});
afterEach(() => api.close());

const post = (body: object, token: string = keysOf.alpha) => api.app.inject({ method: 'POST', url: '/v1/keys', ...asked(token, body) });
const list = (token: string = keysOf.alpha, query = '') => api.app.inject({ url: `/v1/keys${query}`, ...asked(token) });
const revoke = (id: string, token: string = keysOf.alpha) => api.app.inject({ method: 'DELETE', url: `/v1/keys/${id}`, ...asked(token) });
const runs = async (token: string) => (await api.app.inject({ url: '/v1/runs', ...asked(token) })).statusCode;
async function issued(body: object = {}, token: string = keysOf.alpha): Promise<NewKey> {
  const answer = await post(body, token);
  if (answer.statusCode !== 201) throw new Error(answer.body);
  return answer.json<NewKey>();
}
const ids = (answer: { json(): { data: { id: string }[] } }): string[] => answer.json().data.map(({ id }) => id);

describe('a key that was issued', () => {
  test('is shown once, works at once, and is nowhere but as its hash', async () => {
    const answer = await post({ name: 'backend', expires_at: '2030-01-01T00:00:00+01:00' });
    expect([answer.statusCode, answer.headers['cache-control']]).toEqual([201, 'no-store']);
    const { key, ...view } = answer.json<NewKey & Record<string, unknown>>();
    expect(key).toMatch(/^tk_[A-Za-z0-9_-]{43}$/);
    expect(view).toEqual({ id: expect.stringMatching(/^key_[0-9a-f]{32}$/) as string, tenant: 'alpha', scopes: ['read', 'write'], name: 'backend', created_at: expect.any(String) as string, expires_at: '2029-12-31T23:00:00.000Z' });
    expect(await runs(key)).toBe(200);
    const listed = await list();
    expect(listed.json()).toEqual({ data: [view], next_cursor: null });
    const hash = createHash('sha256').update(key).digest('hex');
    const everything = JSON.stringify([listed.body, logged]);
    expect([everything.includes(key), everything.includes(hash)]).toEqual([false, false]);
    expect(logged).toContainEqual([{ key_id: view['id'], tenant: 'alpha', scopes: ['read', 'write'], by: 'alpha' }, 'API key issued']);
  });

  test('does what its scopes allow, for its tenant', async () => {
    const reader = await issued({ scopes: ['read', 'read'], name: null });
    const run_id = await createdRun(api);
    expect((await api.app.inject({ url: `/v1/runs/${run_id}`, ...asked(reader.key) })).statusCode).toBe(200);
    expect((await api.app.inject({ method: 'POST', url: '/v1/runs', ...asked(reader.key, { input: 'x' }) })).statusCode).toBe(403);
    expect([(await post({}, reader.key)).statusCode, (await list(reader.key)).statusCode, (await revoke(reader.id, reader.key)).statusCode]).toEqual([403, 403, 403]);
    const theirs = await issued({}, keysOf.beta);
    expect((await api.app.inject({ url: `/v1/runs/${run_id}`, ...asked(theirs.key) })).statusCode).toBe(404);
  });

  test('an admin one issues others, and is named in what it does', async () => {
    const admin = await issued({ scopes: ['admin'], name: 'boss' });
    const second = await issued({ name: 'second' }, admin.key);
    expect(await runs(second.key)).toBe(200);
    expect(logged).toContainEqual([expect.objectContaining({ key_id: second.id, by: 'boss' }), 'API key issued']);
  });

  test('expires', async () => {
    let nowMs = 1_700_000_000_000;
    const own = createTestApi({ deps: { clock: { nowMs: () => nowMs, monotonicMs: () => performance.now() } } });
    const { key } = (await own.app.inject({ method: 'POST', url: '/v1/keys', ...asked(keysOf.alpha, { expires_at: new Date(nowMs + 1000).toISOString() }) })).json<NewKey>();
    const status = async () => (await own.app.inject({ url: '/v1/runs', ...asked(key) })).statusCode;
    expect(await status()).toBe(200);
    nowMs += 1000;
    expect(await status()).toBe(401);
    await own.close();
  });
});

describe('a key that was revoked', () => {
  test('is refused from then on, and is gone from the list', async () => {
    const { id, key } = await issued();
    expect(await runs(key)).toBe(200);
    const answer = await revoke(id);
    expect([answer.statusCode, answer.json()]).toEqual([200, { id, revoked: true }]);
    expect([await runs(key), ids(await list()), (await revoke(id)).statusCode]).toEqual([401, [], 404]);
    expect(logged).toContainEqual([{ key_id: id, tenant: 'alpha', by: 'alpha' }, 'API key revoked']);
  });

  test('ends the stream and the wait that it has opened', async () => {
    let reads = 0;
    const own = createTestApi({ store: (store) => ({ ...store, read: (...asks) => { reads++; return store.read(...asks); } }), options: { keyWatchMs: 50 } });
    const { id, key } = (await own.app.inject({ method: 'POST', url: '/v1/keys', ...asked(keysOf.alpha, {}) })).json<NewKey>();
    const run_id = await createdRun(own);
    const url = await own.app.listen({ host: '127.0.0.1', port: 0 });
    const headers = { authorization: `Bearer ${key}` };
    const stream = await fetch(`${url}/v1/runs/${run_id}/events`, { headers: { ...headers, accept: 'text/event-stream' } });
    const ended = stream.text();
    const before = reads;
    const waiting = fetch(`${url}/v1/runs/${run_id}/wait?timeout_ms=60000`, { headers });
    await expect.poll(() => reads).toBeGreaterThan(before);
    expect((await own.app.inject({ method: 'DELETE', url: `/v1/keys/${id}`, ...asked(keysOf.alpha) })).statusCode).toBe(200);
    expect([(await ended).includes('run_created'), (await waiting).status]).toEqual([true, 200]);
    await own.close();
  });
});

describe('keys of other tenants', () => {
  test('are not there for an admin of one tenant', async () => {
    const theirs = await issued({}, keysOf.beta);
    const absent = await revoke(`key_${'0'.repeat(32)}`);
    expect([absent.statusCode, absent.json().code]).toEqual([404, 'not_found']);
    for (const id of [theirs.id, 'key_x', '..', '%00', 'x'.repeat(400)]) expect((await revoke(id)).body).toBe(absent.body);
    expect([ids(await list()), (await list(keysOf.alpha, '?tenant=beta')).statusCode, (await post({ tenant: 'beta' })).statusCode]).toEqual([[], 403, 403]);
    expect(await runs(theirs.key)).toBe(200);
  });

  test('are managed by an admin of the tenant default', async () => {
    const mine = await issued({}, keysOf.root);
    const theirs = await issued({ tenant: 'gamma', scopes: ['write'] }, keysOf.root);
    expect((await list(keysOf.root)).json().data.map((key: { id: string; tenant: string }) => [key.id, key.tenant])).toEqual([[theirs.id, 'gamma'], [mine.id, 'default']]);
    expect([ids(await list(keysOf.root, '?tenant=gamma')), ids(await list(keysOf.root, '?tenant=nobody'))]).toEqual([[theirs.id], []]);
    expect((await revoke(theirs.id, keysOf.root)).statusCode).toBe(200);
    expect(await runs(theirs.key)).toBe(401);
  });
});

test('they are listed page by page', async () => {
  const made: string[] = [];
  for (let each = 0; each < 5; each++) made.unshift((await issued()).id);
  const first = await list(keysOf.alpha, '?limit=3');
  const { next_cursor } = first.json<{ next_cursor: string }>();
  const second = await list(keysOf.alpha, `?limit=3&cursor=${next_cursor}`);
  expect([[...ids(first), ...ids(second)], second.json().next_cursor]).toEqual([made, null]);
  for (const cursor of ['x', Buffer.from('run_1').toString('base64url')]) expect((await list(keysOf.alpha, `?cursor=${cursor}`)).statusCode).toBe(422);
});

test.each([
  [{ scopes: [] }, 'scopes'], [{ scopes: ['root'] }, 'scopes.0'], [{ tenant: 'a b' }, 'tenant'], [{ tenant: '' }, 'tenant'], [{ name: '' }, 'name'], [{ name: 'x'.repeat(201) }, 'name'],
  [{ expires_at: 'soon' }, 'expires_at'], [{ expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'], [{ colour: 'red' }, 'colour'], [{ key: 'tk_mine' }, 'key'],
])('what cannot be is refused with its place: %j', async (body, path) => {
  const answer = await post(body);
  expect([answer.statusCode, answer.json().code, answer.json().errors.map((error: { path: string }) => error.path)]).toEqual([422, 'invalid_request', [path]]);
  expect(ids(await list())).toEqual([]);
});

describe('a store that is away', () => {
  const away = (sent: boolean) => {
    const directory = createMemoryKeyDirectory(() => 0);
    const fail = () => Promise.reject(new StoreAway(sent ? 'Command timed out' : "Stream isn't writeable and enableOfflineQueue options is false"));
    return createTestApi({ deps: { issued: { ...directory, find: fail, issue: fail, revoke: fail } } });
  };

  test('does not make a good key an unknown one, and asks nothing for the keys of the configuration', async () => {
    const { key } = await issued();
    const own = away(true);
    const answer = await own.app.inject({ url: '/v1/runs', ...asked(key) });
    expect([answer.statusCode, answer.json().code]).toEqual([503, 'unavailable']);
    expect((await own.app.inject({ url: '/v1/runs', ...asked(keysOf.alpha) })).statusCode).toBe(200);
    expect((await own.app.inject({ url: '/v1/runs', ...asked('tk_unknown') })).statusCode).toBe(401);
    await own.close();
  });

  test.each([[true, 'outcome_unknown'], [false, 'unavailable']])('is told as what it is: sent %s', async (sent, code) => {
    const own = away(sent);
    const answer = await own.app.inject({ method: 'POST', url: '/v1/keys', ...asked(keysOf.alpha, {}) });
    expect([answer.statusCode, answer.json().code]).toEqual([503, code]);
    await own.close();
  });
});
