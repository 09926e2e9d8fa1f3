/**
 * The two time limits, with every clock moved by hand. Only time inside claims counts, by the monotonic clock: not what
 * the wall says, and not the time that a run spends in the queue, waiting for its next try, or paused.
 */
import { defaultLimits, idIn, noJudgement, noUsage, type Command, type ErrorType, type Limits, type ModelReply, type RunEvent } from '@treadle/core';
import { createRun, executeTurn, HeldRuns, IncrementWriter, WarmRuns, type ModelCall, type ModelOutcome, type TurnDeps } from '@treadle/engine';
import { alwaysThere, agentLimits, createMemoryRunStore, testSpec, testTool } from '@treadle/testkit';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

const day = 86_400_000;
const run_id = idIn('run', 0, '1'.repeat(32));
const failed = (error_type: ErrorType): ModelOutcome => ({ type: 'failed', failure: { error_type, detail: error_type, retry_after_s: null, partial_text: '', usage: null } });
const aborted = failed('timeout');
let wallMs = 0;
let monotonicMs = 0;

beforeEach(() => {
  wallMs = 1_700_000_000_000;
  monotonicMs = 5_000_000;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => vi.useRealTimers());

/** Time passes inside a claim. */
async function works(seconds: number): Promise<void> {
  monotonicMs += seconds * 1000;
  wallMs += seconds * 1000;
  await vi.advanceTimersByTimeAsync(seconds * 1000);
}

const asks = (name: string): ModelReply => ({
  text: '', thinking: '', provider_data: null, calls: [{ provider_id: 'c', name, input: {}, problem: null }], finish: 'tool_calls', finish_raw: 'tool_calls', usage: noUsage,
});

async function world(limits: Partial<Limits>, model: (call: ModelCall, turn: number) => Promise<ModelOutcome>) {
  const store = createMemoryRunStore();
  const clock = { nowMs: () => wallMs, monotonicMs: () => monotonicMs };
  const random = { uuid: () => crypto.randomUUID(), jitter: () => 0 };
  const run = { tenant: 't', spec: testSpec({ limits: agentLimits() }), agent_version: 'v', limits: { ...defaultLimits, ...limits }, input: 'go', metadata: {}, tags: [], priority: 50, run_at: null };
  await createRun({ store, clock, random, shards: 1 }, run, { run_id, not_after_ms: Number.MAX_SAFE_INTEGER });
  const held = new HeldRuns(store);
  let turn = 0;
  const deps: TurnDeps = {
    store, clock, random, warm: new WarmRuns(), worker: 'w', limits: { poison: 3, nudges: 5 }, held, judge: { judge: () => noJudgement }, history: () => Promise.resolve([]),
    archive: { putBlob: () => Promise.resolve('b'), getBlob: () => Promise.resolve(null), events: () => Promise.resolve([]) }, increments: new IncrementWriter({ store, random }, { firstMs: 5, maxMs: 10 }),
    models: { ...alwaysThere, call: (call) => model(call, ++turn) },
    tools: {
      catalogue: () => Promise.resolve({ tools: [testTool('quick', { effect: 'read' })], problems: [] }), check: () => null, asks: () => false,
      run: () => Promise.resolve({ content: 'ok', is_error: false, settled: true }),
    },
  };
  /** Time passes outside every claim, and the wall clock is set as it likes. */
  const rests = (ms: number, wallStep = ms): void => {
    monotonicMs += ms;
    wallMs += wallStep;
    store.passTime(ms);
  };
  /** Delivers the next turn; false when there is none. */
  const next = async (): Promise<boolean> => {
    const job = store.jobs().find((each) => each.type === 'turn');
    if (job === undefined) return false;
    await executeTurn(deps, { run_id, n: job.n }, new AbortController().signal);
    store.removeJob(job);
    return true;
  };
  const log = async () => (await store.events(run_id, 0, 1000))!.events.map((text) => JSON.parse(text) as RunEvent);
  const send = async (command: Command) => { await store.command({ run_id, command_id: crypto.randomUUID(), command, not_after_ms: Number.MAX_SAFE_INTEGER }); };
  return { next, log, send, rests, pump: () => store.pump(0, { limit: 10, grace_ms: 10_000 }) };
}

test('a session counts the seconds of its turns, and no day in the queue, in a pause or on the wall', async () => {
  const { next, log, send, rests, pump } = await world({ session_timeout_s: 100, turn_timeout_s: 90 }, async (call, turn) => {
    if (call.request.tools.length === 0) return { type: 'replied', reply: { ...asks('none'), text: 'So far.', calls: [], finish: 'stop', finish_raw: 'stop' } };
    await works(turn === 2 ? 20 : 40);
    if (turn === 2) return failed('overloaded');
    if (turn === 1) await send({ type: 'pause' });
    return { type: 'replied', reply: asks('quick') };
  });
  rests(day);
  while (await next());
  expect((await log()).at(-1)).toMatchObject({ type: 'state_change', new: 'paused' });
  rests(day, -3 * day);
  await send({ type: 'resume' });
  while (await next());
  expect((await log()).filter((event) => event.type === 'error')).toMatchObject([{ error_type: 'overloaded', action: 'backoff' }]);
  rests(day, 30 * day);
  await pump();
  expect(await next()).toBe(true);
  rests(day, -day);
  while (await next());
  const events = await log();
  expect(events.at(-1)).toMatchObject({ type: 'run_end', status: 'expired', stop_reason: 'session_timeout' });
  expect(events.filter((event) => event.type === 'state_change' && event.new === 'paused')).toMatchObject([{ active_s: 40 }]);
  expect(events.flatMap((event) => event.type === 'turn_end' ? [Math.round(event.duration)] : [])).toEqual([0, 20, 40]);
});

test('a turn that takes its whole time is aborted and ends the run', async () => {
  let stopped = 0;
  const { next, log } = await world({ turn_timeout_s: 30, session_timeout_s: 600 }, async (call) => {
    call.signal.addEventListener('abort', () => { stopped = monotonicMs; });
    for (let second = 0; second < 60 && !call.signal.aborted; second += 1) await works(1);
    return aborted;
  });
  const began = monotonicMs;
  await next();
  expect((stopped - began) / 1000).toBeCloseTo(30, 0);
  expect((await log()).at(-1)).toMatchObject({ type: 'run_end', status: 'failed', stop_reason: 'turn_timeout' });
});

test('the last turn has no more time than its session has left', async () => {
  const { next, log, rests } = await world({ turn_timeout_s: 60, session_timeout_s: 100 }, async (call, turn) => {
    if (call.request.tools.length === 0) return aborted;
    for (let second = 0; second < 55 && !call.signal.aborted; second += 1) await works(1);
    return turn === 1 ? { type: 'replied', reply: asks('quick') } : call.signal.aborted ? aborted : { type: 'replied', reply: asks('quick') };
  });
  await next();
  rests(day);
  await next();
  const events = await log();
  expect(events.at(-1)).toMatchObject({ type: 'run_end', status: 'expired', stop_reason: 'session_timeout' });
  const active = events.flatMap((event) => event.type === 'turn_end' ? [event.duration] : []);
  expect(active.map((each) => Math.round(each))).toEqual([55, 45]);
});

test('a first turn can have a time of its own', async () => {
  const { next, log } = await world({ turn_timeout_s: { first: 90, default: 20 } }, async (call, turn) => {
    for (let second = 0; second < 60 && !call.signal.aborted; second += 1) await works(1);
    return turn === 1 ? { type: 'replied', reply: asks('quick') } : aborted;
  });
  while (await next());
  const events = await log();
  expect(events.flatMap((event) => event.type === 'turn_end' ? [Math.round(event.duration)] : [])).toEqual([60, 20]);
  expect(events.at(-1)).toMatchObject({ type: 'run_end', stop_reason: 'turn_timeout' });
});
