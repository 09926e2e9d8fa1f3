/**
 * What `decide` is told and what it answers. Time, randomness and the outside world come in here as data.
 */
import type { ModelSpec, ToolDefinition } from './agent-spec.ts';
import type { Command } from './command.ts';
import type { ErrorType } from './error-type.ts';
import type { EventBody, UnusualOutcome } from './events.ts';
import type { Usage } from './usage.ts';

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
  readonly usage: Usage;
}

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
  readonly outcome?: UnusualOutcome;
}

interface Told { readonly commands: readonly Command[] }

export interface TurnClaimed extends Told {
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
  /** What could not be asked for tools. */
  readonly tool_problems: readonly string[];
}

export interface ModelReplied extends Told {
  readonly type: 'model_replied';
  readonly reply: ModelReply;
  /** Whether increments of this reply were shown, so that the last one must be. */
  readonly shown_text: string;
  /** Seconds of this claim so far. */
  readonly elapsed_s: number;
}

export interface ModelFailed extends Told {
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
  readonly elapsed_s: number;
  readonly timed_out: TimeLimit | null;
}

export type TimeLimit = 'turn_timeout' | 'session_timeout';

export type TurnInput = TurnClaimed | ModelReplied | ModelFailed | ToolCallsSettled;

/** One at a time: a crash loses at most one. */
export type Effect =
  | { readonly type: 'call_model'; readonly model: ModelSpec }
  | { readonly type: 'settle_tool_calls' }
  | { readonly type: 'hand_over'; readonly delay_ms: number }
  | { readonly type: 'pause' }
  | { readonly type: 'end_run' };

export interface Decision {
  readonly events: readonly EventBody[];
  readonly effect: Effect;
}
