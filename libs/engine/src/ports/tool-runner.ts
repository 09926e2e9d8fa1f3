/**
 * The port of the tools: how one call is carried out within its limits.
 *
 * T1  Never throws for what a tool does: an error is a result for the model to read.
 * T2  Whoever aborts or is too slow: `run` answers soon after the signal, with the child process, request or function told.
 * T3  `settled` false says that a started call's outcome is unknown (time-out, abort, a server that died).
 */
import type { AgentSpec, ToolDefinition } from '@treadle/core';
import type { Carrier } from './tracer.ts';

export interface ToolRun {
  readonly run_id: string;
  readonly tool: ToolDefinition;
  readonly input: Readonly<Record<string, unknown>>;
  readonly tool_use_id: string;
  /** The same for every attempt of this call. */
  readonly idempotency_key: string;
  /** The fencing number. */
  readonly epoch: number;
  readonly signal: AbortSignal;
  /** Asked by whoever had to wait, right before the call is sent: a process that stood still may have lost the run meanwhile. Then the signal aborts. */
  readonly confirm?: () => Promise<void>;
  /** Told, for whoever traces the call, over what it is sent. */
  readonly onCarried?: (carrier: Carrier) => void;
}

/** What a tool gave beside its text. */
export interface ToolAttachment {
  readonly media_type: string;
  readonly bytes: Uint8Array;
}

export interface ToolRunResult {
  readonly content: string;
  readonly is_error: boolean;
  /** Whether the tool itself said how it went. */
  readonly settled: boolean;
  /** The signal aborted before the call was begun: it is as if nobody had made it. */
  readonly never_begun?: true;
  /** Kept beside the run; images among them are shown to models that take some. The text says of each what it is. */
  readonly attachments?: readonly ToolAttachment[];
}

export interface ToolCatalogue {
  readonly tools: readonly ToolDefinition[];
  /** Servers that could not be asked, in words for people. */
  readonly problems: readonly string[];
  /** By server: the hash of what it says about how to use it; absent where none says anything. No model is shown that. */
  readonly instructions?: Readonly<Record<string, string>>;
}

/** What has become of a run's tools since they were pinned. */
export interface ToolChanges {
  /** All of them as they are from now on. */
  readonly tools: readonly ToolDefinition[];
  /** Those that are there no longer. */
  readonly gone: readonly string[];
  /** Those that their source describes otherwise now, with the hash of that; the run keeps what it has. */
  readonly kept: readonly { readonly name: string; readonly hash: string }[];
  /** What is left out now, in words for people; what is known already is not said again. */
  readonly problems: readonly string[];
  /** By server, where it has other instructions now: their hash, empty where it has none any more. */
  readonly instructions?: Readonly<Record<string, string>>;
}

/** What is known of changes already. */
export interface KnownChanges {
  readonly kept: Readonly<Record<string, string>>;
  readonly instructions: Readonly<Record<string, string>>;
  /** Tools that the run has had. */
  readonly gone: readonly string[];
  readonly problems: readonly string[];
  /** By tool, and by `server/` for instructions: how often it has changed. */
  readonly times: Readonly<Record<string, number>>;
}

export interface ToolRunner {
  /** What the agent may use now, by its patterns, in a stable order. */
  catalogue(spec: AgentSpec): Promise<ToolCatalogue>;
  /** Null where nothing has changed, as far as the servers say that are connected here: none is connected for this. Never rejects. */
  changes?(spec: AgentSpec, pinned: readonly ToolDefinition[], known: KnownChanges): Promise<ToolChanges | null>;
  /** Why these arguments do not fit the definition's schema, for the model to read; null when they do. */
  check(tool: ToolDefinition, input: Readonly<Record<string, unknown>>): string | null;
  /** Whether a person has to approve of this call before it is begun. Of a tool that has a rule; in doubt, true. */
  asks(tool: ToolDefinition, input: Readonly<Record<string, unknown>>): boolean;
  run(run: ToolRun): Promise<ToolRunResult>;
}
