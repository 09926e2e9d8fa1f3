import { afterAll, beforeAll, expect, test } from 'vitest';
import { asked, createTestApi, keysOf, type TestApi } from '../fixtures/test-api.ts';

let api: TestApi;
beforeAll(() => { api = createTestApi({ deps: { metrics: () => Promise.resolve('up 1\n') } }); });
afterAll(() => api.close());

const get = (authorization?: string, url = '/v1/runs') => api.app.inject({ url, headers: authorization === undefined ? {} : { authorization } });

test.each([undefined, '', 'Bearer', 'Bearer ', `Basic ${keysOf.alpha}`, keysOf.alpha, `Bearer ${keysOf.alpha} x`])('no key, no answer: %s', async (header) => {
  const answer = await get(header);
  expect([answer.statusCode, answer.json().code, answer.headers['www-authenticate']]).toEqual([401, 'unauthorized', 'Bearer realm="treadle"']);
});

test.each(['Bearer tk_unknown', `Bearer ${keysOf.expired}`])('an unknown or expired key is refused as invalid: %s', async (header) => {
  const answer = await get(header);
  expect([answer.statusCode, answer.json().code]).toEqual([401, 'unauthorized']);
  expect(answer.headers['www-authenticate']).toContain('invalid_token');
  expect(answer.body).not.toContain('tk_');
});

test('the scheme is not case-sensitive', async () => {
  expect((await get(`bearer ${keysOf.alpha}`)).statusCode).toBe(200);
});

test('a key does what its scopes allow', async () => {
  const status = async (token: string, method: 'GET' | 'POST') =>
    (await api.app.inject({ method, url: '/v1/runs', ...asked(token, method === 'POST' ? { input: 'x' } : undefined) })).statusCode;
  expect([await status(keysOf.alphaRead, 'GET'), await status(keysOf.alphaRead, 'POST')]).toEqual([200, 403]);
  expect([await status(keysOf.alphaWrite, 'GET'), await status(keysOf.alphaWrite, 'POST')]).toEqual([403, 202]);
  const answer = await api.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alphaRead, { input: 'x' }) });
  expect(answer.json().code).toBe('forbidden');
});

test('who may not is told so before the body is looked at', async () => {
  const answer = await api.app.inject({ method: 'POST', url: '/v1/runs', headers: { 'content-type': 'text/plain' }, payload: 'x' });
  expect(answer.statusCode).toBe(401);
});

test.each(['/', '/healthz', '/readyz', '/metrics', '/openapi.json', '/docs'])('%s asks for no key', async (url) => {
  expect((await get(undefined, url)).statusCode).toBeLessThan(400);
});

test('with authentication off everybody is tenant default', async () => {
  const open = createTestApi({ deps: { keys: null } });
  const { id } = (await open.app.inject({ method: 'POST', url: '/v1/runs', payload: { input: 'x' } })).json();
  expect((await open.memory.read(id))?.tenant).toBe('default');
  expect((await open.app.inject({ url: `/v1/runs/${id}` })).statusCode).toBe(200);
  await open.close();
});
