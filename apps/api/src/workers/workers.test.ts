import { StoreAway } from '@treadle/engine';
import { createMemoryWorkerRegistry } from '@treadle/testkit';
import { expect, test } from 'vitest';
import { asked, createTestApi, keysOf } from '../fixtures/test-api.ts';

test('workers are listed with their load and when they were seen, for every tenant', async () => {
  const workers = createMemoryWorkerRegistry();
  const api = createTestApi({ deps: { workers } });
  const [seen] = await workers.beat({ name: 'host-7', version: '0.1.0', agent_versions: ['sha256:1'], state: 'draining', concurrency: 8, turns_in_flight: 2, taken_per_s: [1], started_at_ms: 1_600_000_000_000 });
  for (const token of [keysOf.alphaRead, keysOf.beta]) {
    expect((await api.app.inject({ url: '/v1/workers', ...asked(token) })).json()).toEqual({
      data: [{
        name: 'host-7', role: 'worker', version: '0.1.0', agent_versions: ['sha256:1'], state: 'draining', concurrency: 8, turns_in_flight: 2, load: 0.25,
        started_at: '2020-09-13T12:26:40.000Z', last_seen_at: new Date(seen!.last_seen_ms).toISOString(),
      }],
      next_cursor: null,
    });
  }
  expect((await api.app.inject('/v1/workers')).statusCode).toBe(401);
  await api.close();
});

test('a store that is away is said to be, and one that does not answer too', async () => {
  for (const list of [() => Promise.reject(new StoreAway('Connection is closed')), () => new Promise<never>(() => undefined)]) {
    const api = createTestApi({ deps: { workers: { list } }, options: { callTimeoutMs: 50 } });
    const answer = await api.app.inject({ url: '/v1/workers', ...asked(keysOf.alpha) });
    expect([answer.statusCode, answer.json().code]).toEqual([503, 'unavailable']);
    await api.close();
  }
});
