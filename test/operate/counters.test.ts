/** Every counter of the processes together against what was truly done, which the test, its model and its tools keep for themselves. */
import { metricDefinitions } from '@treadle/telemetry';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until, type Role } from '../e2e/processes.ts';
import { kinds, prices, scrape, startLoad, type Load } from './load.ts';

const each = 4;
let load: Load;
// Nothing is to be taken over here, however busy the machine is, and no turn to wait for a slot of its model.
beforeAll(async () => { load = await startLoad({ workers: 2, env: { TREADLE_LEASE_MS: '30000', TREADLE_MODEL_SLOW_START: '1' } }); });
afterAll(async () => { await load.stop(); });

/** Told below, each by a rule of its own: how often the archiver writes, and which ended runs are audited, is up to the worker. */
const ofTheirOwn = ['treadle_archive_segments_total', 'treadle_replay_audits_total'];

function counters(samples: ReadonlyMap<string, number>): Record<string, number> {
  const names = Object.values(metricDefinitions).filter(({ type, name }) => type === 'counter' && !ofTheirOwn.includes(name)).map(({ name }) => name);
  return Object.fromEntries([...samples].filter(([series, value]) => value !== 0 && names.some((name) => series === name || series.startsWith(`${name}{`))).map(([series, value]) => [series, Number(value.toFixed(9))]));
}

/** What so many runs of each kind and what the model server has given come to. */
function ledger(): Record<string, number> {
  const sums: Record<string, number> = {};
  const add = (series: string, count: number): void => { sums[series] = (sums[series] ?? 0) + count; };
  for (const { agent, end: [status, reason], turns, adds } of Object.values(kinds)) {
    add(`treadle_runs_created_total{agent="${agent}"}`, each);
    add(`treadle_runs_ended_total{agent="${agent}",status="${status}",stop_reason="${reason}"}`, each);
    add(`treadle_turns_total{agent="${agent}",outcome="ended"}`, turns * each);
    for (const [series, count] of Object.entries(adds)) add(series, count * each);
  }
  for (const { model, prompt, output, wasted } of load.spent) {
    add(`treadle_model_tokens_total{model="${model}",direction="${wasted ? 'wasted' : 'input'}"}`, prompt);
    add(`treadle_model_tokens_total{model="${model}",direction="${wasted ? 'wasted' : 'output'}"}`, output);
    add(`treadle_model_cost_usd_total{model="${model}"}`, (prompt * prices.input_per_mtok + output * prices.output_per_mtok) / 1e6);
  }
  return Object.fromEntries(Object.entries(sums).map(([series, sum]) => [series, Number(sum.toFixed(9))]));
}

test('counters say what the ledger outside says', async () => {
  await load.play(each);
  const roles = [load.stage.api, ...load.workers];
  // A worker counts right behind its write, which readers may see first.
  await expect.poll(async () => counters(await scrape(roles)), { timeout: 20_000 }).toEqual(ledger());
  const samples = await scrape(roles);
  const count = (name: string, labels = ''): number => [...samples].filter(([series]) => series.startsWith(`${name}_count`) && series.includes(labels)).reduce((sum, [, value]) => sum + value, 0);
  const turns = Object.values(kinds).reduce((sum, kind) => sum + kind.turns * each, 0);
  const requests = (outcome: string): number => [...samples].filter(([series]) => series.startsWith('treadle_model_requests_total') && series.includes(`outcome="${outcome}"`)).reduce((sum, [, value]) => sum + value, 0);
  // Good and failed ones are timed apart; a reply that cannot be used is a reply.
  const useless = load.spent.filter(({ wasted }) => wasted).length;
  expect([count('treadle_turn_duration_seconds'), count('treadle_turn_failure_seconds')]).toEqual([turns - requests('failed'), requests('failed')]);
  expect([count('treadle_model_duration_seconds'), count('treadle_model_failure_seconds')]).toEqual([requests('replied') + useless, requests('failed') + requests('aborted') - useless]);
  expect(count('treadle_model_duration_seconds') + count('treadle_model_failure_seconds')).toBe(load.stage.model.requests.length);
  for (const [status, ended] of Object.entries(Object.groupBy(Object.values(kinds), ({ end }) => end[0]))) expect(count('treadle_run_lifetime_seconds', `status="${status}"`), status).toBe(ended!.length * each);
  expect(count('treadle_turn_delay_seconds')).toBe(each);
  const begun = load.stage.ledger().filter((line) => line.phase === 'start');
  for (const tool of ['add', 'fail', 'slow_write']) expect(count('treadle_tool_duration_seconds', `tool="test/${tool}"`), tool).toBe(begun.filter((line) => line.tool === tool).length);
  await archived(roles);
}, 240_000);

/** Nothing failed to be written, and every run has at least one segment of its own. */
async function archived(roles: readonly Role[]): Promise<void> {
  const runs = Object.keys(kinds).length * each;
  const of = (samples: ReadonlyMap<string, number>, outcome: string): number => samples.get(`treadle_archive_segments_total{outcome="${outcome}"}`) ?? 0;
  const samples = await until('all is archived', async () => {
    const now = await scrape(roles);
    return of(now, 'ok') >= runs && now;
  }, 90_000);
  expect([of(samples, 'failed'), of(samples, 'merged') <= runs]).toEqual([0, true]);
  const audited = await until('an ended run is audited', async () => {
    const now = [...await scrape(roles)].filter(([series, value]) => series.startsWith('treadle_replay_audits_total') && value > 0);
    return now.length > 0 && now;
  }, 90_000);
  expect(audited.map(([series]) => series)).toEqual(['treadle_replay_audits_total{result="identical"}']);
}

test('fleet facts are the same on every worker, and come back to nothing', async () => {
  const { stage } = load;
  const { id } = await stage.client.createRun({ agent: 'tester', input: 'doubt waits' });
  const gauge = async (series: string) => Promise.all(load.workers.map(async (worker) => (await scrape([worker])).get(series)));
  const run = await until('the run asks a person', async () => {
    const now = await stage.client.run(id);
    return now.status === 'paused' && now;
  });
  await until('both workers see a paused run and a call in doubt', async () => {
    const seen = [await gauge('treadle_runs_active{status="paused"}'), await gauge('treadle_tool_calls_in_doubt')];
    return JSON.stringify(seen) === '[[1,1],[1,1]]';
  }, 60_000);
  await stage.client.resolve(id, (run['pending'] as { tool_use_id: string }[])[0]!.tool_use_id, { outcome: 'did_not_happen' });
  await stage.client.wait(id, 30_000);
  await until('nothing is under way', async () => {
    const statuses = await Promise.all(['queued', 'running', 'paused'].map((status) => gauge(`treadle_runs_active{status="${status}"}`)));
    return JSON.stringify([...statuses, await gauge('treadle_tool_calls_in_doubt')]) === '[[0,0],[0,0],[0,0],[0,0]]';
  }, 60_000);
  const { data } = await stage.client.get('/v1/workers') as { data: { name: string; concurrency: number }[] };
  expect(data.map(({ concurrency }) => concurrency)).toEqual([20, 20]);
}, 180_000);

test('a turn that is taken over counts as redelivered, its recorded result as reused, and only the rest is run again', async () => {
  const { stage } = load;
  const own = await startLoad({ workers: 1, env: { TREADLE_PREFIX: 'taken' } });
  try {
    const [victim] = own.workers;
    const { id } = await own.stage.client.createRun({ agent: 'tester', input: 'taken over' });
    for await (const event of own.stage.client.events(id)) if (event.type === 'tool_result') break;
    victim!.kill('SIGKILL');
    const heir = await own.stage.startWorker();
    expect((await own.stage.client.wait(id, 60_000)).status).toBe('completed');
    await expect.poll(async () => counters(await scrape([heir])), { timeout: 20_000 }).toMatchObject({
      treadle_turns_redelivered_total: 1, 'treadle_tool_deduplicated_total{tool="test/add"}': 1, 'treadle_tool_calls_total{tool="test/add",outcome="deduplicated"}': 1,
      'treadle_tool_calls_total{tool="test/slow_lookup",outcome="ok"}': 1, 'treadle_turns_total{agent="tester",outcome="ended"}': 2,
    });
    expect(own.stage.ledger().filter((line) => line.phase === 'start').map((line) => line.tool).sort()).toEqual(['add', 'slow_lookup', 'slow_lookup']);
  } finally {
    await own.stop();
  }
  expect(stage.model.violations).toEqual([]);
}, 120_000);
