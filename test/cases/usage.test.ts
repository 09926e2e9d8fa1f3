/**
 * Prices and budgets, end to end: what the model server has counted is what runs and `GET /v1/usage` say it cost, each reply once and
 * at its own model's price; and no hop goes to a model that the run cannot pay for.
 */
import type { UsageReport } from '@treadle/client';
import { refusal, reply, text, type ScriptedReply } from '@treadle/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { treadle, until } from '../e2e/processes.ts';
import { finish, ofType, play } from './general-checks.ts';
import { startCases, type Cases } from './stage.ts';

const prices = {
  cheap: { input_per_mtok: 100, output_per_mtok: 400 },
  dear: { input_per_mtok: 1000, output_per_mtok: 4000, cached_input_per_mtok: 250 },
} as const;
let cases: Cases;
beforeAll(async () => {
  cases = await startCases({
    models: { cheap: { provider: 'ollama', price: prices.cheap }, dear: { provider: 'openai', price: prices.dear }, spare: { provider: 'anthropic' } },
    chains: { cheap_first: ['cheap', 'dear'], dear_only: ['dear'], stair: ['cheap', 'dear', 'spare'], steep: ['cheap', 'dear'] },
    agents: {
      boss: { chain: 'cheap_first', tools: ['spawn_agent'], subagents: ['helper'] }, helper: { chain: 'dear_only', tools: [] },
      saver: { chain: 'stair', tools: [], limits: { max_cost_usd: 0.02 } }, poor: { chain: 'steep', tools: [], limits: { max_cost_usd: 0.02 } },
    },
  });
  await cases.worker();
});
afterAll(async () => { await cases.stop(); });

const counted = (prompt: number, output: number, cached = 0) => ({ usage: { prompt, output, cached } });
/** What became of the runs so far, when so many have been counted. */
const sums = (runs: number, by: UsageReport['group_by'] = 'model'): Promise<UsageReport> => until(`${runs} runs are counted`, async () => {
  const report = await cases.stage.client.usage({ group_by: by });
  return report.total.runs >= runs && report;
});

test('each reply counts once, at the price of its model, for the run that asked; what was not used is told apart', async () => {
  const spawn = { id: 's1', name: 'spawn_agent', args: { agent: 'helper', input: 'Do it. [[U1]]' } };
  cases.say('U1', [reply({ text: 'helped', ...counted(1000, 50, 600) })]);
  const script: readonly ScriptedReply[] = [
    reply({ text: '', ...counted(200, 10) }), reply({ calls: [spawn], ...counted(300, 20) }), refusal(404, 'model "cheap" not found'), reply({ text: 'done', ...counted(400, 30, 100) })];
  const { run, events } = await play(cases, 'U', script, { agent: 'boss' });
  expect(run).toMatchObject({ status: 'completed', answer: 'done', model: 'dear' });
  const [child] = ofType(events, 'child_run');
  const helped = (await finish(cases, cases.join('U1', child!.child_run_id))).run;

  const usd = {
    wasted: (200 * 100 + 10 * 400) / 1e6, cheap: (300 * 100 + 20 * 400) / 1e6, dear: (300 * 1000 + 100 * 250 + 30 * 4000) / 1e6, helper: (400 * 1000 + 600 * 250 + 50 * 4000) / 1e6 };
  expect(helped.usage).toMatchObject({ input_tokens: 1000, output_tokens: 50, cached_tokens: 600, wasted_tokens: 0 });
  expect(helped.usage.cost_usd).toBeCloseTo(usd.helper, 9);
  expect(run.usage).toMatchObject({ input_tokens: 1700, output_tokens: 100, cached_tokens: 700, wasted_tokens: 210 });
  expect(run.usage.cost_usd).toBeCloseTo(usd.wasted + usd.cheap + usd.dear + usd.helper, 9);
  expect(run.usage.wasted_cost_usd).toBeCloseTo(usd.wasted, 9);
  // Of each attempt the log says what it cost.
  expect(ofType(events, 'error').map(({ error_type, usage }) => [error_type, usage?.cost_usd ?? null])).toEqual([['empty_response', expect.closeTo(usd.wasted, 9)], ['model_not_found', null]]);

  const row = (report: UsageReport, name: string) => report.data.find((each) => each[report.group_by] === name);
  const byModel = await sums(2);
  expect(byModel.total).toMatchObject({ runs: 2, input_tokens: 1700, output_tokens: 100, cached_tokens: 700, wasted_tokens: 210, cost_usd: expect.closeTo(run.usage.cost_usd, 9) as number });
  expect(row(byModel, 'cheap')).toMatchObject({ runs: 1, input_tokens: 300, output_tokens: 20, cached_tokens: 0, wasted_tokens: 210, cost_usd: expect.closeTo(usd.wasted + usd.cheap, 9) as number, wasted_cost_usd: expect.closeTo(usd.wasted, 9) as number });
  expect(row(byModel, 'dear')).toMatchObject({ runs: 2, input_tokens: 1400, output_tokens: 80, cached_tokens: 700, wasted_tokens: 0, cost_usd: expect.closeTo(usd.dear + usd.helper, 9) as number });
  const byAgent = await sums(2, 'agent');
  expect(row(byAgent, 'boss')).toMatchObject({ runs: 1, input_tokens: 700, wasted_tokens: 210 });
  expect(row(byAgent, 'helper')).toMatchObject({ runs: 1, input_tokens: 1000, wasted_tokens: 0 });
  const byDay = await sums(2, 'day');
  expect(byDay.data.reduce((runs, day) => runs + day.runs, 0)).toBe(2);
  expect(byDay.data.map(({ day }) => day)).toContain(run.ended_at!.slice(0, 10));
  const printed = await treadle(['usage', '--json'], { env: { TREADLE_URL: cases.stage.api.url } });
  expect(JSON.parse(printed.stdout)).toEqual(byModel);
});

test('a hop passes over a model that the run cannot pay for, and says so; with no other left the run ends at its budget', async () => {
  const long = { input: `Case [[stair]]. ${'word '.repeat(300)}` };
  const gone = (body: { readonly model?: string | undefined }) => body.model === 'cheap' ? refusal(404, 'model "cheap" not found') : text('ok');
  const stair = await play(cases, 'stair', gone, { agent: 'saver', ...long });
  expect(stair.run).toMatchObject({ status: 'completed', answer: 'ok', model: 'spare' });
  expect(stair.requests.map((request) => request.body?.model)).not.toContain('dear');
  expect(ofType(stair.events, 'model_request').at(-1)).toMatchObject({ model: 'spare', skipped: expect.arrayContaining([{ model: 'dear', why: 'cost_budget' }]) as unknown });

  const steep = await play(cases, 'steep', gone, { agent: 'poor', input: long.input.replace('stair', 'steep') });
  expect(steep.run).toMatchObject({ status: 'expired', stop_reason: 'cost_budget', partial: { summary: expect.stringContaining('cost_budget') as string } });
  expect(steep.requests.map((request) => request.body?.model)).not.toContain('dear');
  // Who asks for little can pay for it.
  const short = await play(cases, 'short', gone, { agent: 'saver' });
  expect(short.run).toMatchObject({ status: 'completed', model: 'dear' });
});
