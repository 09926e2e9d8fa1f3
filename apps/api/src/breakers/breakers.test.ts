import { createModelFleet } from '@treadle/fleet';
import { connectRedis, whenReady } from '@treadle/run-store';
import { startRedis } from '@treadle/testkit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { asked, createTestApi, keysOf, type TestApi } from '../fixtures/test-api.ts';

let api: TestApi;

beforeEach(() => { api = createTestApi(); });
afterEach(async () => { await api.close(); });

const list = (token = keysOf.alphaRead) => api.app.inject({ url: '/v1/breakers', ...asked(token) });
const change = (id: string, body: unknown, token = keysOf.alpha) => api.app.inject({ method: 'POST', url: `/v1/breakers/${encodeURIComponent(id)}`, ...asked(token, body as object) });
const iso = (ms: number) => new Date(ms).toISOString();

describe('what is open', () => {
  test('is listed with its state, for every tenant', async () => {
    const worker = api.fleet.join();
    const now = api.fleet.now();
    await worker.open({ target: 'model:b', error_type: 'overloaded', for_ms: 0, forced: false });
    await worker.open({ target: 'host:h:80', error_type: 'timeout', for_ms: 5000, forced: false });
    await worker.open({ target: 'model:a', error_type: 'server_error', for_ms: 0, forced: true });
    await worker.bench({ target: 'credential:f', reason: 'rate_limited', for_ms: 60_000 });
    for (const token of [keysOf.alphaRead, keysOf.beta]) {
      const answer = await list(token);
      expect(answer.json()).toEqual({
        data: [
          { id: 'credential:f', kind: 'bench', breaker: 'credential:f', error_type: 'rate_limited', state: 'open', forced: false, opened_at: null, probe_at: iso(now + 60_000), openings: 0 },
          { id: 'host:h:80:timeout', kind: 'breaker', breaker: 'host:h:80', error_type: 'timeout', state: 'open', forced: false, opened_at: iso(now), probe_at: iso(now + 5000), openings: 1 },
          { id: 'model:a:server_error', kind: 'breaker', breaker: 'model:a', error_type: 'server_error', state: 'open', forced: true, opened_at: iso(now), probe_at: null, openings: 1 },
          { id: 'model:b:overloaded', kind: 'breaker', breaker: 'model:b', error_type: 'overloaded', state: 'half_open', forced: false, opened_at: iso(now), probe_at: iso(now), openings: 1 },
        ],
        next_cursor: null,
      });
    }
    api.fleet.passTime(60_000);
    expect((await list()).json().data.map((entry: { id: string; state: string }) => [entry.id, entry.state])).toEqual([
      ['host:h:80:timeout', 'half_open'], ['model:a:server_error', 'open'], ['model:b:overloaded', 'half_open'],
    ]);
  });

  test('is an empty list while nothing is', async () => {
    expect((await list()).json()).toEqual({ data: [], next_cursor: null });
  });
});

describe('a person’s word', () => {
  test.each(['model:a:overloaded', 'host:[::1]:8080:timeout', 'model:org/name%2:unknown', 'model:größe:server_error'])('opens %s until it is reset', async (id) => {
    const opened = await change(id, { action: 'open' });
    expect([opened.statusCode, opened.json()]).toEqual([200, { id, kind: 'breaker', state: 'open', forced: true }]);
    api.fleet.passTime(1_000_000);
    expect((await list()).json().data).toMatchObject([{ id, state: 'open', forced: true, probe_at: null }]);
    expect((await change(id, { action: 'open' })).statusCode).toBe(200);
    const reset = await change(id, { action: 'reset' });
    expect([reset.statusCode, reset.json()]).toEqual([200, { id, kind: 'breaker', state: 'closed', forced: false }]);
    expect((await list()).json().data).toEqual([]);
  });

  test('resets what opened by itself, and takes a key or a model from its bench', async () => {
    const worker = api.fleet.join();
    await worker.open({ target: 'model:a', error_type: 'overloaded', for_ms: 5000, forced: false });
    await worker.bench({ target: 'credential:f', reason: 'rate_limited', for_ms: 60_000 });
    expect((await change('model:a:overloaded', { action: 'reset' })).json()).toMatchObject({ kind: 'breaker', state: 'closed' });
    expect((await change('credential:f', { action: 'reset' })).json()).toMatchObject({ kind: 'bench', state: 'closed' });
    const { breakers, benches } = await worker.exchange([]);
    expect([breakers, benches]).toEqual([[], []]);
  });

  test.each(['model:a:overloaded', 'credential:f', 'nonsense'])('finds nothing to reset under %s', async (id) => {
    const answer = await change(id, { action: 'reset' });
    expect([answer.statusCode, answer.json().code]).toEqual([404, 'not_found']);
  });

  test.each(['model:a', 'model:a:slow', 'model::overloaded', 'credential:f:auth_invalid', 'overloaded', 'model:a b:overloaded', 'model:a\n:overloaded', 'host:h:80:'])('cannot open %j', async (id) => {
    const answer = await change(id, { action: 'open' });
    expect([answer.statusCode, answer.json().code]).toEqual([422, 'invalid_request']);
    expect(answer.json().errors).toEqual([{ path: 'id', problem: expect.stringMatching(/^expected model:<name>:<error_type> or host:<host:port>:<error_type>, .*overloaded/) }]);
    expect((await list()).json().data).toEqual([]);
  });

  test.each([{ action: 'close' }, {}, { action: 'open', for_ms: 5 }, [], undefined])('is not %j', async (body) => {
    expect((await change('model:a:overloaded', body)).statusCode).toBe(422);
    expect((await list()).json().data).toEqual([]);
  });

  test('needs the scope admin', async () => {
    for (const token of [keysOf.alphaRead, keysOf.alphaWrite]) expect((await change('model:a:overloaded', { action: 'open' }, token)).statusCode).toBe(403);
    expect((await list()).json().data).toEqual([]);
  });
});

test('while the fleet’s store is away, reading and changing is answered 503', async () => {
  api.fleet.away(true);
  for (const answer of [await list(), await change('model:a:overloaded', { action: 'reset' })]) expect(answer.statusCode).toBe(503);
  api.fleet.away(false);
  expect((await list()).statusCode).toBe(200);
});

test('a Redis that is gone: 503, not sent; one that hangs: what was sent may still happen', async () => {
  const server = await startRedis();
  const redis = connectRedis(server.url, { role: 'api' });
  await whenReady(redis);
  const onRedis = createTestApi({ deps: { fleet: createModelFleet({ redis, prefix: 't' }) } });
  const url = '/v1/breakers/model:a:overloaded';
  const open = async () => (await onRedis.app.inject({ method: 'POST', url, ...asked(keysOf.alpha, { action: 'open' }) })).json();
  const look = async () => (await onRedis.app.inject({ url: '/v1/breakers', ...asked(keysOf.alpha) })).json();
  try {
    process.kill(server.pid, 'SIGSTOP');
    expect(await open()).toMatchObject({ status: 503, code: 'outcome_unknown' });
    expect(await look()).toMatchObject({ status: 503, code: 'unavailable' });
    process.kill(server.pid, 'SIGCONT');
    await expect.poll(look, { timeout: 10_000 }).toMatchObject({ next_cursor: null });
    await server.kill();
    await expect.poll(open, { timeout: 10_000 }).toMatchObject({ status: 503, code: 'unavailable' });
    expect(await look()).toMatchObject({ status: 503, code: 'unavailable' });
    await server.restart();
    await expect.poll(open, { timeout: 10_000 }).toMatchObject({ state: 'open' });
    expect(await look()).toMatchObject({ data: [{ id: 'model:a:overloaded', forced: true }] });
  } finally {
    await onRedis.close();
    redis.disconnect();
    await server.stop();
  }
}, 60_000);
