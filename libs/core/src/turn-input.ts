/**
 * What `decide` is told and what it answers. Time, randomness and the outside world come in here as data.
 */
import type { HookDecision, ModelSpec, ToolDefinition } from './agent-spec.ts';
import type { Action } from './action.ts';
import type { ChildEnded, Command } from './command.ts';
import type { ErrorType } from './error-type.ts';
import type { CompactionSite, EventBody, ToolsChanged, UnusualOutcome } from './events.ts';
import type { Limits } from './limits.ts';
import type { Attachment, Message } from './message.ts';
import type { DroppableFeature } from './request.ts';
import type { StopReason } from './stop-reason.ts';
import type { ModelPrice, Usage } from './usage.ts';

/** A call as the model made it. */
export interface ReplyCall {
  readonly provider_id: string | null;
  /** As the model said it: a wire name, perhaps an invented one. */
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** Why the arguments cannot be used, for the model to read; null when they can. */
  readonly problem: string | null;
}

/** A whole reply, its terminal marker seen. */
export interface ModelReply {
  readonly text: string;
  readonly thinking: string;
  /** Signatures and the like, returned unchanged to the same model. */
  readonly provider_data: unknown;
  readonly calls: readonly ReplyCall[];
  /** The closed value, and the provider's own. */
  readonly finish: 'stop' | 'tool_calls' | 'length';
  readonly finish_raw: string;
  /** What its server calls the model that answered; absent where it does not say. */
  readonly served_as?: string;
  readonly usage: Usage;
  /** In `json_action`, what the text says; see `interpreted`. */
  readonly action?: Action;
}

/** What stop hooks and validators said of a text answer. They are run outside: they may be functions. */
export interface Judgement {
  readonly hooks: readonly { readonly hook: string; readonly decision: HookDecision | 'skipped'; readonly prompt: string }[];
  readonly checks: readonly {
    readonly name: string; readonly mode: 'enforce' | 'report'; readonly ok: boolean;
    readonly error_type: string; readonly feedback: string; readonly detail: string;
  }[];
  /** The answer parsed, where a `json_schema` validator accepted it. */
  readonly output: unknown;
}

export const noJudgement: Judgement = { hooks: [], checks: [], output: null };

/** A named failure instead of a reply. */
export interface ModelFailure {
  readonly error_type: ErrorType;
  /** For people: the provider's words, without secrets. */
  readonly detail: string;
  /** Seconds, where the provider said when to come again. */
  readonly retry_after_s: number | null;
  /** Text that came before the failure. */
  readonly partial_text: string;
  readonly usage: Usage | null;
  /** Of `output_cap_invalid`: the tokens that a reply may have, where the provider said. */
  readonly output_cap?: number;
  /** Of `feature_unsupported`: what the request can do without. */
  readonly feature?: DroppableFeature;
  /** Another key of the same model is free. */
  readonly other_key?: boolean;
}

export type Prices = Readonly<Record<string, ModelPrice>>;

/** A model that is not to be asked now. */
export interface Unavailable {
  /** The name in the configuration. */
  readonly model: string;
  readonly why: 'breaker_open' | 'credential_benched' | 'model_benched';
  /** When it may be asked again, epoch seconds, and how long that is from now; null: waiting does not help, so it is the last to be asked. */
  readonly wait: { readonly until_s: number; readonly wait_ms: number } | null;
}

/** How one call came out. */
export interface SettledCall {
  readonly tool_use_id: string;
  readonly content: string;
  readonly is_error: boolean;
  /** Seconds. */
  readonly duration: number;
  readonly truncated_bytes?: number;
  readonly blob?: string;
  readonly attachments?: readonly Attachment[];
  readonly outcome?: UnusualOutcome;
}

interface Told { readonly commands: readonly Command[] }

/** What is known of the models that may be asked. */
interface ModelsTold extends Told {
  readonly unavailable: readonly Unavailable[];
  /** By the model's name in the configuration; who is not named is free. */
  readonly prices?: Prices | undefined;
  /** Epoch seconds. */
  readonly now_s: number;
}

export interface TurnClaimed extends ModelsTold {
  readonly type: 'turn_claimed';
  readonly worker: string;
  /** Deliveries in a row, this one included, that ended in neither hand-over nor hand-back. */
  readonly deliveries: number;
  readonly poison_limit: number;
  /** How often the pump had to ring again in a row. */
  readonly nudges: number;
  readonly nudge_limit: number;
  /** A command woke the run before its time; so long it still has to wait, ms. */
  readonly wait_ms: number;
  /** What became of open calls that an earlier claim had begun, should the run end now: the ledger's word. */
  readonly begun: readonly SettledCall[];
  /** The tools to pin; null when the run has them. */
  readonly tools: readonly ToolDefinition[] | null;
  /** What the session has said before; null where there is nothing, or the run has it. */
  readonly history: { readonly from_run_id: string; readonly messages: readonly Message[] } | null;
  /** Of the answer that was there when the run was paused. */
  readonly judgement: Judgement;
  /** Until the rates of the model that is asked next have room for it, ms; 0 = now. */
  readonly room_ms: number;
  /** What has become of the pinned tools; absent or null: nothing. */
  readonly tool_changes?: Pick<ToolsChanged, 'tools' | 'problems' | 'gone' | 'kept' | 'instructions'> | null;
  /** Of the servers of `tools`, where they have any: the hashes of their instructions. */
  readonly server_instructions?: Readonly<Record<string, string>>;
  /** Of `tools`: servers that could not be asked, and what is left out. */
  readonly tool_problems: readonly string[];
  /** Why there is nothing to go on from: the store has lost writes, and the archive tells another history. */
  readonly lost?: string;
}

export interface ModelReplied extends ModelsTold {
  readonly type: 'model_replied';
  readonly reply: ModelReply;
  /** By `tool_use_id`: the runs that calls of this reply would start. A call without one names an agent that this worker does not know. */
  readonly children?: Readonly<Record<string, OfferedChild>>;
  /** By `tool_use_id`: the digests of the calls of this reply that need a person's word. */
  readonly approvals?: Readonly<Record<string, string>>;
  /** Of a reply that is text alone. */
  readonly judgement: Judgement;
  /** Whether increments of this reply were shown, so that the last one must be. */
  readonly shown_text: string;
  /** Seconds of this claim so far. */
  readonly elapsed_s: number;
}

/** A run that may be started: its id, and the limits that its agent gives it. */
export interface OfferedChild { readonly child_run_id: string; readonly limits: Limits }

export interface ModelFailed extends ModelsTold {
  readonly type: 'model_failed';
  readonly failure: ModelFailure;
  readonly elapsed_s: number;
  /** What the host's own clock ended, if that is what failed. */
  readonly timed_out: TimeLimit | null;
  /** 0 to 1. */
  readonly jitter: number;
}

export interface ToolCallsSettled extends Told {
  readonly type: 'tool_calls_settled';
  /** New results, in any order; calls without one have not been begun. */
  readonly results: readonly SettledCall[];
  /** Calls whose answer comes from a run that is under way now. */
  readonly awaited?: readonly string[];
  /** Runs that were found to have ended. */
  readonly child_ends?: readonly ChildEnded[];
  readonly elapsed_s: number;
  readonly timed_out: TimeLimit | null;
}

export type TimeLimit = 'turn_timeout' | 'session_timeout';

/** What came of a summary: text, or null where the model failed or nobody was asked. */
export interface Summarised extends ModelsTold {
  readonly type: 'summarised';
  readonly purpose: SummaryPurpose;
  /** Who was asked. */
  readonly model: string;
  readonly text: string | null;
  readonly usage: Usage | null;
  readonly elapsed_s: number;
}

export type SummaryPurpose = { readonly type: 'compaction'; readonly site: CompactionSite } | { readonly type: 'limit'; readonly reason: StopReason };

export type TurnInput = TurnClaimed | ModelReplied | ModelFailed | ToolCallsSettled | Summarised;

/** One at a time: a crash loses at most one. */
export type Effect =
  | { readonly type: 'call_model'; readonly model: ModelSpec }
  /** One call without tools, with a reserve of its own. */
  | { readonly type: 'summarise'; readonly purpose: SummaryPurpose; readonly model: ModelSpec; readonly messages: readonly Message[]; readonly max_output_tokens: number; readonly timeout_s: number }
  | { readonly type: 'settle_tool_calls' }
  | { readonly type: 'hand_over'; readonly delay_ms: number }
  /** `delay_ms`: when the run wakes by itself; absent where somebody has to wake it. */
  | { readonly type: 'pause'; readonly delay_ms?: number }
  | { readonly type: 'end_run' };

export interface Decision {
  readonly events: readonly EventBody[];
  readonly effect: Effect;
}
