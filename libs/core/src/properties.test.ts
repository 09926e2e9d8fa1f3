/**
 * The invariants C1 to C6 on random courses of a run: every decision is folded, every request to a model is checked, whatever
 * the model, the tools, the clock and people do, and wherever a delivery breaks off.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ToolDefinition } from './agent-spec.ts';
import { awaitsAnswer, childOf, isSpawn, reserved, tellings } from './children.ts';
import { waitingForApproval } from './approval.ts';
import { stamp, restoreState, stateChanges } from './codec.ts';
import type { Command } from './command.ts';
import { decide } from './decide.ts';
import { errorTypes } from './error-type.ts';
import type { EventBody, RunEvent } from './events.ts';
import { evolve, fold } from './evolve.ts';
import { defaultLimits, limitNames, type AgentLimits } from './limits.ts';
import { runnableCalls } from './questions.ts';
import { ownUsage } from './own-usage.ts';
import { modelRequest } from './request.ts';
import { initialState, specOf, type RunState } from './state.ts';
import { isEnded } from './stop-reason.ts';
import { toolUses } from './tool-call.ts';
import { noJudgement, type Decision, type ReplyCall, type TurnInput } from './turn-input.ts';
import { addUsage, costOf, noUsage } from './usage.ts';

const { env } = (globalThis as unknown as { process: { env: Readonly<Record<string, string | undefined>> } }).process;
/** `npm run test:properties` tries a million. */
const runs = Number(env.PROPERTY_RUNS ?? 10_000);

const model = (name: string) => ({ name, provider: 'p', model: name, context_window: 1000, max_output_tokens: 100, supports_tools: true, supports_images: false });
const range = (value: unknown) => ({ default: value, max: value });
const created: EventBody = {
  type: 'run_created', agent: 'a', agent_version: 'v', session_id: 's', parent_run_id: null, forked_from: null, tenant: 't', chain: 'c', tools: ['*'],
  limits: { ...defaultLimits, max_turns: 8, tool_budget: 12, max_cost_usd: 8 }, metadata: {}, tags: [], priority: 50, run_at: null,
  agent_spec: {
    name: 'a', soul: null, instructions: 'x', tools: ['*'], protocol: 'native', validators: [], stop_hooks: [], chain: { name: 'c', models: [model('m1'), model('m2')] },
    limits: Object.fromEntries(limitNames.map((name) => [name, range(defaultLimits[name])])) as unknown as AgentLimits,
  },
};
/** The second costs a cent a token of its prompt. */
const prices = { m1: { input_per_mtok: 0, output_per_mtok: 0 }, m2: { input_per_mtok: 10_000, output_per_mtok: 0 } };
const builtin = (name: string, more: Partial<ToolDefinition>): ToolDefinition =>
  ({ name, wire_name: name, description: '', input_schema: {}, effect: 'idempotent', parallel: 'parallel', timeout_ms: 1, hash: name, ...more });
const tools: ToolDefinition[] = [builtin('spawn', { builtin: 'spawn_agent' }), builtin('ask', { builtin: 'ask_user', parallel: 'serial' }),
  builtin('deploy', { effect: 'once', parallel: 'serial', approval: { timeout_s: null, on_timeout: 'deny' } }), builtin('erase', { approval: { timeout_s: 60, on_timeout: 'deny' } }), builtin('sell', { approval: { timeout_s: 90, on_timeout: 'expire' } }), ...['look', 'write'].map((name) => ({
  name, wire_name: name, description: '', input_schema: {}, effect: 'once' as const, parallel: name === 'look' ? 'parallel' as const : 'serial' as const, timeout_ms: 1, hash: name, on_unknown: 'ask' as const }))];

/** Null, but for one time in `of`. */
function seldom<T>(of: number, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> {
  return fc.oneof({ weight: of - 1, arbitrary: fc.constant(null) }, { weight: 1, arbitrary });
}

const text = fc.oneof(fc.constant(''), fc.constant(' \n'), fc.string(), fc.constant('half \ud83c'), fc.string({ unit: 'binary' }));
const call: fc.Arbitrary<ReplyCall> = fc.record({
  provider_id: fc.option(fc.oneof(fc.constantFrom('x', 'call_t1_0', 'a.b:0', '', 'valueOf', '__proto__'), fc.string())), name: fc.oneof(fc.constantFrom('look', 'write', 'ghost', 'spawn', 'spawn', 'ask', 'deploy', 'erase', 'sell'), text),
  input: fc.oneof(fc.dictionary(text, fc.oneof(text, fc.integer())), fc.record({ agent: fc.constant('helper'), input: text, wait: fc.boolean() })), problem: seldom(8, fc.constant('bad')),
});
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 1, arbitrary: fc.constant({ type: 'cancel' as const }) }, { weight: 3, arbitrary: fc.constant({ type: 'pause' as const }) },
  { weight: 3, arbitrary: text.map((words) => ({ type: 'steer' as const, text: words })) },
  { weight: 4, arbitrary: fc.record({ id: fc.constantFrom('x', 'call_t1_0', 'call_t2_0'), happened: fc.boolean(), content: text })
    .map(({ id, happened, content }) => ({ type: 'outcome' as const, tool_use_id: id, outcome: happened ? 'happened' as const : 'did_not_happen' as const, content, by: 'p' })) },
  { weight: 8, arbitrary: fc.record({ at: fc.nat(3), approves: fc.boolean(), other: fc.boolean(), changed: seldom(2, fc.record({ input: fc.dictionary(text, text), digest: fc.constant('sha256:new') })), reason: seldom(2, text) })
    .map(({ at, approves, other, changed, reason }) => ({ type: 'approval' as const, tool_use_id: String(at), digest: other ? 'sha256:other' : '', decision: approves ? 'approve' as const : 'deny' as const, by: 'p', reason, ...(changed === null ? {} : { changed }) })) },
  { weight: 6, arbitrary: fc.record({ child: fc.nat(5), status: fc.constantFrom('completed' as const, 'failed' as const, 'cancelled' as const), calls: fc.nat(12), text })
    .map(({ child, status, calls, text: said }) => ({ type: 'child_ended' as const, child_run_id: String(child), status, stop_reason: 'answered' as const, text: said, usage: { ...noUsage, input_tokens: 7 }, tool_calls: calls })) },
  { weight: 6, arbitrary: seldom(2, text).map((input) => ({ type: 'resume' as const, ...(input === null ? {} : { input }) })) });

/** One thing that happens; what does not fit the moment is skipped. */
const happening = fc.record({
  commands: fc.array(command, { maxLength: 2 }),
  commanded: fc.integer({ min: 0, max: 2 }).map((n) => n === 0),
  crash: fc.integer({ min: 0, max: 5 }).map((n) => n === 0),
  fails: seldom(6, fc.constantFrom(...errorTypes)),
  reply: fc.record({ text, thinking: text, calls: fc.oneof({ weight: 1, arbitrary: fc.constant([]) }, { weight: 5, arbitrary: fc.array(call, { minLength: 1, maxLength: 3 }) }), length: fc.integer({ min: 0, max: 30 }).map((n) => n === 0) }),
  settled: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
  unknown: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
  content: text,
  away: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: fc.uniqueArray(fc.record({
    model: fc.constantFrom('m1', 'm2'), why: fc.constantFrom('breaker_open' as const, 'credential_benched' as const, 'model_benched' as const),
    wait: fc.option(fc.integer({ min: 0, max: 5000 }).map((seconds) => ({ until_s: 1000 + seconds, wait_ms: seconds * 1000 }))) }), { selector: ({ model: name }) => name }) }),
  waits: fc.record({ room_ms: fc.constantFrom(0, 0, 0, 500, 90_000), wait_ms: fc.constantFrom(0, 0, 0, 700), retry_after_s: fc.constantFrom(null, null, 5, 3600), other_key: fc.boolean(), feature: fc.constantFrom(null, 'images' as const, 'stream_options' as const) }),
  /** Whether a claim comes when the run is due, not a moment after the last event: deadlines of approvals are far off. */
  due: fc.integer({ min: 0, max: 5 }).map((n) => n === 0),
  // In quarters of a dollar, which add up exactly.
  usage: fc.nat(6).map((n) => ({ ...noUsage, input_tokens: 3 * n, output_tokens: n, cached_tokens: n, cost_usd: n / 4 })),
  timedOut: seldom(30, fc.constantFrom('turn_timeout' as const, 'session_timeout' as const)),
});
type Happening = typeof happening extends fc.Arbitrary<infer T> ? T : never;

/** Plays a run; answers its log. Throws where an invariant is broken. */
function play(course: readonly Happening[]): RunEvent[] {
  const log: RunEvent[] = [];
  let state: RunState = { ...initialState, run_id: 'run_x' };
  let epoch = 0;
  const append = (events: readonly EventBody[]): void => {
    for (const body of events) {
      const event = stamp(state, body, state.last_ts + 1, epoch);
      const before = state;
      state = evolve(Object.freeze(state), event);
      checkApproval(before, event);
      // Within a generation the transcript is only appended to.
      if (state.transcript.generation === before.transcript.generation) expect(state.transcript.messages.slice(0, before.transcript.messages.length - 1)).toEqual(before.transcript.messages.slice(0, -1));
      log.push(event);
    }
  };
  append([created, { type: 'user_message', content: 'go' }]);
  let decision: Decision | null = null;
  for (const now of course) {
    if (isEnded(state.status)) break;
    if (now.crash) decision = null;
    if (decision === null) epoch++;
    const input: TurnInput = decision === null ? claimed(state, now) : answer(state, decision, now);
    const before = state;
    decision = decide(state, { ...input, commands: now.commanded ? now.commands.map((each) => addressed(before, each)) : [] } as TurnInput);
    append(decision.events);
    checkEffect(state, decision);
    checkChildren(before, state);
    checkUsage(before, state, decision.events);
    if (!['call_model', 'settle_tool_calls', 'summarise'].includes(decision.effect.type)) decision = null;
  }
  return log;
}

/** Whoever waits for a word is not carried out without it, whoever was denied not at all; and each word is about what was asked. */
function checkApproval(before: RunState, event: RunEvent): void {
  if (event.type === 'approval_resolved') expect(event.digest).toBe(before.calls.find((each) => each.tool_use_id === event.tool_use_id)?.approval?.digest);
  if (event.type !== 'tool_result') return;
  const asked = before.calls.find((each) => each.tool_use_id === event.tool_use_id)?.approval;
  if (asked?.state === 'waiting') expect(event.outcome).toBe('not_started');
  if (asked?.state === 'denied' || event.outcome === 'denied') expect([asked?.state, event.outcome]).toEqual(['denied', 'denied']);
}

/** A word of a child is about one that there is, within what it was given; or about nobody. So is a word on a call that waits for approval. */
function addressed(state: RunState, told: Command): Command {
  if (told.type === 'approval') {
    const asked = state.calls.filter((each) => each.approval !== undefined)[Number(told.tool_use_id)];
    return asked === undefined ? told : { ...told, tool_use_id: asked.tool_use_id, digest: told.digest || asked.approval!.digest };
  }
  const child = told.type === 'child_ended' ? state.children[Number(told.child_run_id)] : undefined;
  return told.type !== 'child_ended' || child === undefined ? told : { ...told, child_run_id: child.child_run_id, tool_calls: Math.min(told.tool_calls, child.limits.tool_budget) };
}

/** What is used and what is reserved never go beyond the limit, and whoever ends leaves nobody waiting. */
function checkChildren(before: RunState, state: RunState): void {
  const told = tellings(before, state);
  const live = state.children.filter((child) => child.status === 'queued');
  if (isEnded(state.status)) {
    if (state.status === 'cancelled') expect(told.map((each) => each.run_id)).toEqual(live.map((child) => child.child_run_id));
    return;
  }
  // A batch that does not fit is in the log, and not carried out.
  if (state.children.length > before.children.length) expect(state.tool_calls + reserved(state).tool_calls).toBeLessThanOrEqual(state.limits.tool_budget);
  expect(state.children.length).toBeLessThanOrEqual(state.limits.max_children);
  if (state.pause_reason === 'requested' && before.pause_reason !== 'requested') expect(told.map((each) => each.command.type)).toEqual(live.map(() => 'pause'));
  for (const { kind, tool_use_id, child_run_id } of state.pending) {
    expect(state.calls.find((each) => each.tool_use_id === tool_use_id)?.settled).toBe(false);
    if (kind === 'child_run') expect(live.some((child) => child.child_run_id === child_run_id)).toBe(true);
  }
  if (state.pause_reason === 'children' || state.pause_reason === 'input' || state.pause_reason === 'approval') expect(state.pending).not.toEqual([]);
  // What waits for a word can be seen, and given one.
  if (state.status === 'paused') expect(state.pending.filter(({ kind }) => kind === 'approval')).toEqual(waitingForApproval(state));
}

/** What each model has used and what sub-agents have is what the run has; and no request goes to another model that it cannot pay for. */
function checkUsage(before: RunState, state: RunState, events: readonly EventBody[]): void {
  expect(Object.values(ownUsage(state)).reduce(addUsage, state.children_usage)).toEqual(addUsage(state.usage, state.turn_usage));
  for (const event of events) {
    if (event.type !== 'model_request' || event.model === 'm1' || event.position === before.position) continue;
    const spent = addUsage(state.usage, state.turn_usage).cost_usd + reserved(state).cost_usd;
    expect(spent + costOf({ ...noUsage, input_tokens: event.estimated_tokens }, prices.m2)).toBeLessThan(state.limits.max_cost_usd!);
  }
}

function claimed(state: RunState, now: Happening): TurnInput {
  return {
    type: 'turn_claimed', unavailable: now.away, prices, room_ms: now.waits.room_ms, now_s: claimedAt(state, now), worker: 'w', deliveries: 1, poison_limit: 3, nudges: 0, nudge_limit: 5, wait_ms: now.waits.wait_ms, tools: state.tools === null ? tools : null, tool_problems: [],
    begun: results(state, now), judgement: noJudgement, history: null, commands: [],
  };
}

function claimedAt(state: RunState, now: Happening): number {
  const soon_s = 1000 + state.last_ts;
  return now.due && state.resumes_at !== null ? Math.max(soon_s, Date.parse(state.resumes_at) / 1000) : soon_s;
}

function results(state: RunState, now: Happening) {
  return carriedOut(state, now).filter((each) => childOf(state, each.tool_use_id) === undefined || (isSpawn(state, each) && !awaitsAnswer(each)))
    .map((each) => ({ tool_use_id: each.tool_use_id, content: now.content.toWellFormed(), is_error: false, duration: 0, ...(now.unknown ? { outcome: 'unknown' as const } : {}) }));
}

function carriedOut(state: RunState, now: Happening) {
  return runnableCalls(state).filter((_, index) => now.settled[index] ?? false);
}

/** The starts among what was carried out: each is under way. */
function awaitedOf(state: RunState, now: Happening): string[] {
  return carriedOut(state, now).filter((each) => childOf(state, each.tool_use_id) !== undefined && awaitsAnswer(each)).map((each) => each.tool_use_id);
}

function answer(state: RunState, decision: Decision, now: Happening): TurnInput {
  if (decision.effect.type === 'summarise') return { type: 'summarised', model: decision.effect.model.name, unavailable: now.away, now_s: 1000, purpose: decision.effect.purpose, text: now.crash ? null : now.content, usage: now.usage, elapsed_s: 1, commands: [] };
  if (decision.effect.type === 'settle_tool_calls') return { type: 'tool_calls_settled', results: results(state, now), awaited: awaitedOf(state, now), elapsed_s: 1, timed_out: now.timedOut, commands: [] };
  if (now.fails !== null || now.timedOut !== null) {
    const failure = { error_type: now.fails ?? 'timeout', detail: now.content, retry_after_s: now.waits.retry_after_s, other_key: now.waits.other_key, ...(now.waits.feature === null ? {} : { feature: now.waits.feature }), partial_text: now.reply.text, usage: now.usage };
    return { type: 'model_failed', unavailable: now.away, prices, now_s: 1000, failure, elapsed_s: 1, timed_out: now.timedOut, jitter: 0.5, commands: [] };
  }
  const reply = { ...now.reply, provider_data: now.reply.thinking.length > 3 ? { signature: now.reply.thinking.length } : null, finish: now.reply.length ? 'length' as const : 'stop' as const, finish_raw: 'x', usage: now.usage };
  const children = Object.fromEntries(toolUses(state, reply.calls).map(({ tool_use_id }) => [tool_use_id, { child_run_id: `run_${tool_use_id}`, limits: defaultLimits }]));
  const approvals = Object.fromEntries(toolUses(state, reply.calls).flatMap((use) => state.tools?.some((tool) => tool.name === use.tool_name && tool.approval !== undefined) === true ? [[use.tool_use_id, `sha256:${use.tool_use_id}`]] : []));
  return { type: 'model_replied', children, approvals, unavailable: now.away, prices, now_s: 1000 + state.last_ts, reply, judgement: noJudgement, shown_text: '', elapsed_s: 1, commands: [] };
}

function checkEffect(state: RunState, { effect }: Decision): void {
  if (effect.type === 'end_run') expect(state.ended_at).not.toBeNull();
  if (effect.type === 'pause') expect([state.status, state.resumes_at !== null]).toEqual(['paused', effect.delay_ms !== undefined]);
  if (effect.type === 'settle_tool_calls') expect(runnableCalls(state)).not.toEqual([]);
  if (effect.type === 'call_model') checkRequest(state);
}

/** C6. */
function checkRequest(state: RunState): void {
  const { messages } = modelRequest(state, specOf(state).chain.models[0]!);
  expect(messages.some((message) => message.role === 'user')).toBe(true);
  JSON.parse(JSON.stringify(messages), (_key, value: unknown) => {
    if (typeof value === 'string' && !value.isWellFormed()) throw new Error(`half a character in ${JSON.stringify(value)}`);
    return value;
  });
  const ids = messages.flatMap((message) => message.role === 'assistant' ? message.calls.map((each) => each.tool_use_id) : []);
  expect(new Set(ids).size).toBe(ids.length);
  messages.forEach((message, index) => {
    if (message.role !== 'assistant') return;
    expect(message.text.trim() !== '' || message.calls.length > 0).toBe(true);
    const behind = messages.slice(index + 1, index + 1 + message.calls.length);
    expect(behind.map((each) => each.role === 'tool' ? each.tool_use_id : each.role)).toEqual(message.calls.map((each) => each.tool_use_id));
  });
}

describe('on any course of a run', () => {
  test('the invariants hold, and the log folds the same from any prefix and from any snapshot', () => {
    let deepest = 0;
    const met = new Map<string, number>();
    const meet = (what: string): void => { met.set(what, (met.get(what) ?? 0) + 1); };
    fc.assert(fc.property(fc.array(happening, { maxLength: 60, size: 'max' }), fc.nat(), (course, cut) => {
      const log = play(course);
      const start: RunState = { ...initialState, run_id: 'run_x' };
      const whole = fold(start, log);
      deepest = Math.max(deepest, whole.turn_number);
      for (const event of log) if (event.type === 'child_run' || event.type === 'state_change') meet(event.type === 'child_run' ? event.status : event.reason);
      for (const event of log) if (event.type === 'approval_resolved') meet(`${event.decision} by ${event.by}${event.input === undefined ? '' : ' with other arguments'}`);
      const prefix = fold(start, log.slice(0, cut % (log.length + 1)));
      expect(fold(prefix, log.slice(cut % (log.length + 1)))).toEqual(whole);

      const stored = stateChanges(initialState, prefix);
      const restored = restoreState(initialState, { ...prefix, ...stored });
      expect(restored).toEqual(prefix);
      const ends = log.filter((event) => event.type === 'run_end');
      expect(ends.length).toBe(whole.ended_at === null ? 0 : 1);
      const uses = log.flatMap((event) => event.type === 'tool_use' ? [event.tool_use_id] : []);
      const settled = log.flatMap((event) => event.type === 'tool_result' ? [event.tool_use_id] : []);
      expect(new Set(settled).size).toBe(settled.length);
      if (whole.ended_at !== null) expect(settled.toSorted()).toEqual(uses.toSorted());
    }), { numRuns: runs });
    // Courses that all end at once would show nothing.
    expect(deepest).toBeGreaterThan(4);
    for (const reason of ['queued', 'completed', 'children', 'input', 'outcome', 'cost_budget', 'approval', 'approval_timeout', 'approve by p', 'approve by p with other arguments', 'deny by p', 'deny by host']) expect(met.get(reason) ?? 0, reason).toBeGreaterThan(0);
  }, 120_000 + runs * 5);
});
