/**
 * What the events of a run add up to. Made by `evolve` alone; nobody else writes it.
 * Stored by its changed top-level fields, so each field is kept small or is written once; the transcript is stored apart,
 * and `last_seq`, `last_ts`, `epoch` stand in the run's control record.
 */
import type { AgentSpec, ParallelClass, ToolDefinition } from './agent-spec.ts';
import type { ErrorType } from './error-type.ts';
import type { Check, ChildLimits, ChildRunEvent, PendingCall, RunCreated } from './events.ts';
import { errorWindowTurns } from './fingerprint.ts';
import { defaultLimits, type Limits } from './limits.ts';
import type { KeptMessage, ToolImage, Transcript } from './message.ts';
import type { DroppableFeature } from './request.ts';
import type { PauseReason, RunStatus, StopReason } from './stop-reason.ts';
import { noUsage, type Usage } from './usage.ts';
import type { WebhookTarget } from './webhook.ts';

/** A call of the current turn's reply, in the reply's order. */
export interface OpenCall {
  readonly tool_use_id: string;
  readonly tool_name: string;
  readonly tool_input: Readonly<Record<string, unknown>>;
  readonly execution: ParallelClass;
  readonly invalid: string | null;
  readonly settled: boolean;
  /** Of a call that needs a person's word. */
  readonly approval?: CallApproval;
  /** A result that came before those of earlier calls; it moves to the transcript in the order of the calls. */
  readonly waiting_result: { readonly seq: number; readonly content: string; readonly is_error: boolean; readonly images?: readonly ToolImage[] } | null;
}

export interface CallApproval {
  readonly state: 'waiting' | 'approved' | 'denied';
  /** Of the call as it was asked about; once it is approved, as it is carried out. */
  readonly digest: string;
  /** ISO 8601. */
  readonly expires_at: string | null;
}

/** A run that a call of this one has started. */
export interface ChildRun {
  readonly child_run_id: string;
  readonly tool_use_id: string;
  readonly agent: string;
  /** `queued` until its end is known here. */
  readonly status: ChildRunEvent['status'];
  readonly limits: ChildLimits;
}

export interface RunError {
  readonly error_type: ErrorType;
  /** A plain sentence for people. */
  readonly message: string;
  readonly model: string;
  readonly retryable: boolean;
  readonly detail: string;
}

export interface Partial_ {
  readonly iterations: number;
  readonly last_action_summary: string;
  readonly state: Readonly<Record<string, unknown>>;
  readonly summary: string;
}

export interface RunState {
  /** Raised by an event that an older fold could not go on from; so it is stored with that. See `newestFold`. */
  readonly fold_version: number;
  /** By which rules the log is folded, where those of before are not the same. */
  readonly rules?: RunCreated['rules'];
  readonly last_seq: number;
  readonly last_ts: number;
  readonly epoch: number;

  readonly run_id: string;
  readonly session_id: string;
  readonly parent_run_id: string | null;
  readonly forked_from: string | null;
  readonly tenant: string;
  readonly agent: string;
  readonly agent_version: string;
  readonly spec: AgentSpec | null;
  readonly limits: Limits;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly tags: readonly string[];
  readonly priority: number;
  readonly run_at: string | null;
  readonly traceparent: string | null;
  /** Where its end is told; absent where nobody is. */
  readonly webhook?: WebhookTarget;
  readonly created_at: number;
  readonly started_at: number | null;
  readonly ended_at: number | null;

  readonly status: RunStatus;
  readonly stop_reason: StopReason | null;
  readonly pause_reason: PauseReason | null;
  /** ISO 8601: when a paused run goes on by itself. */
  readonly resumes_at: string | null;
  /** How often it has waited for a provider since the last accepted reply. */
  readonly parks: number;
  /** Calls that a paused run waits for somebody's word on. */
  readonly pending: readonly PendingCall[];
  readonly answer: string | null;
  /** The answer parsed, where a schema asked for one. */
  readonly output: unknown;
  readonly checks: readonly Check[];
  readonly partial: Partial_ | null;
  readonly error: RunError | null;

  /** Null until the first claim has pinned them. */
  readonly tools: readonly ToolDefinition[] | null;
  readonly turn_number: number;
  /** Deliveries of the current turn so far. */
  readonly attempt: number;
  readonly turn_open: boolean;
  readonly calls: readonly OpenCall[];
  /** In the order in which they were started. */
  readonly children: readonly ChildRun[];
  /** What people said while calls were open: it follows the results. */
  readonly waiting_messages: readonly KeptMessage[];
  /** A final text that has not ended the run yet, because the run was paused at that point. */
  readonly candidate: string | null;

  /** Pieces of an answer that the output limit cut, joined. */
  readonly pieces: string;
  readonly continuations: number;
  /** How much more room the next reply gets than the model's usual, after a tool call was cut: 1, 2, 4 … */
  readonly output_room: number;
  /** By model: the most tokens that it may be asked for, since it has refused more. */
  readonly output_caps: Readonly<Record<string, number>>;
  /** By model: what requests are sent without, since it has refused it. */
  readonly dropped: Readonly<Record<string, readonly DroppableFeature[]>>;
  readonly extra_turns: number;
  /** Rounds of feedback so far; never reset. */
  readonly retries: number;
  /** The newest calls' fingerprints, oldest first; cleared by the corrective note's second chance running out or by a new call. */
  readonly call_prints: readonly string[];
  readonly loop_noted: boolean;
  /** Errors of the last 20 turns. */
  readonly error_prints: readonly { readonly turn: number; readonly print: string }[];
  /** Set by a refusal for length: the next request must be smaller, whatever the estimate says. */
  readonly compact_next: 'reactive' | 'aggressive' | null;
  /** A reactive compaction has been tried since the last aggressive one. Lives across turns. */
  readonly reactive_tried: boolean;
  /** Providers' counts over our estimates, by model; 1 until one has come. */
  readonly calibration: Readonly<Record<string, number>>;
  /** The run of the session whose transcript this one goes on from. */
  readonly history_from: string | null;
  /** Images are sent with this many pixels at their longer side at most, since the model has refused larger ones; null = as they are. */
  readonly image_side: number | null;
  /** Of the request under way. */
  readonly estimated_tokens: number;

  /** Those of sub-agents that have ended included, as in `usage`. */
  readonly tool_calls: number;
  readonly invalid_calls: number;
  readonly reasks: number;
  readonly consecutive_errors: number;
  /** Failures in a row on the model that is served now. */
  readonly model_errors: number;
  /** The model that is served now, as its place in the chain. */
  readonly position: number;
  /** Places in the chain tried since the last accepted reply. */
  readonly tried: readonly number[];
  readonly model: string | null;
  /** Of the run and of its sub-agents that have ended. */
  readonly usage: Usage;
  /** Of the sub-agents alone. */
  readonly children_usage: Usage;
  /** By model: what was used of others than the present one, or before that was asked last; see `own-usage.ts`. */
  readonly spent_before: Readonly<Record<string, Usage>>;
  /** What this turn has used so far; cleared by its end. */
  readonly turn_usage: Usage;
  /** Seconds inside claims. */
  readonly active_s: number;
  readonly recoveries: Readonly<Record<string, number>>;
  /** Another than the chain's first model has been asked: the first failed, or was not there to be asked. */
  readonly left_first_model: boolean;
  /** Failed model calls so far, by error type. */
  readonly errors_by_type: Readonly<Partial<Record<ErrorType, number>>>;
  /**
   * What has become of the tools since they were pinned: how often they changed, which are gone, the hashes of what is described otherwise,
   * the problems that were told (those of the pinning, too), and how often each tool, and each server's words (`server/`), have changed.
   */
  readonly tool_news?: {
    readonly changes: number; readonly gone: readonly string[]; readonly kept: Readonly<Record<string, string>>;
    readonly problems?: readonly string[]; readonly times?: Readonly<Record<string, number>>;
  };
  /** By server: the hash of its instructions, as they were told of last. Absent: none has any. */
  readonly server_instructions?: Readonly<Record<string, string>>;
  /** Calls that a tool answered with an error. */
  readonly tool_errors: number;
  /** Call ids that compaction has removed from the transcript: never reused. */
  readonly retired_ids: readonly string[];
  readonly transcript: Transcript;
}

/** The newest form of a state that this version can go on from. 2: tools with rules of approval, which an older one would carry out unasked. */
export const newestFold = 2;

export const initialState: RunState = {
  fold_version: 1, last_seq: 0, last_ts: 0, epoch: 0,
  run_id: '', session_id: '', parent_run_id: null, forked_from: null, tenant: '', agent: '', agent_version: '', spec: null,
  limits: defaultLimits, metadata: {}, tags: [], priority: 50, run_at: null, traceparent: null, created_at: 0, started_at: null, ended_at: null,
  status: 'queued', stop_reason: null, pause_reason: null, resumes_at: null, parks: 0, pending: [], answer: null, output: null, checks: [], partial: null, error: null,
  tools: null, turn_number: 0, attempt: 0, turn_open: false, calls: [], children: [], waiting_messages: [], candidate: null,
  pieces: '', continuations: 0, output_room: 1, output_caps: {}, dropped: {}, extra_turns: 0, retries: 0, call_prints: [], loop_noted: false, error_prints: [],
  compact_next: null, reactive_tried: false, calibration: {}, image_side: null, history_from: null, estimated_tokens: 0,
  tool_calls: 0, invalid_calls: 0, reasks: 0, consecutive_errors: 0, model_errors: 0, position: 0, tried: [], model: null,
  usage: noUsage, children_usage: noUsage, spent_before: {}, turn_usage: noUsage, active_s: 0, recoveries: {}, left_first_model: false, errors_by_type: {}, tool_errors: 0, retired_ids: [], transcript: { generation: 1, messages: [] },
};

/** The agent a run was made by. Throws before `run_created`. */
export function specOf(state: RunState): AgentSpec {
  if (state.spec === null) throw new TypeError('a run has a spec from its first event on');
  return state.spec;
}

/** The errors of the window, with this one. */
export function rememberError(state: RunState, print: string): RunState['error_prints'] {
  const turn = state.turn_number;
  return [...state.error_prints.filter((error) => error.turn > turn - errorWindowTurns), { turn, print }].slice(-errorsRemembered);
}

/** Of one turn there may be many; more than any limit says nothing new. */
const errorsRemembered = 100;
