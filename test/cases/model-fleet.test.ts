/**
 * Kind 15, R13, R16, R19 and the keys of a model, over two workers: what one of them has learnt of a provider holds for both. Each case
 * has models of its own, since what is learnt in one would show in another.
 */
import { refusal, stall, status, text, type ChatBody, type RecordedRequest } from '@treadle/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Role } from '../e2e/processes.ts';
import { until } from '../e2e/processes.ts';
import { finish, ofType, play } from './general-checks.ts';
import { startCases, type Cases, type LiveRun, type Script } from './stage.ts';

const openMs = 3000;
const names = ['sick', 'well', 'alone', 'odd', 'keys_a', 'turns', 'crowd', 'minute', 'silent', 'later', 'calm', 'forced', 'moved'] as const;
let cases: Cases;
let workers: Role[];
/** Begun first, since the last of them waits for a minute to pass; looked at last. */
let minute: Promise<LiveRun[]>;

beforeAll(async () => {
  const keyed = { provider: 'openai' as const };
  cases = await startCases({
    models: {
      ...Object.fromEntries(names.map((name) => [name, {}])),
      keys_a: { ...keyed, credentials: ['key-one', 'key-two', 'key-three'] }, turns: { ...keyed, credentials: ['key-x', 'key-y'], credential_strategy: 'round_robin' },
      crowd: { ...keyed, credentials: ['key-c'], rates: { in_flight: 3 } }, minute: { ...keyed, credentials: ['key-m'], rates: { requests_per_minute: 6 } },
      silent: { first_token_timeout_ms: 3000, idle_timeout_ms: 3000 },
    },
    chains: { fallback: ['sick', 'well'], ...Object.fromEntries(names.map((name) => [name, [name]])), forced: ['forced', 'moved'] },
    agents: Object.fromEntries(['fallback', ...names].map((chain) => [chain, { chain, limits: { max_consecutive_errors: 6, same_error_limit: 50 } }])),
    env: { WORKER_CONCURRENCY: '10', TREADLE_BREAKER_VOLUME: '5', TREADLE_BREAKER_OPEN_MS: String(openMs) },
  });
  workers = await Promise.all([cases.worker(), cases.worker()]);
  minute = start(8, 'minute', () => text('ok'), 'minute');
  await minute;
}, 60_000);
afterAll(async () => { await cases.stop(); });

const breakers = async (): Promise<{ readonly id: string; readonly state: string; readonly kind: string }[]> => {
  const response = await fetch(`${cases.stage.api.url}/v1/breakers`);
  return (await response.json() as { data: { id: string; state: string; kind: string }[] }).data;
};
const breaker = async (id: string) => (await breakers()).find((each) => each.id === id);
const metric = async (name: string): Promise<string[]> => {
  const pages = await Promise.all(workers.map(async ({ url }) => (await fetch(`${url}/metrics`)).text()));
  return pages.flatMap((page) => page.split('\n').filter((line) => line.startsWith(name)));
};
const sum = (lines: readonly string[], ...labels: string[]): number => lines.filter((line) => labels.every((label) => line.includes(label))).reduce((total, line) => total + Number(line.split(' ').at(-1)), 0);
const start = (count: number, label: string, script: Script, agent: string): Promise<LiveRun[]> => Promise.all(Array.from({ length: count }, (_, index) => cases.begin(`${label} ${index}`, script, { agent })));
const models = (requests: readonly RecordedRequest[]): unknown[] => requests.map((request) => request.body?.model);
const keyOf = (request: RecordedRequest): string => String(request.headers['authorization']).replace('Bearer ', '');

describe.concurrent('a breaker', () => {
  test('C67: with all runs failing at once it opens, one probe goes out in time, and all runs complete', async () => {
    let ill = true;
    let first: 'to come' | 'under way' | 'over' = 'to come';
    let beside = 0;
    const script: Script = () => {
      if (ill) return refusal(529, 'Overloaded');
      if (first === 'under way') beside++;
      if (first === 'to come') {
        first = 'under way';
        // Set before the server's own, and so over before the answer goes out.
        setTimeout(() => { first = 'over'; }, 300);
      }
      return text('ok', { delayMs: 300 });
    };
    const live = await start(20, 'C67', script, 'alone');
    await until('both workers know that the breaker is open', async () => (await metric('treadle_breaker_state')).filter((line) => line.includes('model:alone') && !line.endsWith(' 0')).length === 2);
    ill = false;
    const ended = [];
    for (const each of live) ended.push(await finish(cases, each, 60_000));
    for (const { run } of ended) expect(run).toMatchObject({ status: 'completed', answer: 'ok' });
    // While the first that was let through was under way, nobody else was.
    expect([first, beside]).toEqual(['over', 0]);
    const parked = ended.flatMap(({ events }) => ofType(events, 'state_change').filter((event) => event.new === 'paused'));
    expect(parked.length).toBeGreaterThan(0);
    for (const { reason, resumes_at, ts } of parked) {
      expect(reason).toBe('models');
      // Each waits for the next probe, and for no more than the longest time that a breaker stays open.
      expect(Date.parse(resumes_at!) - ts * 1000).toBeLessThanOrEqual(12 * openMs);
    }
    await until('the breaker is closed', async () => (await breaker('model:alone:overloaded')) === undefined);
    const moves = await metric('treadle_breaker_transitions_total');
    for (const to of ['open', 'half_open', 'closed']) expect(sum(moves, 'breaker="model:alone"', `to="${to}"`), to).toBeGreaterThan(0);
  }, 90_000);

  test('R19: that is open is passed over at selection by every worker, without a turn or an error; 400s and cancels do not open one', async () => {
    const script: Script = (body: ChatBody) => (body.model === 'sick' ? status(500, {}, { error: 'down' }) : text('ok'));
    for (const each of await start(4, 'R19 first', script, 'fallback')) await finish(cases, each);
    await until('the breaker is open', async () => (await breaker('model:sick:server_error'))?.state === 'open');
    const later = await Promise.all((await start(8, 'R19 later', script, 'fallback')).map((each) => finish(cases, each)));
    const passed = later.filter(({ requests }) => models(requests).every((model) => model === 'well'));
    // One of them may have been the probe.
    expect(passed.length).toBeGreaterThanOrEqual(7);
    for (const { run, events } of passed) {
      expect(run).toMatchObject({ status: 'completed', turn_number: 1, model: 'well' });
      expect(ofType(events, 'error')).toEqual([]);
      expect(ofType(events, 'model_request')).toMatchObject([{ model: 'well', skipped: [{ model: 'sick', why: 'breaker_open' }] }]);
    }
    expect(sum(await metric('treadle_model_requests_total'), 'model="sick"', 'outcome="skipped"')).toBeGreaterThanOrEqual(7);
    expect(await until('the gauge shows it', async () => sum(await metric('treadle_breaker_state'), 'breaker="model:sick"', 'error_type="server_error"'))).toBeGreaterThan(0);
    for (const each of await start(12, 'R19 wrong', () => status(400, {}, { error: 'unexpected field "foo"' }), 'odd')) await finish(cases, each);
    expect((await breakers()).filter(({ id }) => id.startsWith('model:odd'))).toEqual([]);
  }, 90_000);

  test('that a person has opened stays open until a person resets it', async () => {
    const id = encodeURIComponent('model:forced:server_error');
    const post = (action: string) => fetch(`${cases.stage.api.url}/v1/breakers/${id}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ action }) });
    expect((await post('open')).ok).toBe(true);
    await until('both workers know', async () => (await metric('treadle_breaker_state')).filter((line) => line.includes('model:forced')).length === 2);
    const away = await play(cases, 'forced', [text('ok')], { agent: 'forced' });
    expect(models(away.requests)).toEqual(['moved']);
    expect((await post('reset')).ok).toBe(true);
    await until('both workers know', async () => sum(await metric('treadle_breaker_state'), 'model:forced') === 0);
    expect(models((await play(cases, 'forced again', [text('ok')], { agent: 'forced' })).requests)).toEqual(['forced']);
    expect((await post('reset')).status).toBe(404);
  }, 60_000);
});

describe.concurrent('keys', () => {
  test('that are refused give way to the next within the turn, for every run', async () => {
    const dead = new Set(['key-one']);
    const script: Script = (_, __, key) => (dead.has(key) ? refusal(401, 'Incorrect API key provided') : text('ok'));
    const first = await play(cases, 'keys first', script, { agent: 'keys_a' });
    expect(first.requests.map(keyOf)).toEqual(['key-one', 'key-two']);
    expect(first.run).toMatchObject({ status: 'completed', turn_number: 1 });
    expect(ofType(first.events, 'error')).toMatchObject([{ error_type: 'auth_invalid', action: 'rotate_credential', site: null, consecutive_errors: 1 }]);
    let batch = 0;
    await until('neither worker asks with the dead key', async () => {
      const others = await Promise.all((await start(6, `keys others ${++batch}`, script, 'keys_a')).map((each) => finish(cases, each)));
      return others.every(({ requests }) => requests.every((request) => keyOf(request) !== 'key-one'));
    });
    expect((await breakers()).filter(({ kind }) => kind === 'bench').length).toBeGreaterThan(0);
    expect(JSON.stringify([first.events, await breakers(), await metric('treadle')])).not.toMatch(/key-(one|two|three)/);
    dead.add('key-two');
    dead.add('key-three');
    const none = await play(cases, 'keys none', script, { agent: 'keys_a' });
    expect(none.run).toMatchObject({ status: 'failed', stop_reason: 'model_unavailable', error: { error_type: 'auth_invalid' } });
  }, 60_000);

  test('take turns where that is asked for', async () => {
    const runs = await Promise.all((await start(8, 'turns', () => text('ok'), 'turns')).map((each) => finish(cases, each)));
    expect(new Set(runs.flatMap(({ requests }) => requests.map(keyOf)))).toEqual(new Set(['key-x', 'key-y']));
  }, 60_000);
});

describe.concurrent('rates of a key', () => {
  test('hold over all workers: never more in flight than there may be, and all are served', async () => {
    let now = 0;
    let most = 0;
    const script: Script = () => {
      now++;
      most = Math.max(most, now);
      setTimeout(() => { now--; }, 200);
      return text('ok', { delayMs: 200 });
    };
    const runs = await Promise.all((await start(18, 'crowd', script, 'crowd')).map((each) => finish(cases, each, 60_000)));
    for (const { run, events } of runs) {
      expect(run).toMatchObject({ status: 'completed', turn_number: 1 });
      expect(ofType(events, 'error')).toEqual([]);
    }
    expect(most).toBeLessThanOrEqual(3);
    expect(most).toBeGreaterThan(1);
  }, 90_000);
});

describe('waiting', () => {
  test('R13, R16: models that say nothing and runs that wait for a provider hold up nobody', async () => {
    const waiting = await start(40, 'later', (_, count) => (count === 0 ? status(429, { 'retry-after': '20' }, { error: 'slow' }) : text('ok')), 'later');
    await Promise.all(waiting.map((each) => until('it waits', () => each.seen.some((event) => event.type === 'error'))));
    const silent = await start(10, 'silent', (_, count) => (count === 0 ? stall({ after: 'nothing' }) : text('ok')), 'silent');
    const beside = await Promise.all((await start(10, 'calm beside', () => text('ok'), 'calm')).map((each) => finish(cases, each)));
    for (const each of silent) {
      const { run, events } = await finish(cases, each, 60_000);
      expect(run.status).toBe('completed');
      expect(ofType(events, 'error').every((event) => event.error_type === 'timeout')).toBe(true);
    }
    const again: number[] = [];
    for (const each of waiting) {
      const { run, requests, events } = await finish(cases, each, 60_000);
      expect(run.status).toBe('completed');
      expect(ofType(events, 'error')).toMatchObject([{ error_type: 'rate_limited', action: 'backoff', retry_in: 20 }]);
      expect(requests[1]!.at_ms - requests[0]!.at_ms).toBeGreaterThanOrEqual(20_000);
      again.push(requests[1]!.at_ms);
    }
    // More wait, or hear nothing, than there are slots: were these held, nobody could have been served before the first of them came again.
    expect(beside.some(({ run }) => Date.parse(run.ended_at!) < Math.min(...again))).toBe(true);
    for (const { run } of beside) expect(run.status).toBe('completed');
  }, 120_000);
});

test('rates of a key hold per minute: what has no room yet waits without a turn or an error', async () => {
  const runs = await Promise.all((await minute).map((each) => finish(cases, each, 110_000)));
  for (const { run, events } of runs) {
    expect(run).toMatchObject({ status: 'completed', turn_number: 1 });
    expect(ofType(events, 'error')).toEqual([]);
  }
  const at = runs.flatMap(({ requests }) => requests.map((request) => request.at_ms)).sort((a, b) => a - b);
  expect(at).toHaveLength(8);
  for (const [index, ms] of at.slice(6).entries()) expect(ms - at[index]!).toBeGreaterThan(59_000);
}, 120_000);
