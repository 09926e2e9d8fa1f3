/**
 * One kind of tool (function, MCP, HTTP, built in): how its tools are found and called. A new kind is a file in `kinds/` and one line in
 * `kinds/registry.ts`.
 *
 * K1  `call` never rejects for what a tool, server or request does: that is a `CallEnd`.
 * K2  `begin` is called once, directly before the call may have an effect; whatever ends before it is `not_started`.
 * K3  `call` ends soon after its signal aborts, and passes the abort on to whatever it started.
 */
import type { AgentSpec, BuiltinTool, EffectClass, ParallelClass } from '@treadle/core';
import type { ToolAttachment, ToolRun } from '@treadle/engine';

/** A tool as its source describes it; not yet checked. */
export interface OfferedTool {
  readonly name: string;
  readonly description: string;
  /** Whatever the source gave as the schema of the arguments. */
  readonly input_schema: unknown;
  /** What the source may say of itself; null where it may not or does not. */
  readonly effect: EffectClass | null;
  readonly parallel: ParallelClass | null;
  readonly timeout_ms: number | null;
  /** Whether it may destroy something, where the source may say so and does. */
  readonly destructive?: boolean;
  /** Of description and schema, where they come from elsewhere. */
  readonly characters?: number;
  /** Part of the host: nobody's word on tools counts for it. */
  readonly builtin?: BuiltinTool;
}

export interface Offer {
  readonly tools: readonly OfferedTool[];
  /** Servers that could not be asked, in words for people. */
  readonly problems: readonly string[];
  /** Beginnings of the names that are missing because of those problems, so that a pattern for them is not called wrong. */
  readonly missing: readonly string[];
  /** By server: the hash of what it says about how to use it. Nobody shows that to a model. */
  readonly instructions?: Readonly<Record<string, string>>;
}

export type CallEnd =
  /** The tool itself said how it went. */
  | { readonly type: 'answered'; readonly content: string; readonly is_error: boolean; readonly attachments?: readonly ToolAttachment[] }
  /** It certainly did not happen. */
  | { readonly type: 'not_started'; readonly why: string }
  /** It was started, and nobody knows how it went. */
  | { readonly type: 'lost'; readonly why: string };

export interface CallWindow {
  /** Aborts for the caller's abort and for the tool's time-out. */
  readonly signal: AbortSignal;
  /** Starts the time-out. */
  begin(): void;
  /** For a call that had to wait: rejects where it may not be sent any more. `begin` follows at once. */
  confirm(): Promise<void>;
  /** A sign of life: the time-out begins anew, as far as the tool's time in all allows. */
  progress(): void;
}

export interface ToolKind {
  /** Whether a tool of this name is carried out here. */
  owns(name: string): boolean;
  /** What is there now, at least for these patterns, for this agent. */
  offered(patterns: readonly string[], spec: AgentSpec): Promise<readonly Offer[]>;
  call(run: ToolRun, window: CallWindow): Promise<CallEnd>;
  close(): Promise<void>;
}
