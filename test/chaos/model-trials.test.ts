/**
 * R13, R16, R19 and C68: models that hang, that ask to come again later, that are down, beside runs that have nothing to do with them.
 * Small on every change; `npm run test:fleet` plays the sizes of the promises and prints what it measured. Times are printed, never
 * compared from above: what is compared is who was served before whom, what was asked how often, and what came no earlier than it may.
 */
import type { Run } from '@treadle/client';
import type { RunEvent } from '@treadle/core';
import { raw, stall, startModelServer, status, text, type ChatBody, type ModelServer, type ScriptedReply } from '@treadle/testkit';
import { afterEach, expect, test } from 'vitest';
import { until } from '../e2e/processes.ts';
import { scaled } from './random.ts';
import { memoryOf, postRuns, settledMemoryOf, startChaos, type ChaosOptions, type ChaosStage, type Posted } from './stage.ts';

const mb = 1024 * 1024;
const slots = 10;
let stage: ChaosStage | null = null;
let hanging: ModelServer | null = null;
afterEach(async () => {
  await stage?.stop();
  await hanging?.close();
  stage = hanging = null;
});

const keyOf = (body: ChatBody): string => /\[\[([^\]]+)\]\]/.exec(String((body.messages ?? []).find((message) => message.role === 'user')?.content))?.[1] ?? '';
const modelOf = (name: string, url: string) => ({ provider: 'ollama', model: name, base_url: url, context_window: 32_768 });
const limits = { max_consecutive_errors: 3, same_error_limit: 50, turn_timeout_s: 60, session_timeout_s: 3600 };
const agentsOf = (chains: Readonly<Record<string, unknown>>, own: object = {}) => Object.fromEntries(Object.keys(chains).map((chain) => [chain, { instructions: 'Test.', chain, tools: [], limits: { ...limits, ...own } }]));

async function begin(options: ChaosOptions, workers: number): Promise<ChaosStage> {
  stage = await startChaos({ ...options, env: { TREADLE_LEASE_MS: '8000', WORKER_CONCURRENCY: String(slots), ...options.env } });
  await stage.workers.start(workers);
  return stage;
}

const ended = ['completed', 'expired', 'failed', 'cancelled'];
async function ends(here: ChaosStage, ids: readonly string[], withinMs: number): Promise<Run[]> {
  const open = new Set(ids);
  const runs: Run[] = [];
  await until(`${ids.length} runs end`, async () => {
    for (const id of [...open].slice(0, 50)) {
      const run = await here.client.run(id).catch(() => null);
      if (run === null || !ended.includes(run.status)) continue;
      open.delete(id);
      runs.push(run);
    }
    return open.size === 0;
  }, withinMs);
  return runs;
}

async function logOf(here: ChaosStage, id: string): Promise<RunEvent[]> {
  const response = await fetch(`${here.url}/v1/runs/${id}/events`, { headers: { accept: 'application/x-ndjson' } });
  return (await response.text()).split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as RunEvent);
}

/** Of the workers together. */
async function metric(here: ChaosStage, series: string): Promise<number> {
  const pages = await Promise.all(here.workers.roles.map(async ({ url }) => (await fetch(`${url}/metrics`)).text()));
  return pages.flatMap((page) => page.split('\n')).filter((line) => line.startsWith(series)).reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

/** Seconds from acceptance to end: the median, that which 95 in a hundred do not exceed, the longest. */
function spread(runs: readonly Run[]): string {
  const seconds = runs.map((run) => (Date.parse(run.ended_at!) - Date.parse(run.created_at)) / 1000).sort((a, b) => a - b);
  return [0.5, 0.95, 1].map((part) => seconds[Math.ceil(part * seconds.length) - 1]!.toFixed(2)).join(' / ');
}

const told = (figures: readonly number[]): string => figures.map((each) => each.toFixed(1)).join(', ');
const keys = (kind: string, count: number): string[] => Array.from({ length: count }, (_, index) => `${kind}-${index}`);
const idsOf = (posted: readonly Posted[]): string[] => posted.map(({ id }) => id);
/** A reply that takes as long as one of a small model. */
const calm = text('calm', { delayMs: 300 });

test('R13: models that hang, in every way, keep none of the workers: runs beside them are served, and no lock is lost', async () => {
  const hung = scaled({ small: 20, large: 50 });
  const healthy = 20;
  const silentS = 6;
  const dripS = scaled({ small: 9, large: 20 });
  const ways: readonly ScriptedReply[] = [
    stall({ after: 'nothing' }), stall({ after: 'headers' }), stall({ after: 60 }),
    raw(Array.from({ length: 400 }, () => `${JSON.stringify({ model: 'hung', message: { role: 'assistant', content: 'drip ' }, done: false })}\n`), { chunkDelayMs: 500 }),
  ];
  const wayOf = (key: string): number => Number(key.split('-')[1]) % ways.length;
  hanging = await startModelServer({ dialect: 'ollama', strict: false, script: (body) => ways[wayOf(keyOf(body))]! });
  const here = await begin({
    script: () => calm,
    config: (url) => ({
      // Two of one provider, which hang together.
      models: { ...Object.fromEntries(['hung', 'stuck'].map((name) => [name, { ...modelOf(name, hanging!.url), first_token_timeout_ms: silentS * 1000, idle_timeout_ms: silentS * 1000 }])), calm: modelOf('calm', url) },
      chains: Object.fromEntries(['hung', 'stuck', 'calm'].map((name) => [name, { models: [name] }])),
      agents: { ...agentsOf({ hung: 1, stuck: 1 }, { turn_timeout_s: dripS }), ...agentsOf({ calm: 1 }) },
    }),
  }, 1);
  const serve = async (name: string) => ends(here, idsOf(await postRuns(here, keys(name, healthy), () => 'calm')), 180_000);
  const alone = await serve('alone');
  // One of each way finds room for certain.
  const modelOfKey = (key: string): string => Math.floor(Number(key.split('-')[1]) / ways.length) % 2 === 0 ? 'hung' : 'stuck';
  const first = await postRuns(here, keys('hung', ways.length), modelOfKey);
  const stuck = [...first, ...await postRuns(here, keys('hung', hung).slice(ways.length), modelOfKey)];
  // More hang than there are slots: were one of them kept for ever, these would never be served.
  const beside = await serve('beside');
  const later = await serve('later');
  for (const run of [...alone, ...beside, ...later]) expect(run).toMatchObject({ status: 'completed', answer: 'calm' });
  for (const { id } of first) await until('each way of hanging has met its limit', async () => (await logOf(here, id)).some((event) => event.type === 'error'), 120_000);
  // Whoever waits for the breaker of the silent host would wait long.
  for (const { id } of stuck) await here.client.cancel(id).catch(() => undefined);
  await ends(here, idsOf(stuck), 120_000);
  const overS: number[] = [];
  let firstOverS = Infinity;
  for (const { id, key } of stuck) {
    const silent = wayOf(key) < 3;
    const log = await logOf(here, id);
    const errors = log.filter((event) => event.type === 'error');
    for (const { error_type, detail } of errors) {
      expect(error_type).toBe('timeout');
      expect(detail).toMatch(silent ? /^(first_token|idle)_timeout: / : /^the turn took longer than its limit turn_timeout_s$/);
    }
    firstOverS = Math.min(firstOverS, ...errors.map(({ ts }) => ts));
    // An attempt that somebody cancelled was shorter.
    const tried = log.flatMap((event, at) => event.type === 'turn_end' && log.slice(at - 2, at).some((other) => other.type === 'error') ? [event.duration] : []);
    for (const duration of tried) expect(duration).toBeGreaterThanOrEqual((silent ? silentS : dripS) - 0.05);
    overS.push(...tried.map((duration) => duration - (silent ? silentS : dripS)));
  }
  expect(overS.length).toBeGreaterThan(0);
  // Were all slots held by those that hang, nobody could have been served before the first of them was over.
  expect(beside.filter((run) => Date.parse(run.ended_at!) < firstOverS * 1000).length).toBeGreaterThan(healthy / 2);
  expect(await metric(here, 'treadle_commits_fenced_total')).toBe(0);
  expect(await metric(here, 'treadle_turns_redelivered_total')).toBe(0);
  process.stdout.write(`R13: ${hung} hang, ${slots} slots; ${healthy} healthy runs, s (median / p95 / longest): alone ${spread(alone)}, posted behind them ${spread(beside)}, after that ${spread(later)}; `
    + `an attempt that hung ended at most ${Math.max(...overS).toFixed(2)} s behind its limit\n`);
}, scaled({ small: 300_000, large: 900_000 }));

test('R16: runs that a provider has asked to come again hold no worker, and come again by themselves, also after Redis was cut off', async () => {
  const parked = scaled({ small: 40, large: 200 });
  const waitS = scaled({ small: 12, large: 30 });
  const cutS = 3;
  const asked = new Map<string, number[]>();
  const here = await begin({
    script: (body) => {
      if (body.model !== 'busy') return calm;
      const at = asked.get(keyOf(body)) ?? [];
      asked.set(keyOf(body), [...at, Date.now()]);
      return at.length === 0 ? status(429, { 'retry-after': String(waitS) }, { error: 'slow' }) : text('ok');
    },
    config: (url) => ({ models: { busy: modelOf('busy', url), calm: modelOf('calm', url) }, chains: { busy: { models: ['busy'] }, calm: { models: ['calm'] } }, agents: agentsOf({ busy: 1, calm: 1 }) }),
  }, 1);
  const serve = async (name: string) => ends(here, idsOf(await postRuns(here, keys(name, 20), () => 'calm')), 180_000);
  const alone = await serve('alone');
  const waiting = idsOf(await postRuns(here, keys('busy', parked), () => 'busy'));
  await until('all were refused', () => asked.size === parked, 120_000);
  const beside = await serve('beside');
  const firstAgain = (): number => Math.min(...[...asked.values()].flatMap(([, again]) => again ?? []));
  // Away from a little before the first may come again until a little after.
  await until('it is nearly time', () => Date.now() > Math.min(...[...asked.values()].map(([first]) => first!)) + (waitS - 1) * 1000, 120_000);
  here.redisProxy.refuse();
  await new Promise((resolve) => { setTimeout(resolve, cutS * 1000); });
  here.redisProxy.pass();
  const backMs = Date.now();
  const runs = await ends(here, waiting, 300_000);
  for (const run of runs) expect(run).toMatchObject({ status: 'completed', answer: 'ok' });
  // Were a slot held by each, nobody could have been served before the first of them came again.
  expect(beside.filter((run) => Date.parse(run.ended_at!) < firstAgain()).length).toBeGreaterThan(0);
  const late: number[] = [];
  for (const id of waiting) {
    const log = await logOf(here, id);
    const refused = log.find((event) => event.type === 'error');
    const again = log.find((event) => event.type === 'turn_start' && event.turn_number === 2);
    expect(refused).toMatchObject({ error_type: 'rate_limited', action: 'backoff', retry_after: waitS });
    if (refused?.type !== 'error' || again === undefined) throw new Error(`${id} did not come again`);
    const dueS = refused.ts + refused.retry_in!;
    expect(refused.retry_in).toBeGreaterThanOrEqual(waitS);
    expect(again.ts).toBeGreaterThanOrEqual(dueS);
    late.push(again.ts - Math.max(dueS, backMs / 1000));
  }
  for (const at of asked.values()) {
    expect(at).toHaveLength(2);
    expect(at[1]! - at[0]!).toBeGreaterThanOrEqual(waitS * 1000);
  }
  process.stdout.write(`R16: ${parked} runs wait ${waitS} s, ${slots} slots; 20 healthy runs, s (median / p95 / longest): alone ${spread(alone)}, beside ${spread(beside)}; `
    + `Redis was cut off for ${cutS} s when they were due; behind their time, or behind Redis' return, they began at most ${Math.max(...late).toFixed(2)} s late\n`);
}, scaled({ small: 300_000, large: 900_000 }));

test('R19, C68: breakers open over all runs, let one probe through, do not open for 400s and cancels, and leave nothing behind', async () => {
  const count = scaled({ small: 300, large: 5000 });
  const volume = 10;
  const downMs = 150;
  const asked = { down: new Set<string>(), slow: new Set<string>(), total: 0 };
  let flying = 0;
  let most = 0;
  const here = await begin({
    script: (body) => {
      const key = keyOf(body);
      if (body.model === 'odd') return status(400, {}, { error: 'unexpected field "foo"' });
      if (body.model === 'fine' && key.startsWith('cancelled')) {
        asked.slow.add(key);
        return text('never', { delayMs: 600_000 });
      }
      if (body.model === 'fine') return text('ok');
      asked.down.add(key);
      asked.total++;
      most = Math.max(most, ++flying);
      setTimeout(() => { flying--; }, downMs);
      return { type: 'status', status: 500, headers: {}, body: '{"error":"down"}', delivery: { delayMs: downMs } };
    },
    config: (url) => {
      const chains = { sick: { models: ['down', 'fine'] }, odd: { models: ['odd', 'fine'] }, cancelled: { models: ['fine'] } };
      return { models: Object.fromEntries(['down', 'odd', 'fine'].map((name) => [name, modelOf(name, url)])), chains, agents: agentsOf(chains) };
    },
    env: { TREADLE_BREAKER_VOLUME: String(volume), TREADLE_BREAKER_OPEN_MS: '2000', TREADLE_RETENTION_H: '0.02' },
  }, 2);
  const kindOf = (index: number): string => index % 20 === 0 ? 'cancelled' : index % 5 === 0 ? 'odd' : 'sick';
  const wave = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, index) => `${kindOf(from + index)}-${from + index}`);
  const play = async (names: readonly string[]): Promise<void> => {
    const posted = await postRuns(here, names, (key) => key.split('-')[0]!);
    for (const { id, key } of posted.filter((each) => each.key.startsWith('cancelled'))) {
      await until(`${key} is asked`, () => asked.slow.has(key), 300_000);
      await here.client.cancel(id);
    }
    await ends(here, idsOf(posted), 600_000);
  };
  const breakers = async () => (await here.client.breakers()).data.map(({ id }) => id);

  await play(wave(0, count / 10));
  // Below the threshold nothing opens; what it took is counted by the model itself.
  const opened = await until('the breaker is open', async () => (await breakers()).includes('model:down:server_error') && asked.total, 120_000);
  expect(opened).toBeGreaterThanOrEqual(volume);
  await until('both workers know, and what was under way is over', async () => await metric(here, 'treadle_breaker_state{breaker="model:down"') >= 2 && flying === 0, 60_000);
  const memories = () => Promise.all(here.workers.roles.map((role) => memoryOf(role)));
  const before = await memories();
  const [askedBefore, knownBefore] = [asked.total, asked.down.size];
  most = 0;
  for (let from = count / 10; from < count; from += 500) {
    await play(wave(from, Math.min(count, from + 500)));
    // The most that lay around at once between two collections is kept by malloc: this is about what runs leave, not about how seldom V8 collects.
    await memories();
  }

  const sick = wave(0, count).filter((key) => key.startsWith('sick')).length;
  const cancelled = wave(0, count).filter((key) => key.startsWith('cancelled')).length;
  expect(await metric(here, 'treadle_runs_ended_total{agent="sick",status="completed"')).toBe(sick);
  expect(await metric(here, 'treadle_runs_ended_total{agent="odd",status="completed"')).toBe(count - sick - cancelled);
  expect(await metric(here, 'treadle_runs_ended_total{agent="cancelled",status="cancelled"')).toBe(cancelled);
  expect(most).toBeLessThanOrEqual(1);
  // Whoever came after that met it as a probe, or not at all.
  expect(asked.down.size - knownBefore).toBeLessThan(sick / 4);
  expect((await breakers()).filter((id) => id !== 'model:down:server_error')).toEqual([]);
  const after = await Promise.all(here.workers.roles.map((role, index) => settledMemoryOf(role, before[index]!.resources + slots)));
  const grown = (of: 'heap' | 'rss' | 'least_rss'): number[] => after.map((left, index) => (left[of] - before[index]![of]) / mb);
  const growths = `heap grew by ${told(grown('heap'))} MB, RSS by ${told(grown('rss'))} MB, the least RSS by ${told(grown('least_rss'))} MB`;
  for (const each of [...grown('heap'), ...grown('least_rss')]) expect(each, growths).toBeLessThan(scaled({ small: 20, large: 30 }));
  // As an operator sees it. The room for young objects has grown to what the start settings allow (32 MB) within the first 500 runs, not within 30.
  if (count >= 5000) for (const each of grown('rss')) expect(each, growths).toBeLessThan(30);
  expect([...here.workers.complaints, ...here.api.complaints]).toEqual([]);
  process.stdout.write(`R19: ${count} runs, 3 models, 2 workers; opened after ${opened} requests (threshold ${volume}); the model that is down was then asked ${asked.total - askedBefore} times, at most ${most} at once; `
    + `${growths}\n`);
}, scaled({ small: 300_000, large: 3_600_000 }));
