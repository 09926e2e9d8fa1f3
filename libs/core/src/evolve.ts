/**
 * How one fact changes a run: `evolve(state, event)`, the only writer of state.
 *
 * C1  Synchronous, total over well-formed logs, free of time, randomness and I/O.
 * C4  A `tool_use_id` is settled once; results enter the transcript in the order of the calls.
 * C5  An ended run accepts no event.
 * Increments (`assistant_text`, not final) change nothing but `last_seq`, `last_ts` and `epoch`.
 */
import { assertNever, InvariantBroken } from './assert-never.ts';
import type { ErrorEvent, RunCreated, RunEvent, StateChange, ToolResult, ToolUse, TurnEnd } from './events.ts';
import type { Message } from './message.ts';
import { isEnded, mayMove, type PauseReason } from './stop-reason.ts';
import type { OpenCall, RunState } from './state.ts';
import { addUsage, asWaste, noUsage, type Usage } from './usage.ts';

/** The state after `event`. Throws `InvariantBroken` where the log breaks its own rules (a gap, an event after the end, …). */
export function evolve(state: RunState, event: RunEvent): RunState {
  if (event.seq !== state.last_seq + 1) throw new InvariantBroken(`event ${event.seq} after ${state.last_seq}`);
  if (event.epoch < state.epoch) throw new InvariantBroken(`epoch ${event.epoch} after ${state.epoch}`);
  if (state.last_seq > 0 && isEnded(state.status) && event.type !== 'run_end') throw new InvariantBroken(`${event.type} after the end`);
  if (state.ended_at !== null) throw new InvariantBroken('nothing follows run_end');
  return { ...state, ...change(state, event), last_seq: event.seq, last_ts: event.ts, epoch: event.epoch };
}

/** Folds events onto a state, in order. */
export function fold(state: RunState, events: Iterable<RunEvent>): RunState {
  let folded = state;
  for (const event of events) folded = evolve(folded, event);
  return folded;
}

function change(state: RunState, event: RunEvent): Partial<RunState> {
  switch (event.type) {
    case 'run_created': return created(event);
    case 'user_message': return said(state, { role: 'user', content: event.content });
    case 'state_change': return moved(state, event);
    case 'turn_start': return turnStarted(state, event.attempt);
    case 'model_request': return { model: event.model, position: event.position, tried: union(state.tried, event.position) };
    case 'assistant_text': return event.is_final ? { ...replied(state, { text: event.content }), ...spent(state, event.usage) } : {};
    case 'assistant_thinking': return replied(state, { thinking: event.content });
    case 'tool_use': return { ...called(state, event), ...spent(state, event.usage) };
    case 'tool_result': return settled(state, event);
    case 'max_iterations': return { partial: {
      iterations: event.iterations, last_action_summary: event.last_action_summary, state: event.state, summary: event.summary } };
    case 'tools_changed': return { tools: event.tools };
    case 'error': return failed(state, event);
    case 'steer': return said(state, { role: 'host', note: 'steer', content: event.content });
    case 'final_response': return { answer: event.text, candidate: null };
    case 'turn_end': return turnEnded(state, event);
    case 'run_end': return { ended_at: event.ts };
    default: return assertNever(event);
  }
}

function created(event: RunCreated & { run_id: string; ts: number }): Partial<RunState> {
  return {
    run_id: event.run_id, session_id: event.session_id, parent_run_id: event.parent_run_id, forked_from: event.forked_from,
    tenant: event.tenant, agent: event.agent, agent_version: event.agent_version, spec: event.agent_spec, limits: event.limits,
    metadata: event.metadata, tags: event.tags, priority: event.priority, run_at: event.run_at, created_at: event.ts,
  };
}

function moved(state: RunState, event: StateChange & { ts: number }): Partial<RunState> {
  if (event.old !== state.status || !mayMove(event.old, event.new)) {
    throw new InvariantBroken(`move ${event.old} → ${event.new} while ${state.status}`);
  }
  return {
    status: event.new,
    started_at: state.started_at ?? (event.new === 'running' ? event.ts : null),
    pause_reason: event.new === 'paused' ? (event.reason as PauseReason) : null,
    stop_reason: isEnded(event.new) ? (event.reason as RunState['stop_reason']) : null,
  };
}

function turnStarted(state: RunState, attempt: number): Partial<RunState> {
  return { turn_number: attempt === 1 ? state.turn_number + 1 : state.turn_number, attempt, turn_open: true };
}

function turnEnded(state: RunState, event: TurnEnd): Partial<RunState> {
  if (state.calls.some((call) => !call.settled)) throw new InvariantBroken('a turn ends when all its calls are settled');
  return {
    turn_open: false, attempt: 0, turn_usage: noUsage, calls: [],
    active_s: state.active_s + event.duration, usage: addUsage(state.usage, event.usage),
  };
}

function spent(state: RunState, usage: Usage | undefined): Partial<RunState> {
  return usage === undefined ? {} : { turn_usage: addUsage(state.turn_usage, usage) };
}

/** Text and thinking of one reply gather in one message; its calls follow. */
function replied(state: RunState, part: { text: string } | { thinking: string }): Partial<RunState> {
  const candidate = 'text' in part ? { candidate: part.text } : {};
  return { ...inReply(state, (reply) => ({ ...reply, ...part })), ...candidate, ...accepted };
}

const accepted = { tried: [], model_errors: 0 } as const;

function called(state: RunState, event: ToolUse): Partial<RunState> {
  const call: OpenCall = {
    tool_use_id: event.tool_use_id, tool_name: event.tool_name, tool_input: event.tool_input, execution: event.execution,
    invalid: event.invalid ?? null, settled: false, waiting_result: null,
  };
  if (state.calls.some((other) => other.tool_use_id === call.tool_use_id)) throw new InvariantBroken(`call ${call.tool_use_id} twice`);
  const { tool_use_id, tool_name, tool_input } = event;
  return {
    ...inReply(state, (reply) => ({ ...reply, calls: [...reply.calls, { tool_use_id, tool_name, tool_input }] })),
    ...accepted, candidate: null, calls: [...state.calls, call], tool_calls: state.tool_calls + 1, reasks: 0,
    invalid_calls: event.invalid === undefined ? 0 : state.invalid_calls + 1,
  };
}

type Reply = Extract<Message, { role: 'assistant' }>;

/** Changes the reply of this turn, or begins it. A reply is open while nothing has followed it. */
function inReply(state: RunState, with_: (reply: Reply) => Reply): Pick<RunState, 'transcript'> {
  const { generation, messages } = state.transcript;
  const last = messages.at(-1);
  if (last?.role === 'assistant') return { transcript: { generation, messages: [...messages.slice(0, -1), with_(last)] } };
  const empty: Reply = { role: 'assistant', text: '', thinking: '', calls: [], model: state.model ?? '' };
  return append(state, with_(empty));
}

function settled(state: RunState, event: ToolResult): Partial<RunState> {
  const index = state.calls.findIndex((call) => call.tool_use_id === event.tool_use_id);
  const call = state.calls[index];
  if (call === undefined || call.settled) throw new InvariantBroken(`result for ${event.tool_use_id}, which is not open`);
  const calls = state.calls.with(index, {
    ...call, settled: true, waiting_result: { content: event.content, is_error: event.is_error } });
  const done = event.outcome !== 'not_started' && event.outcome !== 'cancelled' && call.invalid === null;
  return { ...intoTranscript(state, calls), ...(done ? { consecutive_errors: 0 } : {}) };
}

/** Moves results whose earlier siblings are all settled to the transcript; what people said follows the last result. */
function intoTranscript(state: RunState, calls: readonly OpenCall[]): Partial<RunState> {
  const messages: Message[] = [];
  const kept: OpenCall[] = [];
  let waiting = false;
  for (const call of calls) {
    waiting ||= !call.settled;
    if (!waiting && call.waiting_result !== null) {
      messages.push({ role: 'tool', tool_use_id: call.tool_use_id, tool_name: call.tool_name, ...call.waiting_result });
      kept.push({ ...call, waiting_result: null });
    } else kept.push(call);
  }
  if (waiting) return { ...append(state, ...messages), calls: kept };
  return { ...append(state, ...messages, ...state.waiting_messages), calls: kept, waiting_messages: [] };
}

function failed(state: RunState, event: ErrorEvent): Partial<RunState> {
  const site = event.site;
  const common: Partial<RunState> = {
    consecutive_errors: event.consecutive_errors,
    model_errors: event.action === 'fallback' ? 0 : state.model_errors + 1,
    recoveries: site === null ? state.recoveries : { ...state.recoveries, [site]: (state.recoveries[site] ?? 0) + 1 },
    turn_usage: event.usage === undefined ? state.turn_usage : addUsage(state.turn_usage, asWaste(event.usage)),
    error: event.action !== 'fail' ? state.error : {
      error_type: event.error_type, message: `The model ${event.model} failed: ${event.error_type.replaceAll('_', ' ')}.`,
      model: event.model, retryable: event.retry_in !== null, detail: event.detail },
  };
  if (event.action === 'reask') {
    return { ...common, ...append(state, { role: 'host', note: 'reask', content: reaskText }), reasks: state.reasks + 1 };
  }
  if (event.action === 'fallback') {
    const to = state.spec?.chain.models.findIndex((model) => model.name === event.to_model) ?? -1;
    return { ...common, position: to < 0 ? state.position : to };
  }
  return common;
}

const reaskText = 'Your last reply was empty. Please answer the request, or call a tool.';

/** Nothing may stand between a call and its result: what is said meanwhile waits for the last of them. */
function said(state: RunState, message: Message): Partial<RunState> {
  if (state.calls.some((call) => !call.settled)) return { waiting_messages: [...state.waiting_messages, message] };
  return { ...append(state, message), candidate: null };
}

function append(state: RunState, ...messages: Message[]): Pick<RunState, 'transcript'> {
  if (messages.length === 0) return { transcript: state.transcript };
  return { transcript: { generation: state.transcript.generation, messages: [...state.transcript.messages, ...messages] } };
}

function union(set: readonly number[], value: number): readonly number[] {
  return set.includes(value) ? set : [...set, value];
}
