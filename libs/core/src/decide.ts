/**
 * What must happen next: `decide(state, input)`. Facts in, decision out, compared as plain data.
 *
 * C1  Synchronous, total, free of time, randomness and I/O.
 * C2  Every event it emits is accepted by `evolve` in the state it was decided for.
 * C3  A reply's calls are committed (with this decision's events) before any of them is begun (its effect).
 * C4  Each call is settled exactly once.
 * Every decision uses up all commands it was given: what cannot act now is a fact in the log that acts later.
 */
import { assertNever } from './assert-never.ts';
import { wishesOf } from './command.ts';
import { decideFailed } from './decide-failed.ts';
import { closingResults, endRun, notStarted, turnEnd, type EndOptions } from './ending.ts';
import type { EventBody } from './events.ts';
import { estimateTokens } from './request.ts';
import { specOf, type RunState } from './state.ts';
import { toolUses } from './tool-call.ts';
import type { Decision, ModelReplied, ToolCallsSettled, TurnClaimed, TurnInput } from './turn-input.ts';

export function decide(state: RunState, input: TurnInput): Decision {
  switch (input.type) {
    case 'turn_claimed': return decideClaimed(state, input);
    case 'model_replied': return decideReplied(state, input);
    case 'model_failed': return decideFailed(state, input);
    case 'tool_calls_settled': return decideSettled(state, input);
    default: return assertNever(input);
  }
}

/** A delivery has taken the run. Whatever an earlier one left behind is in the state. */
function decideClaimed(state: RunState, input: TurnClaimed): Decision {
  const wishes = wishesOf(input.commands);
  const closing: EndOptions = { elapsed_s: 0, turn_open: state.turn_open, before: [...wishes.events, ...closingResults(state, input.begun)] };
  if (wishes.cancel) return endRun(state, 'interrupted', closing);
  if (state.status === 'paused' && !wishes.resume) return { events: wishes.events, effect: { type: 'pause' } };
  if (input.deliveries > input.poison_limit) return endRun(state, 'poisoned', closing);
  if (input.nudges > input.nudge_limit) return endRun(state, 'infrastructure', closing);

  const events: EventBody[] = [...wishes.events];
  if (state.status !== 'running') {
    events.unshift({ type: 'state_change', old: state.status, new: 'running', reason: state.status === 'paused' ? 'resumed' : 'claimed' });
  }
  const running: RunState = { ...state, status: 'running' };
  if (wishes.pause) return pause(events);
  // What woke it is in the log now; what it waits for (a provider's Retry-After) has not come yet.
  if (input.wait_ms > 0 && state.status === 'running') return { events, effect: { type: 'hand_over', delay_ms: input.wait_ms } };

  const steered = wishes.events.length > 0;
  if (state.candidate !== null && !steered) return finishAnswer(running, state.candidate, events);
  if (state.active_s >= state.limits.session_timeout_s) {
    return endRun(running, 'session_timeout', { ...closing, before: [...events, ...closingResults(state, input.begun)] });
  }
  if (input.tools !== null) {
    events.push({ type: 'tools_changed', tools: input.tools, problems: input.tool_problems, done: 'pinned' });
  }
  return state.turn_open ? takeOver(running, input, events) : newTurn(running, input, events);
}

/** An earlier delivery of this turn is gone. With its reply in the log the model is not asked again. */
function takeOver(state: RunState, input: TurnClaimed, events: EventBody[]): Decision {
  events.push({ type: 'turn_start', attempt: state.attempt + 1, worker: input.worker });
  if (state.calls.length === 0) return callModel(state, events, state.turn_number);
  if (state.calls.some((call) => !call.settled)) return { events, effect: { type: 'settle_tool_calls' } };
  return { events: [...events, turnEnd(state, 0)], effect: { type: 'hand_over', delay_ms: 0 } };
}

function newTurn(state: RunState, input: TurnClaimed, events: EventBody[]): Decision {
  if (state.turn_number >= state.limits.max_turns) return endRun(state, 'max_turns', { elapsed_s: 0, turn_open: false, before: events });
  events.push({ type: 'turn_start', attempt: 1, worker: input.worker });
  return callModel(state, events, state.turn_number + 1);
}

function callModel(state: RunState, events: EventBody[], turn: number): Decision {
  const { chain } = specOf(state);
  const model = chain.models[state.position];
  if (model === undefined) return endRun(state, 'model_unavailable', { elapsed_s: 0, turn_open: turn > 0, before: events });
  events.push({
    type: 'model_request', model: model.name, provider: model.provider, chain: chain.name, position: state.position, canary: false,
    skipped: [], estimated_tokens: estimateTokens(state), message_count: state.transcript.messages.length,
  });
  return { events, effect: { type: 'call_model', model } };
}

function decideReplied(state: RunState, input: ModelReplied): Decision {
  const { reply } = input;
  const wishes = wishesOf(input.commands);
  const failure = unusable(input);
  if (failure !== null) return decideFailed(state, { ...failure, commands: input.commands });
  const events = replyEvents(state, input);
  if (reply.calls.length === 0) return decideAnswer(state, input, events);

  const uses = events.filter((event) => event.type === 'tool_use');
  if (wishes.cancel || state.tool_calls + uses.length > state.limits.tool_budget) {
    const results = uses.map((use): EventBody => ({ type: 'tool_result', tool_name: use.tool_name, ...notStarted(use.tool_use_id) }));
    const before = [...events, ...results, ...wishes.events];
    return endRun(state, wishes.cancel ? 'interrupted' : 'tool_budget', { elapsed_s: input.elapsed_s, usage: reply.usage, before, turn_open: true });
  }
  events.push(...wishes.events);
  if (wishes.pause) return pause(events);
  return { events, effect: { type: 'settle_tool_calls' } };
}

/** A reply that says nothing, or that its limit cut, is a failure with a name. */
function unusable(input: ModelReplied): Parameters<typeof decideFailed>[1] | null {
  const { reply } = input;
  const base = { type: 'model_failed', elapsed_s: input.elapsed_s, timed_out: null, jitter: 0, commands: [] } as const;
  if (reply.finish === 'length') {
    const detail = 'the reply was cut at the output limit';
    return { ...base, failure: { error_type: 'output_truncated', detail, retry_after_s: null, partial_text: reply.text, usage: reply.usage } };
  }
  if (reply.calls.length > 0 || reply.text.trim() !== '') return null;
  const detail = 'the reply held no text and no tool call';
  return { ...base, failure: { error_type: 'empty_response', detail, retry_after_s: null, partial_text: '', usage: reply.usage } };
}

/** Thinking, text, calls: in this order, the reply's cost on the first that carries it. */
function replyEvents(state: RunState, input: ModelReplied): EventBody[] {
  const { reply } = input;
  const events: EventBody[] = [];
  const text = reply.text.toWellFormed();
  if (reply.thinking !== '' || reply.provider_data !== null) {
    events.push({ type: 'assistant_thinking', content: reply.thinking.toWellFormed(), provider_data: reply.provider_data });
  }
  if (input.shown_text !== '' && input.shown_text !== text && text.startsWith(input.shown_text)) {
    events.push({ type: 'assistant_text', content: text.slice(input.shown_text.length), is_final: false, attempt: state.attempt });
  }
  if (text.trim() !== '') events.push({ type: 'assistant_text', content: text, is_final: true, attempt: state.attempt, usage: reply.usage });
  const uses = toolUses(state, reply.calls);
  const [first, ...rest] = uses;
  if (first !== undefined) events.push(text.trim() === '' ? { ...first, usage: reply.usage } : first, ...rest);
  return events;
}

/** Text without calls ends the run, unless somebody has something to say first. */
function decideAnswer(state: RunState, input: ModelReplied, events: EventBody[]): Decision {
  const wishes = wishesOf(input.commands);
  const end = { elapsed_s: input.elapsed_s, usage: input.reply.usage, turn_open: true };
  if (wishes.cancel) return endRun(state, 'interrupted', { ...end, before: [...events, ...wishes.events] });
  events.push(...wishes.events);
  const closed = [...events, turnEnd(state, input.elapsed_s, input.reply.usage)];
  if (wishes.pause) return pause(closed);
  if (wishes.events.length > 0) return { events: closed, effect: { type: 'hand_over', delay_ms: 0 } };
  return endRun(state, 'answered', { ...end, before: [...events, { type: 'final_response', text: input.reply.text.toWellFormed() }] });
}

/** The answer was there when the run was paused. */
function finishAnswer(state: RunState, text: string, events: EventBody[]): Decision {
  return endRun(state, 'answered', { elapsed_s: 0, turn_open: false, before: [...events, { type: 'final_response', text }] });
}

function decideSettled(state: RunState, input: ToolCallsSettled): Decision {
  const wishes = wishesOf(input.commands);
  const end = { elapsed_s: input.elapsed_s, turn_open: true };
  const closing = [...closingResults(state, input.results), ...wishes.events];
  if (wishes.cancel) return endRun(state, 'interrupted', { ...end, before: closing });
  if (input.timed_out !== null) return endRun(state, input.timed_out, { ...end, before: closing });

  const fresh = new Set(input.results.map((result) => result.tool_use_id));
  const rest = state.calls.filter((call) => !call.settled && !fresh.has(call.tool_use_id));
  if (rest.length > 0) {
    const settled = closingResults({ ...state, calls: state.calls.filter((call) => fresh.has(call.tool_use_id)) }, input.results);
    const events = [...settled, ...wishes.events];
    return wishes.pause ? pause(events) : { events, effect: { type: 'settle_tool_calls' } };
  }
  if (state.invalid_calls >= state.limits.invalid_call_limit) return endRun(state, 'invalid_tool_calls', { ...end, before: closing });
  const events = [...closing, turnEnd(state, input.elapsed_s)];
  return wishes.pause ? pause(events) : { events, effect: { type: 'hand_over', delay_ms: 0 } };
}

/** From `running` only: a queued run is moved to running in the same breath. */
function pause(events: readonly EventBody[]): Decision {
  return { events: [...events, { type: 'state_change', old: 'running', new: 'paused', reason: 'requested' }], effect: { type: 'pause' } };
}
