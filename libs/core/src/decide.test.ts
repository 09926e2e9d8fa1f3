/**
 * Given events, when an input comes, then events and an effect: compared as plain data.
 */
import { describe, expect, test } from 'vitest';
import type { AgentSpec, ToolDefinition } from './agent-spec.ts';
import { stamp } from './codec.ts';
import type { Command } from './command.ts';
import { decide } from './decide.ts';
import { errorTypes } from './error-type.ts';
import type { EventBody } from './events.ts';
import { evolve } from './evolve.ts';
import { defaultLimits, limitNames, type Limits } from './limits.ts';
import { recoveryTable } from './recovery.ts';
import { modelRequest } from './request.ts';
import { initialState, specOf, type RunState } from './state.ts';
import { noJudgement, type Decision, type ModelFailure, type ModelReply, type ReplyCall, type TurnInput } from './turn-input.ts';
import { noUsage } from './usage.ts';

const tool = (name: string, over: Partial<ToolDefinition> = {}): ToolDefinition => ({
  name, wire_name: name, description: '', input_schema: {}, effect: 'read', parallel: 'parallel', timeout_ms: 1, hash: name, ...over });
const model = (name: string) => ({
  name, provider: 'p', model: name, context_window: 1000, max_output_tokens: 100, supports_tools: true, supports_images: false });
const ranges = Object.fromEntries(limitNames.map((name) => [name, { default: defaultLimits[name], max: defaultLimits[name] }])) as unknown as AgentSpec['limits'];
const spec = (...models: string[]): AgentSpec => ({
  name: 'a', soul: 'I am A.', instructions: 'Do.', tools: ['*'], limits: ranges, protocol: 'native', validators: [], stop_hooks: [], chain: { name: 'c', models: models.map(model) } });

function given(limits: Partial<Limits> = {}, models = ['m1'], ...more: EventBody[]): RunState {
  const created: EventBody = {
    type: 'run_created', agent: 'a', agent_version: 'v', agent_spec: spec(...models), session_id: 's', parent_run_id: null, forked_from: null, tenant: 't',
    limits: { ...defaultLimits, ...limits }, chain: 'c', tools: ['*'], metadata: {}, tags: [], priority: 50, run_at: null };
  return after(initialState, [created, { type: 'user_message', content: 'hi' }, ...more]);
}

/** Folds bodies as the engine does: what `decide` emits must be accepted (C2). */
function after(state: RunState, bodies: readonly EventBody[]): RunState {
  return bodies.reduce((folded, body) => evolve(folded, stamp(folded, body, folded.last_ts + 1, folded.epoch)), state);
}

const running: EventBody = { type: 'state_change', old: 'queued', new: 'running', reason: 'claimed' };
const turn = (attempt = 1): EventBody => ({ type: 'turn_start', attempt, worker: 'w' });
const pinned: EventBody = { type: 'tools_changed', tools: [tool('look'), tool('write', { effect: 'once', parallel: 'serial' })], problems: [], done: 'pinned' };
const asked: EventBody[] = [running, pinned, turn()];

const claimed = (over: Partial<TurnInput & { type: 'turn_claimed' }> = {}): TurnInput => ({
  type: 'turn_claimed', unavailable: [], room_ms: 0, now_s: 1000, worker: 'w', deliveries: 1, poison_limit: 3, nudges: 0, nudge_limit: 5, wait_ms: 0, judgement: noJudgement, history: null, begun: [], tools: null, tool_problems: [], commands: [], ...over });
const reply = (over: Partial<ModelReply> = {}): ModelReply => ({
  text: '', thinking: '', provider_data: null, calls: [], finish: 'stop', finish_raw: 'stop', usage: noUsage, ...over });
const replied = (said: Partial<ModelReply>, commands: Command[] = []): TurnInput => ({
  type: 'model_replied', unavailable: [], now_s: 1000, reply: reply(said), judgement: noJudgement, shown_text: '', elapsed_s: 1, commands });
const call = (name: string, over: Partial<ReplyCall> = {}): ReplyCall => ({ provider_id: null, name, input: {}, problem: null, ...over });
const failed = (error_type: ModelFailure['error_type'], over: Partial<TurnInput & { type: 'model_failed' }> = {}): TurnInput => ({
  type: 'model_failed', unavailable: [], now_s: 1000, failure: { error_type, detail: 'd', retry_after_s: null, partial_text: '', usage: null }, elapsed_s: 1, timed_out: null, jitter: 0, commands: [], ...over });
const settled = (ids: string[], over: Partial<TurnInput & { type: 'tool_calls_settled' }> = {}): TurnInput => ({
  type: 'tool_calls_settled', results: ids.map((tool_use_id) => ({ tool_use_id, content: 'r', is_error: false, duration: 0 })), elapsed_s: 1, timed_out: null, commands: [], ...over });

const types = (decision: Decision): string[] => decision.events.map((event) => event.type);
/** How it ends; at a limit, once the summary has come. */
function end(decision: Decision): string {
  if (decision.effect.type === 'summarise' && decision.effect.purpose.type === 'limit') {
    const { purpose } = decision.effect;
    return end(when(reached, { type: 'summarised', model: 'm1', unavailable: [], now_s: 1000, purpose, text: 'what was done', usage: null, elapsed_s: 1, commands: [] }));
  }
  const last = decision.events.at(-1);
  return last?.type === 'run_end' ? `${last.status}: ${last.stop_reason}` : `not ended: ${decision.effect.type}`;
}
let reached: RunState = initialState;

/** Every decision of these tests is also folded: C2. */
function when(state: RunState, input: TurnInput): Decision {
  const decision = decide(state, input);
  const folded = after(state, decision.events);
  reached = folded;
  if (decision.effect.type === 'end_run') expect(folded.ended_at).not.toBeNull();
  if (decision.effect.type === 'pause') expect(folded.status).toBe('paused');
  return decision;
}

describe('a claim', () => {
  test('of a queued run begins its first turn with a model request', () => {
    const decision = when(given(), claimed({ tools: [tool('look')] }));
    expect(types(decision)).toEqual(['state_change', 'tools_changed', 'turn_start', 'model_request']);
    expect(decision.effect).toEqual({ type: 'call_model', model: model('m1') });
  });

  test('of a turn whose reply was lost asks again, as a later attempt of the same turn', () => {
    const decision = when(given({}, ['m1'], ...asked), claimed());
    expect(decision.events[0]).toEqual({ type: 'turn_start', attempt: 2, worker: 'w' });
    expect(decision.effect.type).toBe('call_model');
  });

  test('of a turn whose reply is there settles its calls and does not ask the model', () => {
    const state = given({}, ['m1'], ...asked);
    const open = after(state, when(state, replied({ calls: [call('look')] })).events);
    const decision = when(open, claimed());
    expect(types(decision)).toEqual(['turn_start']);
    expect(decision.effect).toEqual({ type: 'settle_tool_calls' });
  });

  test('of a turn whose calls are all settled ends the turn', () => {
    const state = given({}, ['m1'], ...asked);
    const open = after(state, when(state, replied({ calls: [call('look')] })).events);
    const done = after(open, [{ type: 'tool_result', tool_use_id: 'call_t1_0', tool_name: 'look', content: 'r', is_error: false, duration: 0 }]);
    expect(types(when(done, claimed()))).toEqual(['turn_start', 'turn_end']);
  });

  test.each([
    ['a cancel', given(), claimed({ commands: [{ type: 'cancel' }] }), 'cancelled: interrupted'],
    ['too many deliveries that died', given(), claimed({ deliveries: 4 }), 'failed: poisoned'],
    ['too many lost jobs', given(), claimed({ nudges: 6 }), 'failed: infrastructure'],
    ['the last turn spent', given({ max_turns: 1 }, ['m1'], ...asked, { type: 'turn_end', duration: 1, usage: noUsage }), claimed(), 'expired: max_turns'],
    ['no active time left', given({ session_timeout_s: 1 }, ['m1'], ...asked, { type: 'turn_end', duration: 2, usage: noUsage }), claimed(), 'expired: session_timeout'],
  ])('with %s ends the run', (_name, state, input, outcome) => {
    expect(end(when(state, input))).toBe(outcome);
  });

  test('that ends a run with begun calls says of each what is known', () => {
    const state = given({}, ['m1'], ...asked);
    const open = after(state, when(state, replied({ calls: [call('write'), call('look')] })).events);
    const begun = [{ tool_use_id: 'call_t1_0', content: 'who knows', is_error: true, duration: 0, outcome: 'unknown' as const }];
    const decision = when(open, claimed({ begun, commands: [{ type: 'cancel' }] }));
    expect(decision.events.flatMap((event) => event.type === 'tool_result' ? [event.outcome] : [])).toEqual(['unknown', 'not_started']);
  });

  test('of a paused run does nothing without a resume, and goes on with one', () => {
    const paused = given({}, ['m1'], running, { type: 'state_change', old: 'running', new: 'paused', reason: 'requested' });
    expect(when(paused, claimed())).toEqual({ events: [], effect: { type: 'pause' } });
    const decision = when(paused, claimed({ commands: [{ type: 'resume', input: 'go on' }], tools: [] }));
    expect(types(decision)).toEqual(['state_change', 'user_message', 'tools_changed', 'turn_start', 'model_request']);
  });

  test('of a run woken early notes what woke it and waits again', () => {
    const waiting = given({}, ['m1'], ...asked, { type: 'turn_end', duration: 1, usage: noUsage });
    const decision = when(waiting, claimed({ wait_ms: 700, commands: [{ type: 'steer', text: 'hurry' }] }));
    expect(decision).toEqual({ events: [{ type: 'steer', content: 'hurry' }], effect: { type: 'hand_over', delay_ms: 700 } });
    expect(end(when(waiting, claimed({ wait_ms: 700, commands: [{ type: 'cancel' }] })))).toBe('cancelled: interrupted');
  });

  test('pauses a run before the model is asked', () => {
    expect(types(when(given(), claimed({ commands: [{ type: 'pause' }] })))).toEqual(['state_change', 'state_change']);
  });
});

describe('a reply', () => {
  const state = given({ tool_budget: 2 }, ['m1'], ...asked);

  test('of text ends the run as answered', () => {
    const decision = when(state, replied({ text: 'yes' }));
    expect(types(decision)).toEqual(['assistant_text', 'final_response', 'turn_end', 'state_change', 'run_end']);
    expect(end(decision)).toBe('completed: answered');
  });

  test('whose increments were shown shows the last one before the whole', () => {
    const decision = when(state, { ...replied({ text: 'yes, really' }), shown_text: 'yes' } as TurnInput);
    expect(decision.events.slice(0, 2)).toMatchObject([{ content: ', really', is_final: false }, { content: 'yes, really', is_final: true }]);
  });

  test('with calls is committed with them and only then settles them', () => {
    const decision = when(state, replied({ text: 'let me see', calls: [call('look'), call('write')] }));
    expect(types(decision)).toEqual(['assistant_text', 'tool_use', 'tool_use']);
    expect(decision.events.slice(1)).toMatchObject([{ execution: 'parallel' }, { execution: 'serial' }]);
    expect(decision.effect).toEqual({ type: 'settle_tool_calls' });
  });

  test('with more calls than the budget has runs none of them', () => {
    const decision = when(state, replied({ calls: [call('look'), call('look'), call('look')] }));
    expect(end(decision)).toBe('expired: tool_budget');
    expect(decision.events.flatMap((event) => event.type === 'tool_result' ? [event.outcome] : [])).toEqual(['not_started', 'not_started', 'not_started']);
  });

  test('with a budget of 0 never runs a tool', () => {
    expect(end(when(given({ tool_budget: 0 }, ['m1'], ...asked), replied({ calls: [call('look')] })))).toBe('expired: tool_budget');
  });

  test('that says nothing is asked again, a bounded number of times', () => {
    let now: RunState = state;
    for (const _ of [1, 2]) {
      const decision = when(now, replied({ text: ' \n' }));
      expect(decision.events[0]).toMatchObject({ type: 'error', error_type: 'empty_response', action: 'reask' });
      now = after(now, [...decision.events, turn()]);
    }
    expect(end(when(now, replied({})))).toBe('failed: empty_answer');
  });

  test('cut at the output limit is kept and gone on with; the answer is the whole, without the repeated seam', () => {
    const first = when(state, replied({ text: 'The quick brown fox jumps', finish: 'length' }));
    expect(first.events.slice(0, 2)).toMatchObject([{ type: 'assistant_text', is_final: true }, { type: 'error', error_type: 'output_truncated', action: 'continue_prompt', site: 'max_output_tokens' }]);
    const now = after(state, [...first.events, turn()]);
    expect(now.transcript.messages.at(-1)).toMatchObject({ role: 'host', note: 'continue' });
    const second = when(now, replied({ text: 'quick brown fox jumps over the dog.' }));
    expect(second.events.find((event) => event.type === 'final_response')).toMatchObject({ text: 'The quick brown fox jumps over the dog.' });
  });

  test('with a call cut at the output limit is asked for again with more room, and runs nothing', () => {
    const decision = when(state, replied({ finish: 'length', calls: [call('write')] }));
    expect(types(decision)).toEqual(['error', 'turn_end']);
    expect(decision.events[0]).toMatchObject({ action: 'enlarge_output', site: 'max_output_tokens' });
    expect(after(state, decision.events).output_room).toBe(2);
  });

  test('cut again and again ends the run', () => {
    let now: RunState = state;
    for (let piece = 0; piece < defaultLimits.max_continuations; piece++) {
      now = after(now, [...when(now, replied({ text: `piece ${piece} of it`, finish: 'length' })).events, turn()]);
    }
    expect(end(when(now, replied({ text: 'more', finish: 'length' })))).toBe('failed: irrecoverable_error');
  });

  test.each([
    ['cancel', [{ type: 'cancel' }], 'cancelled: interrupted'],
    ['pause', [{ type: 'pause' }], 'not ended: pause'],
    ['steer', [{ type: 'steer', text: 'in French' }], 'not ended: hand_over'],
  ] satisfies [string, Command[], string][])('of text meets a %s first', (_name, commands, outcome) => {
    expect(end(when(state, replied({ text: 'yes' }, commands)))).toBe(outcome);
  });

  test('of text before a pause is the answer after the resume', () => {
    const paused = after(state, when(state, replied({ text: 'yes' }, [{ type: 'pause' }])).events);
    const decision = when(paused, claimed({ commands: [{ type: 'resume' }] }));
    expect(types(decision)).toEqual(['state_change', 'final_response', 'state_change', 'run_end']);
  });

  test('names an unknown tool what exists, and too many of them end the run', () => {
    let now: RunState = given({ invalid_call_limit: 2 }, ['m1'], ...asked);
    const first = when(now, replied({ calls: [call('serch')] }));
    expect(first.events[0]).toMatchObject({ type: 'tool_use', invalid: 'There is no tool named "serch". Available: look, write.' });
    now = after(now, first.events);
    now = after(now, [...when(now, settled(['call_t1_0'])).events, turn()]);
    now = after(now, when(now, replied({ calls: [call('serch')] })).events);
    expect(end(when(now, settled(['call_t2_0'])))).toBe('failed: invalid_tool_calls');
  });
});

describe('call ids', () => {
  const ids = (decision: Decision): string[] => decision.events.flatMap((event) => event.type === 'tool_use' ? [event.tool_use_id] : []);
  const state = given({}, ['m1'], ...asked);

  test('C09, C10: a repeated, missing or illegal provider id is replaced by one made from turn and position', () => {
    const calls = [call('look', { provider_id: 'x' }), call('look', { provider_id: 'x' }), call('look'), call('look', { provider_id: 'a.b:0' })];
    expect(ids(when(state, replied({ calls })))).toEqual(['x', 'call_t1_1', 'call_t1_2', 'call_t1_3']);
  });

  test('C08: an id of an earlier turn is not used again', () => {
    const first = when(state, replied({ calls: [call('look', { provider_id: 'call_1' })] }));
    const now = after(state, first.events);
    const next = after(now, [...when(now, settled(['call_1'])).events, turn()]);
    expect(ids(when(next, replied({ calls: [call('look', { provider_id: 'call_1' })] })))).toEqual(['call_t2_0']);
  });

  test('a provider that takes our form does not collide with us', () => {
    const calls = [call('look', { provider_id: 'call_t1_1' }), call('look')];
    expect(new Set(ids(when(state, replied({ calls })))).size).toBe(2);
  });
});

describe('settled calls', () => {
  const state = given({}, ['m1'], ...asked);
  const open = after(state, when(state, replied({ calls: [call('look'), call('look')] })).events);

  test('some: go on with the rest; all: the turn ends and the run is handed over', () => {
    const some = when(open, settled(['call_t1_1']));
    expect(some.effect.type).toBe('settle_tool_calls');
    const all = when(after(open, some.events), settled(['call_t1_0']));
    expect(types(all)).toEqual(['tool_result', 'turn_end']);
    expect(all.effect).toEqual({ type: 'hand_over', delay_ms: 0 });
  });

  test('C4: results stand in the order of the calls, however they came', () => {
    const some = after(open, when(open, settled(['call_t1_1'])).events);
    const all = after(some, when(some, settled(['call_t1_0'])).events);
    expect(all.transcript.messages.slice(2)).toMatchObject([{ tool_use_id: 'call_t1_0' }, { tool_use_id: 'call_t1_1' }]);
  });

  test('C05: a steer stands behind the results, never between', () => {
    const steered = after(open, when(open, settled(['call_t1_1'], { commands: [{ type: 'steer', text: 'metric' }] })).events);
    const all = after(steered, when(steered, settled(['call_t1_0'], { commands: [{ type: 'steer', text: 'French' }] })).events);
    expect(all.transcript.messages.map((message) => message.role)).toEqual(['user', 'assistant', 'tool', 'tool', 'host', 'host']);
  });

  test.each([
    ['a cancel', { commands: [{ type: 'cancel' as const }] }, 'cancelled: interrupted'],
    ['the turn out of time', { timed_out: 'turn_timeout' as const }, 'failed: turn_timeout'],
    ['the session out of time', { timed_out: 'session_timeout' as const }, 'expired: session_timeout'],
  ])('C02: %s leaves no call without its one result', (_name, over, outcome) => {
    const decision = when(open, settled(['call_t1_0'], over));
    expect(end(decision)).toBe(outcome);
    expect(decision.events.filter((event) => event.type === 'tool_result')).toHaveLength(2);
  });
});

describe('a failure', () => {
  const state = given({}, ['m1'], ...asked);

  test('three in a row are recovered from with growing waits, the fourth ends the run', () => {
    let now = state;
    const waits: (number | null)[] = [];
    for (const _ of [1, 2, 3]) {
      const decision = when(now, failed('connect_failed'));
      waits.push(decision.effect.type === 'hand_over' ? decision.effect.delay_ms : null);
      now = after(now, [...decision.events, turn()]);
    }
    expect(waits).toEqual([2000, 4000, 8000]);
    expect(end(when(now, failed('connect_failed')))).toBe('failed: max_consecutive_errors');
  });

  test('with a Retry-After waits at least so long', () => {
    const input = failed('rate_limited', { failure: { error_type: 'rate_limited', detail: '', retry_after_s: 30, partial_text: '', usage: null } });
    expect(when(state, input).effect).toEqual({ type: 'hand_over', delay_ms: 30_000 });
  });

  test('a hop to an untried model does not use up the budget, and each model is tried once', () => {
    const two = given({}, ['m1', 'm2'], ...asked, { type: 'model_request', model: 'm1', provider: 'p', chain: 'c', position: 0, canary: false, skipped: [], estimated_tokens: 1, message_count: 1 });
    const hop = when(two, failed('model_not_found'));
    expect(hop.events[0]).toMatchObject({ type: 'error', action: 'fallback', site: 'fallback_model', from_model: 'm1', to_model: 'm2', consecutive_errors: 0 });
    const next = after(two, hop.events);
    const request = when(next, claimed());
    expect(request.effect).toMatchObject({ model: { name: 'm2' } });
    expect(end(when(after(next, request.events), failed('model_not_found')))).toBe('failed: model_unavailable');
  });

  test('of a tool turn in between resets the count', () => {
    let now = after(state, [...when(state, failed('server_error')).events, turn()]);
    expect(now.consecutive_errors).toBe(1);
    now = after(now, when(now, replied({ calls: [call('look')] })).events);
    now = after(now, when(now, settled(['call_t2_0'])).events);
    expect(now.consecutive_errors).toBe(0);
  });

  test('for the size of an image: sent smaller, smaller again, then taken out with a note, and never the same twice', () => {
    const image = { type: 'image' as const, media_type: 'image/png', data: 'A'.repeat(100) };
    let now = after(given(), [{ type: 'user_message', content: [{ type: 'text', text: 'see' }, image] }, ...asked]);
    const actions: unknown[] = [];
    for (const _ of [1, 2, 3]) {
      const decision = when(now, failed('image_too_large'));
      actions.push(decision.events.flatMap((event) => event.type === 'error' ? [event.action] : []));
      now = after(now, [...decision.events, turn()]);
    }
    expect(actions).toEqual([['shrink_image'], ['shrink_image'], ['remove_image']]);
    expect(now).toMatchObject({ image_side: 768, consecutive_errors: 0, recoveries: { image_too_large: 3 } });
    expect(now.transcript.messages[1]).toMatchObject({ content: 'see\n[An image was taken out: the model refused it for its size.]' });
    expect(end(when(now, failed('image_too_large')))).toBe('failed: irrecoverable_error');
  });

  test('C36: for the output limit: asks that model for less from then on, a little below what it said, else half, within the budget', () => {
    const refused = (output_cap?: number) => failed('output_cap_invalid', { failure: { error_type: 'output_cap_invalid', detail: 'd', retry_after_s: null, partial_text: '', usage: null, ...(output_cap === undefined ? {} : { output_cap }) } });
    const limit = (of: RunState): number => modelRequest(of, specOf(of).chain.models[0]!).model.max_output_tokens;
    const first = given({}, ['m1', 'm2'], ...asked);
    const clamped = (state: RunState, said?: number): RunState => {
      const decision = when(state, refused(said));
      expect(decision.events[0]).toMatchObject({ type: 'error', action: 'clamp_output', site: 'max_output_tokens', retry_in: 0 });
      return after(state, [...decision.events, turn()]);
    };
    expect([limit(first), limit(clamped(first, 90)), limit(clamped(first)), limit(clamped(clamped(first), 500))]).toEqual([100, 26, 50, 25]);
    const now = clamped(clamped(first));
    expect(modelRequest(now, specOf(now).chain.models[0]!).messages).toEqual(modelRequest(first, specOf(first).chain.models[0]!).messages);
    expect(modelRequest(now, specOf(now).chain.models[1]!).model.max_output_tokens).toBe(100);
    // Half of that is no reply.
    expect(when(now, refused()).events[0]).toMatchObject({ action: 'fallback', to_model: 'm2' });
  });

  test('by cancel keeps the text so far', () => {
    const input = failed('aborted', { commands: [{ type: 'cancel' }], failure: { error_type: 'aborted', detail: '', retry_after_s: null, partial_text: 'so far', usage: null } });
    const decision = when(state, input);
    expect(decision.events[0]).toMatchObject({ type: 'assistant_text', content: 'so far', interrupted: true });
    expect(end(decision)).toBe('cancelled: interrupted');
  });

  test.each(errorTypes.map((each) => [each, recoveryTable[each]] as const))('%s: retried, hopped or ended as its row says', (error_type, row) => {
    const decision = when(state, failed(error_type));
    const own = { empty_response: 'reask', output_truncated: 'enlarge_output', context_overflow: 'reactive_compact', payload_too_large: 'reactive_compact', output_cap_invalid: 'clamp_output' } as Record<string, string>;
    if (error_type in own) {
      expect(decision.events[0]).toMatchObject({ action: own[error_type] });
      expect(decision.effect).toEqual({ type: 'hand_over', delay_ms: 0 });
    } else if (row.same_model_retries > 0) expect(decision.effect).toEqual({ type: 'hand_over', delay_ms: 2000 });
    else if (row.park) expect(decision.effect.type).toBe('pause');
    else expect(end(decision)).toBe(`failed: ${row.exhausted}`);
    const two = given({}, ['m1', 'm2'], ...asked, { type: 'model_request', model: 'm1', provider: 'p', chain: 'c', position: 0, canary: false, skipped: [], estimated_tokens: 1, message_count: 1 });
    if (error_type in own) return;
    const hops = when(two, failed(error_type)).events.some((event) => event.type === 'error' && event.action === 'fallback');
    expect(hops).toBe(row.fallback && row.same_model_retries === 0);
  });
});
