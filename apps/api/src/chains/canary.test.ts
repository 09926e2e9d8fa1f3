/** /v1/chains/{name}/canary, and that new runs are drawn by it. */
import { checkConfig, agentSpecOf, agentVersionOf, type LoadedConfig } from '@treadle/config';
import type { ChainSpec, RunEvent } from '@treadle/core';
import type { CanaryStore } from '@treadle/engine';
import { createMetrics } from '@treadle/telemetry';
import { createMemoryCanaryStore } from '@treadle/testkit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { asked, createdRun, createTestApi, keysOf, type TestApi } from '../fixtures/test-api.ts';
import { startTrials } from './start-trials.ts';

const raw = {
  models: Object.fromEntries(['small', 'big', 'next'].map((name) => [name, { provider: 'scripted', model: name }])),
  chains: { default: { models: ['small', 'big'], canary: { model: 'next', stages: [0, 50, 100], min_runs: 5 } }, plain: { models: ['small'] } },
  agents: { assistant: { instructions: 'Help.' }, other: { instructions: 'Help.', chain: 'plain' } },
};
const checked = checkConfig(raw, {});
if (checked.type === 'invalid') throw new Error(JSON.stringify(checked.problems));
const config: LoadedConfig = checked.config;

let api: TestApi;
let metrics: ReturnType<typeof createMetrics>;
let stop: () => void;
let look: () => Promise<void>;
let canaries: CanaryStore;
let warnings: string[];

async function open(wrap: (store: CanaryStore) => CanaryStore = (store) => store): Promise<void> {
  metrics = createMetrics();
  warnings = [];
  const memory = createMemoryCanaryStore();
  canaries = wrap(memory);
  const trials = await startTrials({ canaries, config, metrics, logger: { warn: (_fields, message) => { warnings.push(message); } } });
  ({ stop, look } = trials);
  const offered = ['assistant', 'other'].map((name) => { const spec = agentSpecOf(config, name)!; return { spec, version: agentVersionOf(spec) }; });
  api = createTestApi({ deps: { ...trials.deps, agents: { get: (name) => offered.find((each) => each.spec.name === name) ?? null, list: () => offered } }, options: { callTimeoutMs: 200 } });
}

beforeEach(() => open());
afterEach(async () => {
  stop();
  await api.close();
});

const url = '/v1/chains/default/canary';
const get = (path = url, token = keysOf.alpha) => api.app.inject({ url: path, ...asked(token) });
const put = (body: unknown, token = keysOf.alpha, path = url) => api.app.inject({ method: 'PUT', url: path, ...asked(token, body) });
const metric = async (line: string) => (await metrics.registry.metrics()).split('\n').find((each) => each.startsWith(line))?.split(' ').at(-1);

async function created(id: string): Promise<{ chain: ChainSpec; version: string }> {
  const [first] = (await get(`/v1/runs/${id}/events`)).json<{ data: RunEvent[] }>().data;
  if (first?.type !== 'run_created') throw new Error('a log begins with run_created');
  return { chain: first.agent_spec.chain, version: first.agent_version };
}

describe('a trial', () => {
  test('begins at stage 0, with what the judge says and nothing decided', async () => {
    const answer = await get();
    expect([answer.statusCode, answer.json()]).toEqual([200, {
      chain: 'default', model: 'next', status: 'active', stage: 0, stages: [0, 50, 100], min_runs: 5, bounds: { error_rate_delta: 0.02, latency_ratio: 1.5, cost_ratio: 2 },
      since: expect.stringMatching(/^\d{4}-.*Z$/) as string, verdict: { decision: 'hold', reason: 'too_few_runs', numbers: expect.objectContaining({ min_runs: 5 }) as object }, decisions: [],
    }]);
    expect(await metric('treadle_canary_weight{chain="default",model="next"}')).toBe('0');
    expect(await metric('treadle_canary_decisions_total{chain="default",decision="rollback"}')).toBe('0');
    expect(await metric('treadle_chain_model_info{chain="default",position="2",model="next"}')).toBe('1');
  });

  test('is moved by hand: each move is recorded, newest first, with who and on which numbers', async () => {
    expect((await put({ action: 'promote' })).json()).toMatchObject({ stage: 50, status: 'active' });
    expect((await put({ action: 'pause' })).json()).toMatchObject({ stage: 50, status: 'paused' });
    expect((await put({ action: 'set', stage: 100 })).json()).toMatchObject({ stage: 100, status: 'active', verdict: { reason: 'last_stage' } });
    const { decisions, ...now } = (await put({ action: 'rollback' })).json<{ decisions: Record<string, unknown>[]; stage: number; status: string }>();
    expect(now).toMatchObject({ stage: 0, status: 'rolled_back', verdict: { decision: 'hold', reason: 'rolled_back' } });
    expect(decisions.map(({ decision, from_stage, to_stage, status, by, reason }) => [decision, from_stage, to_stage, status, by, reason])).toEqual([
      ['rollback', 100, 0, 'rolled_back', 'alpha', 'by_hand'], ['set', 50, 100, 'active', 'alpha', 'by_hand'], ['pause', 50, 50, 'paused', 'alpha', 'by_hand'], ['promote', 0, 50, 'active', 'alpha', 'by_hand'],
    ]);
    for (const { numbers } of decisions) expect(numbers).toMatchObject({ min_runs: 5, totals: { canary: {}, control: {} } });
    expect(await metric('treadle_canary_decisions_total{chain="default",decision="rollback"}')).toBe('1');
    expect(await metric('treadle_canary_weight{chain="default",model="next"}')).toBe('0');
    expect((await put({ action: 'promote' })).json()).toMatchObject({ stage: 50, status: 'active' });
    expect(warnings.filter((each) => each === 'the canary was moved by hand')).toHaveLength(5);
  });

  test('stands in the list of chains', async () => {
    await put({ action: 'set', stage: 50 });
    expect((await get('/v1/chains')).json().data).toEqual([
      { name: 'default', models: ['small', 'big', 'next'], canary: { model: 'next', stage: 50, status: 'active' } }, { name: 'plain', models: ['small'], canary: null }]);
    expect((await get('/v1/models')).json<{ data: { name: string }[] }>().data.map((each) => each.name)).toEqual(['small', 'big', 'next']);
  });

  test.each([
    [{ action: 'set' }, 'stage'], [{ action: 'set', stage: 25 }, 'stage'], [{ action: 'set', stage: 'half' }, 'stage'], [{ action: 'promote', stage: 50 }, 'stage'], [{ action: 'fly' }, 'action'], [{}, 'action'],
    [{ action: 'pause', reason: 'x' }, 'reason'],
  ])('is not moved by %j', async (body, path) => {
    const answer = await put(body);
    expect([answer.statusCode, answer.json()]).toEqual([422, expect.objectContaining({ code: 'invalid_request', errors: [expect.objectContaining({ path }) as object] })]);
    expect((await get()).json()).toMatchObject({ stage: 0, decisions: [] });
  });

  test('at its last stage is not promoted', async () => {
    await put({ action: 'set', stage: 100 });
    expect((await put({ action: 'promote' })).json()).toMatchObject({ code: 'invalid_request', errors: [{ path: 'action', problem: 'it is at its last stage' }] });
  });

  test('is there only for chains that have one', async () => {
    for (const name of ['plain', 'gone', 'constructor']) {
      for (const answer of [await get(`/v1/chains/${name}/canary`), await put({ action: 'pause' }, keysOf.alpha, `/v1/chains/${name}/canary`)]) {
        expect([answer.statusCode, answer.json().code]).toEqual([404, 'not_found']);
      }
    }
  });

  test('is seen by those who may read, and moved by admins alone', async () => {
    expect([(await get(url, keysOf.alphaRead)).statusCode, (await put({ action: 'pause' }, keysOf.alphaRead)).statusCode, (await put({ action: 'pause' }, keysOf.alphaWrite)).statusCode]).toEqual([200, 403, 403]);
  });

  test('that the store does not take at the start is told again, and keeps back no API', async () => {
    await api.close();
    stop();
    let refusing = true;
    await open((store) => ({ ...store, declare: async (...trial) => { if (refusing) throw new Error('OOM command not allowed'); return store.declare(...trial); } }));
    expect(warnings).toEqual(['the trials of new models cannot be looked at']);
    expect((await get()).statusCode).toBe(404);
    expect((await created(await createdRun(api))).chain).toMatchObject({ models: [{ name: 'small' }, { name: 'big' }, { name: 'next' }], canary: { arm: 'control', stage: 0 } });
    refusing = false;
    await look();
    expect((await get()).json()).toMatchObject({ stage: 0, status: 'active' });
  });

  test('that the store has lost is begun again at the next look', async () => {
    let lost = false;
    await api.close();
    stop();
    await open((store) => ({ ...store, read: async (chain, wanted) => lost ? null : store.read(chain, wanted), declare: async (chain, definition) => { lost = false; return store.declare(chain, definition); } }));
    lost = true;
    expect((await get()).statusCode).toBe(404);
    await look();
    expect((await get()).statusCode).toBe(200);
  });
});

describe('a new run', () => {
  test('is drawn by the stage of the moment, keeps its arm, and is of the same agent version in both', async () => {
    await put({ action: 'set', stage: 50 });
    const runs = await Promise.all(Array.from({ length: 40 }, async () => created(await createdRun(api))));
    const arms = Map.groupBy(runs, ({ chain }) => chain.canary!.arm);
    expect(arms.get('canary')!.length).toBeGreaterThan(5);
    expect(arms.get('control')!.length).toBeGreaterThan(5);
    for (const { chain } of arms.get('canary')!) expect(chain).toMatchObject({ models: [{ name: 'next' }, { name: 'small' }, { name: 'big' }], canary: { model: 'next', arm: 'canary', stage: 50 } });
    for (const { chain } of arms.get('control')!) expect(chain).toMatchObject({ models: [{ name: 'small' }, { name: 'big' }, { name: 'next' }], canary: { model: 'next', arm: 'control', stage: 50 } });
    expect(new Set(runs.map((each) => each.version)).size).toBe(1);
    expect((await canaries.read('default', { decisions: 0, runs: true }))!.runs).toHaveLength(40);
  });

  test('that is asked for twice with one key is drawn once', async () => {
    await put({ action: 'set', stage: 50 });
    const create = () => api.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, { input: 'x' }, { 'idempotency-key': 'k' }) });
    const ids = (await Promise.all([create(), create(), create()])).map((answer) => answer.json<{ id: string }>().id);
    expect(new Set(ids).size).toBe(1);
    expect((await canaries.read('default', { decisions: 0, runs: true }))!.runs).toHaveLength(1);
  });

  test('that is refused, since its session is busy, takes no part', async () => {
    const { session_id } = (await get(`/v1/runs/${await createdRun(api)}`)).json<{ session_id: string }>();
    for (const on_busy of ['reject', 'steer']) await api.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, { input: 'x', session_id, on_busy }) });
    expect((await canaries.read('default', { decisions: 0, runs: true }))!.runs).toHaveLength(1);
  });

  test('at stage 0 has the canary last; at 100 first; of another chain nothing', async () => {
    expect((await created(await createdRun(api))).chain).toMatchObject({ models: [{ name: 'small' }, { name: 'big' }, { name: 'next' }], canary: { arm: 'control', stage: 0 } });
    await put({ action: 'set', stage: 100 });
    expect((await created(await createdRun(api))).chain).toMatchObject({ models: [{ name: 'next' }, { name: 'small' }, { name: 'big' }], canary: { arm: 'canary', stage: 100 } });
    expect((await created(await createdRun(api, { input: 'x', agent: 'other' }))).chain).not.toHaveProperty('canary');
  });

  test('that goes on from another is drawn for itself', async () => {
    await put({ action: 'set', stage: 100 });
    const id = await createdRun(api);
    await put({ action: 'rollback' });
    const fork = await api.app.inject({ method: 'POST', url: `/v1/runs/${id}/fork`, ...asked(keysOf.alpha, { after_seq: 2, input: 'again' }) });
    expect(fork.statusCode).toBe(202);
    const [old, now] = [await created(id), await created(fork.json<{ id: string }>().id)];
    expect(now.chain).toMatchObject({ models: [{ name: 'small' }, { name: 'big' }, { name: 'next' }], canary: { arm: 'control', stage: 0 } });
    expect(now.version).toBe(old.version);
  });

  test.each([
    ['fails', () => Promise.reject(new Error('Connection is closed.'))], ['hangs', () => new Promise<never>(() => undefined)],
  ])('is made as control where what knows of the trial %s, and moving it says so', async (how, away) => {
    await api.close();
    stop();
    let down = false;
    const broken = <Args extends unknown[], T>(call: (...args: Args) => Promise<T>) => (...args: Args): Promise<T> => down ? away() : call(...args);
    await open((store) => ({ ...store, assign: broken(store.assign), withdraw: broken(store.withdraw), read: broken(store.read), decide: broken(store.decide) }));
    await put({ action: 'set', stage: 100 });
    down = true;
    expect((await created(await createdRun(api))).chain).toMatchObject({ models: [{ name: 'small' }, { name: 'big' }, { name: 'next' }], canary: { arm: 'control', stage: 0 } });
    expect(warnings).toContain('nobody said which arm of a canary a new run is in; it is made as control');
    expect((await get()).json()).toMatchObject({ status: 503, code: 'unavailable' });
    expect((await put({ action: 'rollback' })).json(), how).toMatchObject({ status: 503 });
    down = false;
    expect((await get()).json()).toMatchObject({ stage: 100 });
  });
});
