import { describe, expect, test } from 'vitest';
import type { RunDirectory } from '@treadle/engine';
import { asked, createdRun, createTestApi, keysOf, type TestApi } from '../fixtures/test-api.ts';

const notSent = () => Promise.reject(new Error("Stream isn't writeable and enableOfflineQueue options is false"));
const silent = () => new Promise<never>(() => undefined);

const writes = (api: TestApi, id: string) => [
  () => api.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, { input: 'x' }, { 'idempotency-key': 'k' }) }),
  () => api.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, { input: 'x' }) }),
  () => api.app.inject({ method: 'POST', url: `/v1/runs/${id}/cancel`, ...asked(keysOf.alpha) }),
  () => api.app.inject({ method: 'POST', url: `/v1/runs/${id}/steer`, ...asked(keysOf.alpha, { text: 'x' }, { 'idempotency-key': 'k' }) }),
  () => api.app.inject({ method: 'PATCH', url: `/v1/runs/${id}`, ...asked(keysOf.alpha, { tags: ['x'] }) }),
];
const reads = (api: TestApi, id: string) => ['', '/wait', '/events', '/messages', '/ledger'].map((path) =>
  () => api.app.inject({ url: `/v1/runs/${id}${path}`, ...asked(keysOf.alpha) }))
  .concat(() => api.app.inject({ url: '/v1/runs', ...asked(keysOf.alpha) }));

/** A store whose calls fail in a given way, but for those that still work. */
function failing(how: () => Promise<never>, works: readonly (keyof RunDirectory)[] = []) {
  let down = false;
  const store = (inner: RunDirectory): RunDirectory => new Proxy(inner, {
    get: (target, name: keyof RunDirectory) => (down && !works.includes(name) ? how : target[name]),
  });
  return { store, fail: (on: boolean) => { down = on; } };
}

describe('while the store is away', () => {
  test.each([['refuses at once', notSent, 1000], ['says nothing', silent, 5000]])('and %s, every request is answered 503 in time, and nothing happens', async (_name, how, withinMs) => {
    const outage = failing(how);
    const api = createTestApi({ store: outage.store, options: { callTimeoutMs: 300 } });
    const id = await createdRun(api);
    const before = api.memory.writes;
    outage.fail(true);
    for (const ask of [...writes(api, id), ...reads(api, id)]) {
      const startMs = performance.now();
      const answer = await ask();
      expect([answer.statusCode, answer.json().code, answer.headers['retry-after']]).toEqual([503, 'unavailable', '2']);
      expect(performance.now() - startMs).toBeLessThan(withinMs);
    }
    expect(api.memory.writes).toBe(before);
    outage.fail(false);
    expect((await writes(api, id)[0]!()).statusCode).toBe(202);
    await api.close();
  });

  test('the budget of a request bounds all its calls together', async () => {
    const outage = failing(silent, ['now', 'reserveKey', 'read']);
    const api = createTestApi({ store: outage.store, options: { callTimeoutMs: 10_000, requestBudgetMs: 200 } });
    const id = await createdRun(api);
    outage.fail(true);
    const startMs = performance.now();
    for (const ask of writes(api, id)) expect((await ask()).json().code).toBe('outcome_unknown');
    expect(performance.now() - startMs).toBeLessThan(3000);
    await api.close();
  });
});

describe('a command that was sent and not answered', () => {
  test.each(['Command timed out', 'Connection is closed.', 'read ECONNRESET'])('is outcome_unknown: %s', async (message) => {
    const outage = failing(() => Promise.reject(new Error(message)), ['now', 'reserveKey', 'read']);
    const api = createTestApi({ store: outage.store });
    const id = await createdRun(api);
    outage.fail(true);
    for (const ask of writes(api, id)) {
      const answer = await ask();
      expect([answer.statusCode, answer.json().code, answer.headers['retry-after']]).toEqual([503, 'outcome_unknown', '2']);
      expect(answer.body).not.toContain(message);
    }
    await api.close();
  });

  test('is unavailable where the client says that it was not sent after all', async () => {
    const outage = failing(notSent, ['now', 'reserveKey', 'read']);
    const api = createTestApi({ store: outage.store });
    const id = await createdRun(api);
    outage.fail(true);
    for (const ask of writes(api, id)) expect((await ask()).json().code).toBe('unavailable');
    await api.close();
  });
});

test('a store that gets to it too late does nothing, and says so', async () => {
  const api = createTestApi({ options: { notAfterMs: -1 } });
  const answer = await writes(api, '')[1]!();
  expect([answer.statusCode, answer.json().code, api.memory.writes]).toEqual([503, 'unavailable', 0]);
  await api.close();
});

test('a cancel that was accepted is 202 even if the run cannot be read again', async () => {
  let away = false;
  const api = createTestApi({ store: (store) => ({
    ...store,
    command: async (command) => { const reply = await store.command(command); away = true; return reply; },
    read: (run_id) => (away ? notSent() : store.read(run_id)),
  }) });
  const id = await createdRun(api);
  const answer = await writes(api, id)[2]!();
  expect([answer.statusCode, answer.json().id]).toEqual([202, id]);
  await api.close();
});

test('an archive that is away is 503 for a run that might be there, and none of a live run\'s business', async () => {
  const api = createTestApi();
  const id = await createdRun(api);
  api.archive.failNext(1);
  expect((await api.app.inject({ url: `/v1/runs/${id}`, ...asked(keysOf.alpha) })).statusCode).toBe(200);
  const answer = await api.app.inject({ url: `/v1/runs/run_${'0'.repeat(32)}`, ...asked(keysOf.alpha) });
  expect([answer.statusCode, answer.json().code]).toEqual([503, 'unavailable']);
  await api.close();
});

test('a fault of ours is 500 without a word of it, and is logged', async () => {
  const logged: unknown[] = [];
  const logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: (fields: object) => { logged.push(fields); } };
  const api = createTestApi({ store: (store) => ({ ...store, list: () => Promise.reject(new TypeError('secret inside')) }), deps: { logger } });
  const answer = await api.app.inject({ url: '/v1/runs', ...asked(keysOf.alpha) });
  expect([answer.statusCode, answer.json().code]).toEqual([500, 'internal']);
  expect(answer.body).not.toMatch(/secret|TypeError|\.ts/);
  expect(logged).toEqual([expect.objectContaining({ route: '/v1/runs', err: expect.objectContaining({ message: 'secret inside' }) })]);
  await api.close();
});
