/**
 * What the metrics of models, hops, breakers and canaries say, against the logs of the runs that moved them and against the orders that
 * were given. One worker, so that every number has one source.
 */
import type { CanaryOrder } from '@treadle/client';
import type { RunEvent } from '@treadle/core';
import { reply, startModelServer, status, text, type ModelServer } from '@treadle/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startStage, until, type Role, type Stage } from '../e2e/processes.ts';
import { scrape } from './load.ts';

const openMs = 1500;
let stage: Stage;
let worker: Role;
let keyed: ModelServer;
let ill = false;

beforeAll(async () => {
  keyed = await startModelServer({ script: () => reply({ text: 'hm', usage: { prompt: 500, output: 20, cached: 300 } }) });
  stage = await startStage({
    model: { script: (body) => ill && body.model === 'first' ? status(500, {}, { error: 'down' }) : text('ok') },
    config: (url) => {
      const model = (name: string) => ({ provider: 'ollama', model: name, base_url: url, context_window: 32_768, price: { input_per_mtok: 1, output_per_mtok: 1 } });
      return {
        models: {
          first: model('first'), second: model('second'), next: model('next'),
          cached: { provider: 'openai', model: 'cached', base_url: `${keyed.url}/v1`, price: { input_per_mtok: 10, output_per_mtok: 100, cached_input_per_mtok: 1 } },
        },
        chains: { pair: { models: ['first', 'second'] }, keyed: { models: ['cached'] }, tried: { models: ['second'], canary: { model: 'next', stages: [0, 50, 100], min_runs: 100 } } },
        agents: Object.fromEntries(['pair', 'keyed', 'tried'].map((chain) => [chain, { instructions: 'Test.', chain, limits: { max_consecutive_errors: 6, same_error_limit: 50 } }])),
      };
    },
    env: { TREADLE_BREAKER_VOLUME: '4', TREADLE_BREAKER_OPEN_MS: String(openMs), LOG_LEVEL: 'error' },
  });
  worker = await stage.startWorker();
});
afterAll(async () => {
  await stage.stop();
  await keyed.close();
});

async function run(agent: string): Promise<RunEvent[]> {
  const { id } = await stage.client.createRun({ agent, input: 'go' });
  const log: RunEvent[] = [];
  for await (const event of stage.client.events(id)) log.push(event);
  return log;
}

const of = <Type extends RunEvent['type']>(logs: readonly RunEvent[][], type: Type) => logs.flat().filter((event): event is Extract<RunEvent, { type: Type }> => event.type === type);
/** Series by name and labels, absent ones as null. */
async function samples(role: Role, ...series: string[]): Promise<Record<string, number | null>> {
  const all = await scrape([role]);
  return Object.fromEntries(series.map((each) => [each, all.get(each) ?? null]));
}
/** Those that are expected, as soon as they are there: a worker counts right behind its write, which readers may see first. */
const shows = (expected: Readonly<Record<string, number | null>>, role = worker) => expect.poll(() => samples(role, ...Object.keys(expected)), { timeout: 20_000 }).toEqual(expected);
const active = (first: number, second: number) => ({ 'treadle_chain_active_model{chain="pair",model="first"}': first, 'treadle_chain_active_model{chain="pair",model="second"}': second });
const requests = (model: string, outcome: string, type = 'none') => `treadle_model_requests_total{chain="pair",model="${model}",outcome="${outcome}",error_type="${type}"}`;
const moved = (to: string) => `treadle_breaker_transitions_total{breaker="model:first",error_type="server_error",to="${to}"}`;
const state = 'treadle_breaker_state{breaker="model:first",error_type="server_error"}';

test('a chain shows its models in their places, and which of them was asked last', async () => {
  await shows({
    'treadle_chain_model_info{chain="pair",position="0",model="first"}': 1, 'treadle_chain_model_info{chain="pair",position="1",model="second"}': 1,
    'treadle_chain_model_info{chain="tried",position="1",model="next"}': 1,
  });
  await run('pair');
  await shows({
    ...active(1, 0), [requests('first', 'replied')]: 1, [requests('second', 'replied')]: null,
    'treadle_model_duration_seconds_count{model="first"}': 1, 'treadle_model_first_token_seconds_count{model="first"}': 1, 'treadle_model_duration_seconds_count{model="second"}': null,
  });
});

test('tokens of each kind, and their cost', async () => {
  await run('keyed');
  await shows({
    'treadle_model_tokens_total{model="cached",direction="input"}': 500, 'treadle_model_tokens_total{model="cached",direction="cached"}': 300,
    'treadle_model_tokens_total{model="cached",direction="output"}': 20, 'treadle_model_tokens_total{model="cached",direction="wasted"}': null,
  });
  const { 'treadle_model_cost_usd_total{model="cached"}': cost } = await samples(worker, 'treadle_model_cost_usd_total{model="cached"}');
  expect(cost).toBeCloseTo((200 * 10 + 300 * 1 + 20 * 100) / 1e6, 12);
});

test('failures, hops, what is passed over, and a breaker from its opening to its end: as the logs have them', async () => {
  ill = true;
  const logs: RunEvent[][] = [];
  await until('a run passes over the model', async () => {
    const round = await Promise.all(Array.from({ length: 4 }, () => run('pair')));
    logs.push(...round);
    return round.flat().some((event) => event.type === 'model_request' && event.skipped.length > 0);
  }, 90_000);
  const errors = of(logs, 'error');
  expect(errors.length).toBeGreaterThanOrEqual(4);
  const fallback = 'treadle_model_fallbacks_total{chain="pair",from_model="first",to_model="second",error_type="server_error"}';
  await shows({
    ...active(0, 1), [requests('first', 'failed', 'server_error')]: errors.length, [requests('second', 'replied')]: logs.length,
    [requests('first', 'skipped')]: of(logs, 'model_request').flatMap(({ skipped }) => skipped).length, [fallback]: errors.filter(({ action }) => action === 'fallback').length,
  });
  const { [moved('open')]: openings } = await samples(worker, moved('open'));
  expect(openings).toBeGreaterThanOrEqual(1);

  ill = false;
  const { data } = await stage.client.breakers();
  // A probe that came while the model was still ill may have opened it again.
  if (data.some(({ id }) => id === 'model:first:server_error')) await expect.poll(async () => (await samples(worker, state))[state], { timeout: 20_000 }).toBeGreaterThan(0);
  await until('a probe has closed the breaker', async () => {
    logs.push(await run('pair'));
    return logs.at(-1)!.some((event) => event.type === 'model_request' && event.model === 'first');
  }, 60_000);
  await shows({ ...active(1, 0), [state]: 0, [moved('closed')]: 1 });
  const all = await samples(worker, moved('open'), moved('half_open'));
  // Each probe either opened it again or closed it.
  expect(all[moved('half_open')]).toBe(all[moved('open')]);
}, 180_000);

test('a canary’s weight is where an order has put it, in every process; each kind of decision is counted where it was made', async () => {
  const decisions = (decision: string) => `treadle_canary_decisions_total{chain="tried",decision="${decision}"}`;
  const weight = 'treadle_canary_weight{chain="tried",model="next"}';
  const counted = { set: 0, promote: 0, pause: 0, rollback: 0 };
  const order = async (asked: CanaryOrder, stageNow: number): Promise<void> => {
    await stage.client.moveCanary('tried', asked);
    counted[asked.action]++;
    for (const role of [stage.api, worker]) await shows({ [weight]: stageNow }, role);
    await shows(Object.fromEntries(Object.entries(counted).map(([name, count]) => [decisions(name), count])), stage.api);
  };
  for (const role of [stage.api, worker]) await shows({ [weight]: 0 }, role);
  await order({ action: 'promote' }, 50);
  await order({ action: 'pause' }, 50);
  await order({ action: 'set', stage: 100 }, 100);
  await order({ action: 'rollback' }, 0);
  await shows({ [decisions('promote')]: 0, [decisions('rollback')]: 0 });
});
