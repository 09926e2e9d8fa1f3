import { noUsage, type Usage } from '@treadle/core';
import { StoreAway, type UsageRow } from '@treadle/engine';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { asked, createTestApi, keysOf, type TestApi } from '../fixtures/test-api.ts';

/** The clock of the API under test stands at 2023-11-14T22:13:20Z. */
const row = (day: string, agent: string, model: string | null, runs: number, usage: Partial<Usage> = {}): UsageRow => ({ day, agent, model, runs, usage: { ...noUsage, ...usage } });
const rows: Record<string, readonly UsageRow[]> = {
  alpha: [
    row('2023-11-14', 'a', null, 2), row('2023-11-14', 'a', 'small', 2, { input_tokens: 10, output_tokens: 1, cached_tokens: 4, cost_usd: 0.1 }),
    // The other shard's part of the same.
    row('2023-11-14', 'a', null, 1), row('2023-11-14', 'a', 'small', 1, { input_tokens: 5, cost_usd: 0.2 }),
    row('2023-11-13', 'b', null, 1), row('2023-11-13', 'b', 'small', 1, { input_tokens: 100 }), row('2023-11-13', 'b', 'big', 1, { wasted_tokens: 7, cost_usd: 1, wasted_cost_usd: 1 }),
  ],
  beta: [row('2023-11-14', 'a', null, 9)],
};
const sums = (runs: number, usage: Partial<Usage> = {}) => ({ ...noUsage, wasted_cost_usd: 0, runs, ...usage });

let api: TestApi;
let queries: unknown[];
beforeEach(() => {
  queries = [];
  api = createTestApi({ store: (store) => ({ ...store, usage: (query) => { queries.push(query); return Promise.resolve(rows[query.tenant] ?? []); } }) });
});
afterEach(async () => { await api.close(); });

const ask = (query = '', token: string = keysOf.alphaRead) => api.app.inject({ url: `/v1/usage${query}`, ...asked(token) });

describe('what runs have used', () => {
  test.each([
    ['model', [['big', sums(1, { wasted_tokens: 7, cost_usd: 1, wasted_cost_usd: 1 })], ['small', sums(4, { input_tokens: 115, output_tokens: 1, cached_tokens: 4, cost_usd: 0.3 })]]],
    ['agent', [['a', sums(3, { input_tokens: 15, output_tokens: 1, cached_tokens: 4, cost_usd: 0.3 })], ['b', sums(1, { input_tokens: 100, wasted_tokens: 7, cost_usd: 1, wasted_cost_usd: 1 })]]],
    ['day', [['2023-11-13', sums(1, { input_tokens: 100, wasted_tokens: 7, cost_usd: 1, wasted_cost_usd: 1 })], ['2023-11-14', sums(3, { input_tokens: 15, output_tokens: 1, cached_tokens: 4, cost_usd: 0.3 })]]],
  ] as const)('by %s, sorted by its name, each shard\'s part in it; all together a run counts once', async (by, groups) => {
    const answer = await ask(`?group_by=${by}`);
    expect(answer.statusCode).toBe(200);
    expect(answer.json()).toEqual({
      from: '2023-10-16', to: '2023-11-14', group_by: by, data: groups.map(([name, of]) => ({ [by]: name, ...of })),
      total: sums(4, { input_tokens: 115, output_tokens: 1, cached_tokens: 4, wasted_tokens: 7, cost_usd: 1.3, wasted_cost_usd: 1 }),
    });
  });

  test('is by model where nothing is said, and the tenant\'s own', async () => {
    expect((await ask()).json()).toMatchObject({ group_by: 'model', total: { runs: 4 } });
    expect((await ask('', keysOf.beta)).json()).toMatchObject({ data: [], total: { runs: 9 } });
    expect((await api.app.inject('/v1/usage')).statusCode).toBe(401);
    expect((await ask('', keysOf.alphaWrite)).statusCode).toBe(403);
  });

  test('is of whole days, today being the last where nothing is said', async () => {
    expect((await ask('?from=2023-11-01&to=2023-11-02T23:30:00-02:00')).json()).toMatchObject({ from: '2023-11-01', to: '2023-11-03' });
    expect((await ask('?from=2023-11-14')).json()).toMatchObject({ from: '2023-11-14', to: '2023-11-14' });
    expect((await ask('?to=2024-03-01')).json()).toMatchObject({ from: '2024-02-01', to: '2024-03-01' });
    expect((await ask('?from=2022-11-14')).json()).toMatchObject({ from: '2022-11-14' });
    expect(queries.at(-1)).toEqual({ tenant: 'alpha', from_day: '2022-11-14', to_day: '2023-11-14' });
  });

  test.each([
    ['?group_by=tenant', 'group_by'], ['?from=yesterday', 'from'], ['?from=2023-02-30', 'from'], ['?to=2023-11-14T25:00:00Z', 'to'], ['?from=2023-11-15', 'from'],
    ['?from=2023-11-10&to=2023-11-09', 'from'], ['?from=2022-11-13', 'from'], ['?tenant=beta', 'tenant'],
  ])('%s is refused, and said why', async (query, path) => {
    const answer = await ask(query);
    expect([answer.statusCode, answer.json().code, answer.json().errors.map((each: { path: string }) => each.path)]).toEqual([422, 'invalid_request', [path]]);
    expect(queries).toEqual([]);
  });

  test('cannot be said while the store is away', async () => {
    const away = createTestApi({ store: (store) => ({ ...store, usage: () => Promise.reject(new StoreAway('Connection is closed')) }) });
    const answer = await away.app.inject({ url: '/v1/usage', ...asked(keysOf.alpha) });
    expect([answer.statusCode, answer.json().code]).toEqual([503, 'unavailable']);
    await away.close();
  });
});
