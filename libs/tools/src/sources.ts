/** What the host configures. The shapes are stated here, since adapters do not import each other; `@treadle/config` gives the same. */
import type { EffectClass, OnUnknown, ParallelClass } from '@treadle/core';

export interface FunctionToolContext {
  readonly signal: AbortSignal;
  readonly idempotency_key: string;
  readonly epoch: number;
  readonly run_id: string;
  readonly tool_use_id: string;
}

export interface FunctionToolSource {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of an object. */
  readonly input_schema: Readonly<Record<string, unknown>>;
  readonly effect: EffectClass;
  readonly parallel: ParallelClass;
  /** Null: the runner's default. */
  readonly timeout_ms: number | null;
  readonly run: (input: Readonly<Record<string, unknown>>, context: FunctionToolContext) => unknown;
}

/** An MCP server over stdio. */
export interface McpServerSource {
  readonly command: string;
  readonly args: readonly string[];
  /** Added to a short safe list of this process's own variables. */
  readonly env: Readonly<Record<string, string>>;
  /** Whether its hints about its tools count. */
  readonly trusted: boolean;
  /** Calls at once; 1 to 1000. */
  readonly concurrency: number;
}

/** The host's own word on a tool; overrides what the tool says of itself. */
export interface ToolPolicySource {
  readonly parallel?: ParallelClass;
  readonly effect?: EffectClass;
  readonly timeout_ms?: number;
  readonly on_unknown?: OnUnknown;
  /** Asked again and again on purpose: identical calls in a row are no loop. */
  readonly polling?: boolean;
}

export interface ToolSources {
  readonly functions: readonly FunctionToolSource[];
  /** By name: 1 to 32 letters, digits, `_`, `-`. */
  readonly mcpServers: Readonly<Record<string, McpServerSource>>;
  /** By name or pattern of the tool. */
  readonly policies: Readonly<Record<string, ToolPolicySource>>;
}
