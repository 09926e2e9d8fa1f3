/**
 * How one fact changes a run: `evolve(state, event)`, the only writer of state.
 *
 * C1  Synchronous, total over well-formed logs, free of time, randomness and I/O.
 * C4  A `tool_use_id` is settled once; results enter the transcript in the order of the calls.
 * C5  An ended run accepts no event.
 * Increments (`assistant_text`, not final) change nothing but `last_seq`, `last_ts` and `epoch`.
 */
import { assertNever, InvariantBroken } from './assert-never.ts';
import type { ChildRunEvent, ErrorEvent, HookSpoke, RunCreated, RunEvent, RunUpdated, SessionHistory, StateChange, ToolsChanged, TurnEnd, ValidationFailed } from './events.ts';
import { approvalRequested, approvalResolved } from './approval.ts';
import { called, replied, settled } from './evolve-reply.ts';
import { errorFingerprint } from './fingerprint.ts';
import { own } from './own.ts';
import { isEnded, mayMove, type PauseReason } from './stop-reason.ts';
import { nextImageSide } from './images.ts';
import { changedModel, spentBy } from './own-usage.ts';
import { rememberError, type RunState } from './state.ts';
import { append, edited, hostNote, said } from './transcript.ts';
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
    case 'user_message': return said(state, { seq: event.seq, role: 'user', content: event.content });
    case 'state_change': return moved(state, event);
    case 'turn_start': return { turn_number: event.attempt === 1 ? state.turn_number + 1 : state.turn_number, attempt: event.attempt, turn_open: true };
    case 'model_request': return {
      spent_before: changedModel(state, event.model).spent_before,
      model: event.model, position: event.position, model_errors: event.position === state.position ? state.model_errors : 0, tried: state.tried.includes(event.position) ? state.tried : [...state.tried, event.position],
      estimated_tokens: event.estimated_tokens, compact_next: null, left_first_model: state.left_first_model || event.position > 0 };
    case 'assistant_text': return event.is_final ? { ...replied(state, event.seq, { text: event.content }), ...spent(state, event.usage) } : {};
    case 'assistant_thinking': return replied(state, event.seq, { thinking: event.content, provider_data: event.provider_data ?? null });
    case 'tool_use': return { ...called(state, event), ...spent(state, event.usage) };
    case 'tool_result': return { ...settled(state, event), pending: state.pending.length === 0 ? state.pending : state.pending.filter((call) => call.tool_use_id !== event.tool_use_id) };
    case 'max_iterations': return {
      partial: { iterations: event.iterations, last_action_summary: event.last_action_summary, state: event.state, summary: event.summary },
      usage: event.usage === undefined ? state.usage : addUsage(state.usage, event.usage), spent_before: spentBy(state, event.model, event.usage).spent_before };
    case 'tools_changed': return {
      tools: event.tools, ...toolNews(state, event), ...foldOf(state, event),
      ...(event.instructions === undefined ? {} : { server_instructions: { ...state.server_instructions, ...event.instructions } }) };
    case 'error': return failed(state, event);
    case 'validation_error': return invalid(state, event);
    case 'stop_hook': return hookSpoke(state, event);
    case 'steer': return said(state, hostNote(event.seq, 'steer', event.content));
    case 'compaction': return {
      ...edited(state, event), recoveries: counted(state, event.site), compact_next: null,
      ...(event.usage === undefined ? {} : { turn_usage: addUsage(state.turn_usage, event.usage), spent_before: spentBy(state, event.model, event.usage).spent_before }) };
    case 'history_repaired': return edited(state, event);
    case 'image_removed': return edited(state, event);
    case 'child_run': return childChanged(state, event);
    case 'session_history': return withHistory(state, event);
    case 'approval_requested': return approvalRequested(state, event);
    case 'approval_resolved': return approvalResolved(state, event);
    case 'context_truncated': case 'outcome_resolved': return {};
    case 'run_updated': return updated(state, event);
    case 'final_response': return { answer: event.text, output: event.output ?? null, checks: event.checks ?? [], candidate: null, pieces: '' };
    case 'turn_end': return turnEnded(state, event);
    case 'run_end': return { ended_at: event.ts };
    default: return assertNever(event);
  }
}

/** Absent where nothing has changed since the tools were pinned, and nothing was left out then. */
function toolNews({ tool_news }: RunState, { done, tools, problems, remembered, gone = [], kept = [], instructions = {} }: ToolsChanged): Pick<RunState, 'tool_news'> {
  const told = [...new Set([...tool_news?.problems ?? [], ...problems])].slice(-mostProblemsKept);
  const known = told.length === 0 ? {} : { problems: told };
  if (done === 'pinned') return remembered !== true ? {} : { tool_news: { changes: 0, gone: [], kept: {}, ...known } };
  const missing = [...tool_news?.gone ?? [], ...gone].filter((name) => !tools.some((tool) => tool.name === name));
  // One that comes back is pinned anew.
  const still = Object.entries(tool_news?.kept ?? {}).filter(([name]) => !gone.includes(name));
  const times = Object.fromEntries([...gone, ...kept.map(({ name }) => name), ...Object.keys(instructions).map((server) => `${server}/`)].map((name) => [name, (own(tool_news?.times, name) ?? 0) + 1]));
  return { tool_news: {
    changes: (tool_news?.changes ?? 0) + 1, gone: [...new Set(missing)], kept: Object.fromEntries([...still, ...kept.map(({ name, hash }) => [name, hash] as const)]), ...known,
    times: { ...tool_news?.times, ...times },
  } };
}

/** What was told longer ago may be told again. */
const mostProblemsKept = 100;

/** What an older version would carry out unasked, it is not to take. */
function foldOf({ fold_version }: RunState, { tools }: ToolsChanged): Partial<RunState> {
  return tools.some((tool) => tool.approval !== undefined) ? { fold_version: Math.max(2, fold_version) } : {};
}

function created(event: RunCreated & { run_id: string; ts: number }): Partial<RunState> {
  return {
    run_id: event.run_id, session_id: event.session_id, parent_run_id: event.parent_run_id, forked_from: event.forked_from,
    tenant: event.tenant, agent: event.agent, agent_version: event.agent_version, spec: event.agent_spec, limits: event.limits,
    metadata: event.metadata, tags: event.tags, priority: event.priority, run_at: event.run_at, traceparent: event.traceparent ?? null, created_at: event.ts,
    ...(event.rules === undefined ? {} : { rules: event.rules }), ...(event.webhook == null ? {} : { webhook: event.webhook }),
  };
}

function updated(state: RunState, event: RunUpdated): Partial<RunState> {
  return {
    limits: event.limits === undefined ? state.limits : { ...state.limits, ...event.limits },
    metadata: event.metadata ?? state.metadata, tags: event.tags ?? state.tags,
  };
}

function moved(state: RunState, event: StateChange & { ts: number }): Partial<RunState> {
  if (event.old !== state.status || !mayMove(event.old, event.new)) {
    throw new InvariantBroken(`move ${event.old} → ${event.new} while ${state.status}`);
  }
  return {
    status: event.new,
    active_s: state.active_s + (event.active_s ?? 0),
    started_at: state.started_at ?? (event.new === 'running' ? event.ts : null),
    pause_reason: event.new === 'paused' ? (event.reason as PauseReason) : null,
    resumes_at: event.new === 'paused' ? event.resumes_at ?? null : null,
    // What waits for a person does not wait for a provider.
    parks: state.parks + (event.resumes_at === undefined || event.reason === 'approval' ? 0 : 1),
    pending: event.new === 'paused' ? event.pending ?? [] : [],
    stop_reason: isEnded(event.new) ? (event.reason as RunState['stop_reason']) : null,
  };
}

function turnEnded(state: RunState, event: TurnEnd): Partial<RunState> {
  if (state.calls.some((call) => !call.settled)) throw new InvariantBroken('a turn ends when all its calls are settled');
  return {
    turn_open: false, attempt: 0, turn_usage: noUsage, calls: [],
    active_s: state.active_s + event.duration, usage: addUsage(state.usage, event.usage),
  };
}

function childChanged(state: RunState, event: ChildRunEvent): Partial<RunState> {
  const { child_run_id, tool_use_id, agent, status, limits, usage = noUsage, tool_calls = 0 } = event;
  const index = state.children.findIndex((child) => child.child_run_id === child_run_id);
  const child = state.children[index];
  if (status === 'queued') {
    if (child !== undefined || limits === undefined) throw new InvariantBroken(`child ${child_run_id} is started twice, or without limits`);
    return { children: [...state.children, { child_run_id, tool_use_id, agent, status, limits }] };
  }
  if (child?.status !== 'queued') throw new InvariantBroken(`child ${child_run_id} ends, and is not there or has ended`);
  return { children: state.children.with(index, { ...child, status }), usage: addUsage(state.usage, usage),
    children_usage: addUsage(state.children_usage, usage), tool_calls: state.tool_calls + tool_calls };
}

/** Earlier messages have no event in this log: they are named by negative numbers, in order. */
function withHistory(state: RunState, event: SessionHistory): Partial<RunState> {
  const earlier = event.messages.map((message, index) => ({ ...message, seq: index - event.messages.length }));
  return { history_from: event.from_run_id, transcript: { generation: event.generation, messages: [...earlier, ...state.transcript.messages] } };
}

/**
 * Tokens that every estimate is taken to have got right: what a provider adds to any request (its template, the JSON around tools)
 * would make a short one look like a model that counts threefold.
 */
const trusted = 1000;

/** A reply's cost, and what it says about our estimates of the model that gave it. */
function spent(state: RunState, usage: Usage | undefined): Partial<RunState> {
  if (usage === undefined) return {};
  const model = state.model ?? '';
  const known = usage.input_tokens > 0 && state.estimated_tokens > 0;
  const plain = state.estimated_tokens / (own(state.calibration, model) ?? 1);
  const factor = (trusted + usage.input_tokens) / (trusted + plain);
  return {
    turn_usage: addUsage(state.turn_usage, usage),
    ...(known ? { calibration: { ...state.calibration, [model]: Math.round(Math.min(4, Math.max(0.25, factor)) * 1000) / 1000 } } : {}),
  };
}

function failed(state: RunState, event: ErrorEvent & { seq: number }): Partial<RunState> {
  const sameModel = event.action === 'backoff' || event.action === 'fail';
  return {
    consecutive_errors: event.consecutive_errors,
    errors_by_type: { ...state.errors_by_type, [event.error_type]: (state.errors_by_type[event.error_type] ?? 0) + 1 },
    model_errors: anew.includes(event.action) ? 0 : state.model_errors + (sameModel ? 1 : 0),
    recoveries: event.site === null ? state.recoveries : counted(state, event.site),
    turn_usage: event.usage === undefined ? state.turn_usage : addUsage(state.turn_usage, asWaste(event.usage)),
    error_prints: rememberError(state, errorFingerprint(event.error_type, event.detail)),
    error: event.action !== 'fail' ? state.error : {
      error_type: event.error_type, message: `The model ${event.model} failed: ${event.error_type.replaceAll('_', ' ')}.`,
      model: event.model, retryable: event.retry_in !== null, detail: event.detail },
    ...recovered(state, event),
  };
}

/** Another model, another key, or time that a provider asked for. */
const anew: readonly string[] = ['fallback', 'rotate_credential', 'park'];

/** What the recovery itself changes. */
function recovered(state: RunState, event: ErrorEvent & { seq: number }): Partial<RunState> {
  switch (event.action) {
    case 'reask': return { ...append(state, hostNote(event.seq, 'reask', notes.reask)), reasks: state.reasks + 1, candidate: null };
    case 'continue_prompt': return {
      ...append(state, hostNote(event.seq, 'continue', notes.continue)), pieces: state.candidate ?? state.pieces, candidate: null,
      continuations: state.continuations + 1 };
    case 'shrink_image': return { image_side: nextImageSide(state.image_side) };
    case 'clamp_output': return event.output_cap === undefined ? {} : { output_caps: { ...state.output_caps, [event.model]: event.output_cap } };
    case 'drop_feature': return event.feature === undefined ? {} : { dropped: { ...state.dropped, [event.model]: [...own(state.dropped, event.model) ?? [], event.feature] } };
    case 'enlarge_output': return { output_room: state.output_room * 2, continuations: state.continuations + 1 };
    case 'reactive_compact': return { compact_next: 'reactive', reactive_tried: true };
    case 'aggressive_snip': return { compact_next: 'aggressive', reactive_tried: false };
    case 'fallback': case 'park': {
      const to = state.spec?.chain.models.findIndex((model) => model.name === event.to_model) ?? -1;
      return { position: to < 0 ? state.position : to };
    }
    default: return {};
  }
}

const notes = {
  reask: 'Your last reply was empty. Please answer the request, or call a tool.',
  continue: 'Your last reply was cut off by the output limit. Continue exactly where it stopped, without repeating anything.',
} as const;

/** Feedback for the model. The note about a loop is no round of feedback; an empty final answer counts as an empty reply. */
function invalid(state: RunState, event: ValidationFailed & { seq: number }): Partial<RunState> {
  const loop = event.validator_name === 'loop';
  const empty = event.error_type === 'non_empty_final_answer';
  return {
    ...said(state, hostNote(event.seq, loop ? 'loop' : 'feedback', event.feedback)), candidate: null, pieces: loop ? state.pieces : '',
    ...(loop ? { loop_noted: true } : empty ? { reasks: state.reasks + 1 } : { retries: state.retries + 1 }),
  };
}

/** Only the hook that won has a prompt. */
function hookSpoke(state: RunState, event: HookSpoke & { seq: number }): Partial<RunState> {
  if (event.prompt === '' || event.decision === 'stop' || event.decision === 'skipped') return {};
  return {
    ...append(state, hostNote(event.seq, 'hook', event.prompt)), candidate: null, pieces: '', extra_turns: state.extra_turns + 1,
    recoveries: counted(state, 'stop_hook'),
  };
}

function counted(state: RunState, site: string): RunState['recoveries'] {
  return { ...state.recoveries, [site]: (state.recoveries[site] ?? 0) + 1 };
}
