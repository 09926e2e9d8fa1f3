/**
 * The log is the truth: everything that state holds comes from one of these. Each event is appended once and never changed.
 * Field names are the contract's (section 7) and are what clients see.
 */
import type { AgentSpec, HookDecision, ParallelClass, ToolDefinition } from './agent-spec.ts';
import type { ErrorType } from './error-type.ts';
import type { Limits } from './limits.ts';
import type { Attachment, Content, Message } from './message.ts';
import type { RecoveryAction, RecoverySite } from './recovery.ts';
import type { DroppableFeature } from './request.ts';
import type { EndStatus, PauseReason, RunStatus, StopReason } from './stop-reason.ts';
import type { Usage } from './usage.ts';
import type { WebhookTarget } from './webhook.ts';

/** Stamped on every event when it is appended. */
export interface Envelope {
  /** 1, 2, 3 … no gaps. */
  readonly seq: number;
  /** Epoch seconds by Redis' clock, never below the event before. */
  readonly ts: number;
  readonly run_id: string;
  readonly turn_number: number;
  /** The claim under which it was written; 0 for what `create` wrote. Never below the event before. */
  readonly epoch: number;
}

export interface RunCreated {
  readonly type: 'run_created';
  readonly agent: string;
  readonly agent_version: string;
  readonly agent_spec: AgentSpec;
  readonly session_id: string;
  readonly parent_run_id: string | null;
  readonly forked_from: string | null;
  readonly tenant: string;
  readonly limits: Limits;
  readonly chain: string;
  readonly tools: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly tags: readonly string[];
  /** 1 (first) to 100. */
  readonly priority: number;
  /** ISO 8601, or null for at once. */
  readonly run_at: string | null;
  /**
   * By which rules the log is folded, where ours have changed since: 2 takes calls for other days or other ids for other calls. Absent in
   * logs of before, which fold as they did.
   */
  readonly rules?: 2;
  /** The trace that the run belongs to (traceparent.ts): its turns are parts of that span. Absent where nobody traces. */
  readonly traceparent?: string;
  /** Where its end is told; what signs that stands elsewhere. */
  readonly webhook?: WebhookTarget | null;
  /** The schedule that has made it; null where a request has. */
  readonly schedule_id?: string | null;
  /** Of later releases; null until then. */
  readonly concurrency_key?: string | null;
  readonly start_within_s?: number | null;
  readonly history?: string | null;
}

export interface UserMessage { readonly type: 'user_message'; readonly content: Content }

export interface StateChange {
  readonly type: 'state_change';
  readonly old: RunStatus;
  readonly new: RunStatus;
  readonly reason: StopReason | PauseReason | 'claimed' | 'resumed';
  /** Seconds that a claim has used of a turn which a pause leaves open. */
  readonly active_s?: number;
  /** ISO 8601: when a paused run goes on by itself. */
  readonly resumes_at?: string;
  /** What a paused run waits for, where it waits for somebody's word. */
  readonly pending?: readonly PendingCall[];
}

/**
 * A call that waits: for a person's leave (`approval`), for a person's word on how it went (`outcome`), for a person's answer (`input`),
 * for another run (`child_run`).
 */
export interface PendingCall {
  readonly kind: 'approval' | 'outcome' | 'input' | 'child_run';
  readonly tool_use_id: string;
  readonly tool_name: string;
  readonly tool_input: Readonly<Record<string, unknown>>;
  /** ISO 8601; null waits for ever. */
  readonly expires_at: string | null;
  /** Of `child_run`. */
  readonly child_run_id?: string;
  /** Of `approval`: what a word on it is about. */
  readonly digest?: string;
}

export type ApprovalWord = 'approve' | 'deny';

/** A call is not begun, nor any other of its reply, before a person has spoken. */
export interface ApprovalRequested {
  readonly type: 'approval_requested';
  readonly tool_use_id: string;
  readonly tool_name: string;
  /** `sha256:` and the hash of the tool's name, the arguments and the tool's definition. */
  readonly digest: string;
  /** ISO 8601; null waits for ever. */
  readonly expires_at: string | null;
}

/** The word on such a call. A call that was denied has its result right behind. */
export interface ApprovalResolved {
  readonly type: 'approval_resolved';
  readonly tool_use_id: string;
  /** As it was asked about. */
  readonly digest: string;
  readonly decision: ApprovalWord;
  /** `host`: the time was over. */
  readonly by: string;
  readonly reason: string | null;
  /** What was approved instead; it takes the place of the model's arguments, in the transcript, too. */
  readonly input?: Readonly<Record<string, unknown>>;
  /** Of the call with that input. */
  readonly new_digest?: string;
}

/** What a person says of a call in doubt. */
export type OutcomeWord = 'happened' | 'did_not_happen';

/** A person's word on a call in doubt; the call's result follows. */
export interface OutcomeResolved {
  readonly type: 'outcome_resolved';
  readonly tool_use_id: string;
  /** Of the call's name and input. */
  readonly digest: string;
  readonly decision: OutcomeWord;
  readonly by: string;
  readonly reason: string | null;
}

export interface TurnStart { readonly type: 'turn_start'; readonly attempt: number; readonly worker: string }

export interface ModelRequested {
  readonly type: 'model_request';
  readonly model: string;
  readonly provider: string;
  readonly chain: string;
  readonly position: number;
  readonly canary: boolean;
  readonly skipped: readonly { readonly model: string; readonly why: string }[];
  readonly estimated_tokens: number;
  readonly message_count: number;
}

/** Increments first (`is_final` false), then one final event with the whole text. */
export interface AssistantText {
  readonly type: 'assistant_text';
  readonly content: string;
  readonly is_final: boolean;
  readonly attempt: number;
  readonly interrupted?: true;
  /** What the reply cost; on the first event of the reply, so that a crash before `turn_end` does not lose it. */
  readonly usage?: Usage;
}

export interface AssistantThinking { readonly type: 'assistant_thinking'; readonly content: string; readonly provider_data: unknown }

export interface ToolUse {
  readonly type: 'tool_use';
  readonly tool_name: string;
  readonly tool_input: Readonly<Record<string, unknown>>;
  readonly tool_use_id: string;
  readonly provider_id: string | null;
  readonly execution: ParallelClass;
  /** Why no tool can take this call; it gets an error result and is never begun. */
  readonly invalid?: string;
  /** See `AssistantText`; here where a reply has calls and no text. */
  readonly usage?: Usage;
}

/** Why a call has no result of its own: nobody knows, it never began, it was stopped, it was not approved. */
export type UnusualOutcome = 'unknown' | 'not_started' | 'cancelled' | 'denied';

export interface ToolResult {
  readonly type: 'tool_result';
  readonly tool_use_id: string;
  readonly tool_name: string;
  readonly content: string;
  readonly is_error: boolean;
  /** Seconds. */
  readonly duration: number;
  readonly truncated_bytes?: number;
  /** sha256 of the whole observation in the archive. */
  readonly blob?: string;
  /** In the archive, too; the model is shown those that are images, if it takes any. The content says of each what it is. */
  readonly attachments?: readonly Attachment[];
  readonly outcome?: UnusualOutcome;
}

export interface MaxIterations {
  readonly type: 'max_iterations';
  readonly limit: string;
  readonly iterations: number;
  readonly last_action_summary: string;
  readonly state: Readonly<Record<string, unknown>>;
  readonly summary: string;
  /** Of the call that wrote the summary, and by which model. */
  readonly usage?: Usage;
  readonly model?: string;
}

export interface ToolsChanged {
  readonly type: 'tools_changed';
  /** All that the run has from now on. */
  readonly tools: readonly ToolDefinition[];
  readonly problems: readonly string[];
  /** The run remembers the problems, so that they are told once. Absent in logs of releases that did not, which fold as they did. */
  readonly remembered?: true;
  /** `pinned`: at the first claim. `changed`: a server has another list now. */
  readonly done: 'pinned' | 'changed';
  /** Those that are there no longer. */
  readonly gone?: readonly string[];
  /** Those that are described otherwise now, with the hash of that: the run keeps what it has. */
  readonly kept?: readonly { readonly name: string; readonly hash: string }[];
  /** By server: the hash of what it says about how to use it (new or changed; empty: nothing any more). No model is shown that. */
  readonly instructions?: Readonly<Record<string, string>>;
}

export interface ErrorEvent {
  readonly type: 'error';
  readonly error_type: ErrorType;
  readonly action: RecoveryAction;
  readonly site: RecoverySite | null;
  readonly model: string;
  readonly from_model?: string;
  readonly to_model?: string;
  readonly detail: string;
  /** Seconds until the next try, null when there is none. */
  readonly retry_in: number | null;
  /** Seconds until it may be asked again, as the provider said. */
  readonly retry_after?: number;
  readonly consecutive_errors: number;
  /** Of `clamp_output`: the most tokens that this model is asked for from now on. */
  readonly output_cap?: number;
  /** Of `drop_feature`: what this model is asked without from now on. */
  readonly feature?: DroppableFeature;
  readonly usage?: Usage;
}

/** An answer, or an action, that the host does not accept. The model sees the feedback in the next turn. */
export interface ValidationFailed {
  readonly type: 'validation_error';
  readonly validator_name: string;
  readonly error_type: string;
  readonly feedback: string;
  readonly retries_left: number;
}

export type CompactionSite = 'proactive_compaction' | 'prompt_too_long';
/** Each cheaper to undo than the next: old results' bodies, old images, a summary of the middle, the middle cut out. */
export type CompactionLevel = 'results' | 'images' | 'summary' | 'snip' | 'emergency_snip';

/** An edit list: what of the transcript is gone, and what stands in the place of what. */
export interface TranscriptEdit {
  readonly removed: readonly (readonly [from_seq: number, to_seq: number])[];
  readonly replaced: readonly { readonly seq: number; readonly by: string }[];
  /** Stands behind the first user message, in the place of an earlier one. */
  readonly summary?: string;
}

export interface Compaction extends TranscriptEdit {
  readonly type: 'compaction';
  readonly level: CompactionLevel;
  readonly site: CompactionSite;
  readonly tokens_before: number;
  readonly tokens_after: number;
  readonly generation: number;
  /** Of the call that wrote the summary, and by which model. */
  readonly usage?: Usage;
  readonly model?: string;
}

/** What the session's runs before this one have said; stands before the run's own messages. */
export interface SessionHistory { readonly type: 'session_history'; readonly from_run_id: string; readonly generation: number; readonly messages: readonly Message[] }

/** The transcript was not fit to be sent, and was mended. */
export interface HistoryRepaired extends TranscriptEdit { readonly type: 'history_repaired'; readonly generation: number; readonly problem: string }

/** The provider counted far fewer tokens than were sent: something was cut off without a word. */
export interface ContextTruncated { readonly type: 'context_truncated'; readonly model: string; readonly estimated_tokens: number; readonly counted_tokens: number }

/** An image was taken out, since the model refused it; a note stands in its place. */
export interface ImageRemoved extends TranscriptEdit { readonly type: 'image_removed'; readonly generation: number; readonly reason: string }

/** What a stop hook said of an answer; `skipped` = it threw, was late, or returned a promise. */
export interface HookSpoke { readonly type: 'stop_hook'; readonly hook: string; readonly decision: HookDecision | 'skipped'; readonly prompt: string }

/** Somebody changed a live run. */
export interface RunUpdated { readonly type: 'run_updated'; readonly limits?: Partial<Limits>; readonly metadata?: Readonly<Record<string, unknown>>; readonly tags?: readonly string[]; readonly by: string }

export interface Steered { readonly type: 'steer'; readonly content: string }
export interface Check { readonly name: string; readonly ok: boolean; readonly detail: string }
export interface FinalResponse { readonly type: 'final_response'; readonly text: string; readonly output?: unknown; readonly checks?: readonly Check[] }
/** `duration` in seconds. */
export interface TurnEnd { readonly type: 'turn_end'; readonly duration: number; readonly usage: Usage }
/** What a sub-agent may use: its own limits, or what the run that starts it has left. */
export type ChildLimits = Pick<Limits, 'tool_budget' | 'max_total_tokens' | 'max_cost_usd' | 'max_depth'>;

/** A sub-agent is started by a call (`queued`: it exists from now on), or has ended. */
export interface ChildRunEvent {
  readonly type: 'child_run';
  readonly child_run_id: string;
  readonly tool_use_id: string;
  readonly agent: string;
  readonly status: 'queued' | EndStatus;
  /** Of a start: what is reserved for it until it ends. */
  readonly limits?: ChildLimits;
  /** Of an end: what it and its own sub-agents have used, which counts as the run's own from now on. */
  readonly usage?: Usage;
  readonly tool_calls?: number;
}

/** Always the last event. */
export interface RunEnd { readonly type: 'run_end'; readonly status: EndStatus; readonly stop_reason: StopReason }

export type EventBody =
  | RunCreated | UserMessage | StateChange | TurnStart | ModelRequested | AssistantText | AssistantThinking | ToolUse
  | ToolResult | MaxIterations | ToolsChanged | ErrorEvent | Steered | FinalResponse | TurnEnd | RunEnd
  | ValidationFailed | Compaction | HistoryRepaired | ContextTruncated | ImageRemoved | HookSpoke | RunUpdated | SessionHistory | OutcomeResolved | ApprovalRequested | ApprovalResolved | ChildRunEvent;

export type EventType = EventBody['type'];
export type RunEvent = EventBody & Envelope;

/** Every type, for filters, docs and their tests; the compiler keeps it complete. */
export const eventTypes = Object.keys({
  run_created: 1, user_message: 1, state_change: 1, turn_start: 1, model_request: 1, assistant_text: 1, assistant_thinking: 1,
  tool_use: 1, tool_result: 1, max_iterations: 1, tools_changed: 1, error: 1, steer: 1, final_response: 1, turn_end: 1, run_end: 1,
  validation_error: 1, compaction: 1, history_repaired: 1, context_truncated: 1, image_removed: 1, stop_hook: 1, run_updated: 1, session_history: 1, outcome_resolved: 1, approval_requested: 1, approval_resolved: 1, child_run: 1,
} satisfies Record<EventType, 1>) as EventType[];
