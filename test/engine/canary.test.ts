/** What a run's end says of the model on trial, and that however many judge at once one decision comes of it. */
import { defaultLimits, idIn, type ChainSpec, type ErrorType, type EventBody, type RunEvent, type StopReason } from '@treadle/core';
import { evolve, initialState, stamp, statusOfStopReason, stopReasons, type RunState } from '@treadle/core';
import { canaryOutcome, createRun, executeTurn, finishRun, HeldRuns, judgeCanary, noIncrements, orderCanary, WarmRuns, type CanaryDecision, type CanaryDeps, type CanaryStore, type FinishDeps, type TurnDeps } from '@treadle/engine';
import { createArms, judgeTrial } from '@treadle/models';
import { alwaysThere, createMemoryCanaryStore, createMemoryRunStore, testModel, testSpec } from '@treadle/testkit';
import { beforeEach, describe, expect, test } from 'vitest';

const run_id = idIn('run', 0, '1'.repeat(32));
const definition = { model: 'next', stages: [0, 50, 100], min_runs: 5, bounds: { error_rate_delta: 0.02, latency_ratio: 1.5, cost_ratio: 2 } };
const chain: ChainSpec = { name: 'default', models: [testModel('next'), testModel('small')], canary: { model: 'next', arm: 'canary', stage: 50 } };
const usage = { input_tokens: 1, output_tokens: 1, cached_tokens: 0, wasted_tokens: 0, cost_usd: 0.25 };

function folded(bodies: readonly EventBody[], over: Partial<ChainSpec> = {}): RunState {
  const created: EventBody = {
    type: 'run_created', agent: 'a', agent_version: 'v', agent_spec: testSpec({ chain: { ...chain, ...over } }), session_id: 'ses_x', parent_run_id: null, forked_from: null, tenant: 't',
    limits: defaultLimits, chain: 'default', tools: [], metadata: {}, tags: [], priority: 50, run_at: null };
  return [created, { type: 'user_message', content: 'go' } as const, ...bodies].reduce<RunState>((state, body) => evolve(state, stamp(state, body, 1000 + state.last_seq, 1)), { ...initialState, run_id });
}

const started: EventBody[] = [{ type: 'state_change', old: 'queued', new: 'running', reason: 'claimed' }, { type: 'turn_start', attempt: 1, worker: 'w' }];
const error = (error_type: ErrorType, action: 'backoff' | 'fallback'): EventBody => ({
  type: 'error', error_type, action, site: action === 'fallback' ? 'fallback_model' : null, model: 'next', ...(action === 'fallback' ? { from_model: 'next', to_model: 'small' } : {}), detail: 'x', retry_in: 0,
  consecutive_errors: 0 });
const ended = (reason: StopReason): EventBody[] => [
  { type: 'turn_end', duration: 2, usage }, { type: 'state_change', old: 'running', new: statusOfStopReason[reason], reason }, { type: 'run_end', status: statusOfStopReason[reason], stop_reason: reason }];

describe('an outcome', () => {
  test('tells what the run has come to', () => {
    const call = { type: 'tool_use', tool_name: 'add', tool_input: {}, provider_id: null, execution: 'serial' } as const;
    const state = folded([
      ...started, error('timeout', 'backoff'), error('timeout', 'backoff'), error('overloaded', 'backoff'), { ...call, tool_use_id: 'a' }, { ...call, tool_use_id: 'b' },
      { type: 'tool_result', tool_use_id: 'a', tool_name: 'add', content: 'no', is_error: true, duration: 1 }, { type: 'tool_result', tool_use_id: 'b', tool_name: 'add', content: 'yes', is_error: false, duration: 1 },
      { type: 'validation_error', validator_name: 'shape', error_type: 'x', feedback: 'again', retries_left: 2 }, ...ended('answered')]);
    expect(canaryOutcome(state)).toEqual({
      chain: 'default', run_id, ended_ms: Math.round(state.ended_at! * 1000), verdict: 'completed', stop_reason: 'answered', errors: { timeout: 2, overloaded: 1 }, validation_failures: 1,
      tool_calls: 2, tool_errors: 1, active_s: 2, cost_usd: 0.25 });
  });

  test('of a run that had to do without its first model is a failure, whatever the next one made of it', () => {
    const asked = (position: number, skipped: { model: string; why: string }[] = []): EventBody => ({
      type: 'model_request', model: chain.models[position]!.name, provider: 'p', chain: 'default', position, canary: position === 0, skipped, estimated_tokens: 1, message_count: 1 });
    expect(canaryOutcome(folded([...started, asked(0), ...ended('answered')]))).toMatchObject({ verdict: 'completed' });
    expect(canaryOutcome(folded([...started, asked(0), error('server_error', 'fallback'), asked(1), ...ended('answered')]))).toMatchObject({ verdict: 'failed', stop_reason: 'answered', errors: { server_error: 1 } });
    // Its breaker is open: the run goes to the next one at once.
    expect(canaryOutcome(folded([...started, asked(1, [{ model: 'next', why: 'breaker_open' }]), ...ended('answered')]))).toMatchObject({ verdict: 'failed', stop_reason: 'answered', errors: {} });
  });

  test('is there for every stop reason: completed, failed, or nothing said about a model', () => {
    const verdicts = Object.groupBy(stopReasons, (reason) => canaryOutcome(folded([...started, ...ended(reason)]))!.verdict);
    expect(verdicts.completed).toEqual(['answered']);
    expect(verdicts.neutral).toEqual(['start_deadline', 'approval_timeout', 'poisoned', 'infrastructure', 'state_lost', 'interrupted']);
    expect(verdicts.failed).toHaveLength(stopReasons.length - 7);
  });

  test('is not there before the end, nor of a run without a canary', () => {
    expect(canaryOutcome(folded(started))).toBeNull();
    const { canary: _, ...plain } = chain;
    const state = folded([...started, ...ended('answered')]);
    expect(canaryOutcome({ ...state, spec: testSpec({ chain: plain }) })).toBeNull();
  });
});

describe('finishing a run', () => {
  let nowMs: number;
  let canaries: CanaryStore;
  let decisions: CanaryDecision[];
  const clock = { nowMs: () => nowMs, monotonicMs: () => performance.now() };
  const random = { uuid: () => crypto.randomUUID(), jitter: () => 0 };

  beforeEach(async () => {
    nowMs = 1_700_000_000_000;
    decisions = [];
    canaries = createMemoryCanaryStore(clock);
    await canaries.declare('default', definition);
  });

  const deps = (store: CanaryStore = canaries): CanaryDeps => ({ canaries: store, judge: judgeTrial, uuid: random.uuid, onDecided: (_chain, decision) => { decisions.push(decision); } });

  /** A run from its creation to its end; the model on trial fails where `nextFails` says so. */
  async function oneRun(finishing: (store: ReturnType<typeof createMemoryRunStore>) => FinishDeps, nextFails = false): Promise<{ events: RunEvent[]; id: string; store: ReturnType<typeof createMemoryRunStore> }> {
    const store = createMemoryRunStore();
    const id = idIn('run', 0, crypto.randomUUID());
    const spec = testSpec({ chain: { name: 'default', models: [testModel('small'), testModel('next')], canary: { model: 'next', arm: 'control', stage: 0 } } });
    const run = { tenant: 't', spec, agent_version: 'v', limits: defaultLimits, input: 'go', metadata: {}, tags: [], priority: 50, run_at: null };
    await createRun({ store, clock, random, shards: 1, arms: createArms(canaries) }, run, { run_id: id, not_after_ms: Number.MAX_SAFE_INTEGER });
    const turn: TurnDeps = {
      store, clock, random, warm: new WarmRuns(), worker: 'w', limits: { poison: 3, nudges: 5 }, held: new HeldRuns(store), judge: { judge: () => ({ hooks: [], checks: [], output: null }) },
      history: () => Promise.resolve([]), archive: { putBlob: () => Promise.resolve('b'), getBlob: () => Promise.resolve(null), events: () => Promise.resolve([]) }, increments: noIncrements, tools: { catalogue: async () => ({ tools: [], problems: [] }), check: () => null, asks: () => false, run: () => Promise.reject(new Error('no tool')) },
      models: { ...alwaysThere, call: async ({ request }) => request.model.name === 'next' && nextFails
        ? { type: 'failed', failure: { error_type: 'model_not_found', detail: 'gone', retry_after_s: null, partial_text: '', usage: null } }
        : { type: 'replied', reply: { text: 'done', thinking: '', provider_data: null, calls: [], finish: 'stop', finish_raw: 'stop', usage } } },
    };
    for (let n = 1; n <= 4 && store.jobs().some((job) => job.run_id === id && job.type === 'turn' && job.n === n); n++) {
      await executeTurn(turn, { run_id: id, n }, new AbortController().signal);
      store.removeJob({ type: 'turn', run_id: id, n });
    }
    await finishRun(finishing(store), id);
    return { events: (await store.events(id, 0, 100))!.events.map((text) => JSON.parse(text) as RunEvent), id, store };
  }

  const finishing = (store: FinishDeps['store'], over: Partial<FinishDeps['canary']> = {}): FinishDeps => ({ store, canary: { ...deps(), onFailed: (failure) => { throw failure; }, ...over } });
  const reading = async () => (await canaries.read('default', { decisions: 10, runs: true }))!;

  test('reports it once, however often the duty comes', async () => {
    const { id, store } = await oneRun((each) => finishing(each));
    for (let times = 0; times < 3; times++) await finishRun(finishing(store), id);
    expect((await reading()).totals).toMatchObject({ control: { ended: 1, completed: 1, stop_reasons: { answered: 1 }, cost_usd: 0.25 }, canary: { ended: 0 } });
  });

  test('charges the run to its arm also after a hop, and the request to the canary says what it is', async () => {
    await orderCanary(deps(), 'default', { action: 'set', stage: 50, by: 'test' });
    const runs: RunEvent[][] = [];
    while ((await reading()).totals.canary.ended === 0 || (await reading()).totals.control.ended === 0) runs.push((await oneRun((store) => finishing(store), true)).events);
    const arms = Map.groupBy(runs, ([first]) => first?.type === 'run_created' ? first.agent_spec.chain.canary?.arm : undefined);
    const asked = (events: readonly RunEvent[] | undefined) => events?.flatMap((event) => event.type === 'model_request' ? [[event.model, event.canary, event.position]] : []);
    expect(asked(arms.get('canary')![0])).toEqual([['next', true, 0], ['small', false, 1]]);
    expect(asked(arms.get('control')![0])).toEqual([['small', false, 0]]);
    expect((await reading()).totals).toMatchObject({ canary: { failed: arms.get('canary')!.length, completed: 0 }, control: { failed: 0, completed: arms.get('control')!.length } });
  });

  test('promotes from stage 0 when there is something to compare with, one decision of all who judge', async () => {
    for (let n = 0; n < 5; n++) {
      nowMs += 2000;
      await oneRun((store) => finishing(store));
    }
    expect(decisions).toMatchObject([{ decision: 'promote', from_stage: 0, to_stage: 50, reason: 'baseline', by: 'judge', numbers: { totals: { control: { ended: 5 } } } }]);
    await orderCanary(deps(), 'default', { action: 'set', stage: 0, by: 'test' });
    for (let n = 0; n < 5; n++) await oneRun((store) => ({ store, canary: { ...deps({ ...canaries, due: async () => false }), onFailed: () => undefined } }));
    decisions = [];
    await Promise.all(Array.from({ length: 8 }, () => judgeCanary(deps(), 'default')));
    expect(decisions).toHaveLength(1);
    expect((await reading()).state).toMatchObject({ stage: 50 });
  });

  test('is not kept back by a judge that fails, nor finished before its outcome is known', async () => {
    const failures: unknown[] = [];
    const broken = { judge: () => { throw new Error('no judgement'); } };
    const finished: string[] = [];
    await oneRun((store) => finishing({ ...store, finished: async (id) => { finished.push(id); } }, { ...broken, onFailed: (failure) => { failures.push(failure); } }));
    expect([finished.length, failures]).toEqual([1, [new Error('no judgement')]]);
    await expect(oneRun((store) => finishing({ ...store, finished: async (id) => { finished.push(id); } }, { canaries: { ...canaries, report: () => Promise.reject(new Error('away')) } }))).rejects.toThrow('away');
    expect(finished).toHaveLength(1);
  });
});

describe('an order', () => {
  const made: CanaryDeps = { canaries: createMemoryCanaryStore(), judge: judgeTrial, uuid: () => crypto.randomUUID(), onDecided: () => undefined };

  test('is tried again when somebody else decides meanwhile, and given up after some tries', async () => {
    await made.canaries.declare('default', definition);
    let refused = 0;
    const busy = (times: number): CanaryDeps => ({ ...made, canaries: { ...made.canaries, decide: async (...decision) => ++refused <= times ? 'conflict' : made.canaries.decide(...decision) } });
    expect(await orderCanary(busy(4), 'default', { action: 'promote', by: 'x' })).toMatchObject({ type: 'decided', decision: { to_stage: 50 } });
    refused = 0;
    expect(await orderCanary(busy(99), 'default', { action: 'promote', by: 'x' })).toEqual({ type: 'conflict' });
    expect(await orderCanary(made, 'nowhere', { action: 'pause', by: 'x' })).toEqual({ type: 'missing' });
  });

  test('a pause of what was rolled back changes nothing about that', async () => {
    await made.canaries.declare('default', definition);
    await orderCanary(made, 'default', { action: 'rollback', by: 'x' });
    expect(await orderCanary(made, 'default', { action: 'pause', by: 'x' })).toMatchObject({ decision: { status: 'rolled_back', to_stage: 0 } });
  });
});
