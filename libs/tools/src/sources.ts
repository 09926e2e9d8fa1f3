/** What the host configures. The shapes are stated here, since adapters do not import each other; `@treadle/config` gives the same. */
import type { EffectClass, OnUnknown, ParallelClass } from '@treadle/core';
import type { BlobSource } from './builtin/read-blob.ts';

export interface FunctionToolContext {
  readonly signal: AbortSignal;
  readonly idempotency_key: string;
  readonly epoch: number;
  readonly run_id: string;
  readonly tool_use_id: string;
  readonly progress: (progress?: number, total?: number, message?: string) => void;
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
  /** Calls at once in this process, 1 to 1000; null or absent: any number. */
  readonly concurrency?: number | null;
  readonly run: (input: Readonly<Record<string, unknown>>, context: FunctionToolContext) => unknown;
}

interface McpServerCommon {
  /** Whether its hints about its tools count. */
  readonly trusted: boolean;
  /** Calls at once; 1 to 1000. */
  readonly concurrency: number;
}

/** An MCP server over stdio. */
export interface McpStdioSource extends McpServerCommon {
  readonly command: string;
  readonly args: readonly string[];
  /** Added to a short safe list of this process's own variables. */
  readonly env: Readonly<Record<string, string>>;
}

/** An MCP server over streamable HTTP. */
export interface McpHttpSource extends McpServerCommon {
  readonly url: string;
  /** Holds secrets. */
  readonly headers: Readonly<Record<string, string>>;
}

export type McpServerSource = McpStdioSource | McpHttpSource;

export type HttpMethod = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** A tool that is one HTTP request. */
export interface HttpToolSource {
  readonly method: HttpMethod;
  /** With `{name}` for arguments in path and query; the other arguments are the query (GET, HEAD, DELETE) or the JSON body. */
  readonly url: string;
  readonly description: string;
  /** JSON Schema of an object. */
  readonly input_schema: Readonly<Record<string, unknown>>;
  /** Holds secrets. */
  readonly headers: Readonly<Record<string, string>>;
  /** Calls at once in this process, 1 to 1000; absent: any number. */
  readonly concurrency?: number | undefined;
}

export type ApprovalPolicySource = 'never' | 'always' | 'destructive' | { readonly when: { readonly arg: string; readonly matches: string } };

/** The host's own word on a tool; overrides what the tool says of itself. */
export interface ToolPolicySource {
  readonly parallel?: ParallelClass;
  readonly effect?: EffectClass;
  readonly timeout_ms?: number;
  /** Arguments that name paths: calls of `path` tools run together where these do not overlap. */
  readonly path_args?: readonly string[];
  /** Folders that those paths must lie in; absent: anywhere. */
  readonly roots?: readonly string[];
  /** How long reported progress may put the time-out off. */
  readonly max_total_ms?: number;
  /** Calls at once in this process, of each tool that the pattern fits; 1 to 1000. */
  readonly concurrency?: number;
  readonly on_unknown?: OnUnknown;
  /** Which of its calls a person has to approve of; `destructive`: all, unless the tool is known to destroy nothing. */
  readonly approval?: ApprovalPolicySource;
  /** How long that is waited for; null or absent: for ever. */
  readonly approval_timeout_s?: number | null;
  readonly on_approval_timeout?: 'deny' | 'expire';
  /** Asked again and again on purpose: identical calls in a row are no loop. */
  readonly polling?: boolean;
}

export interface ToolSources {
  readonly functions: readonly FunctionToolSource[];
  /** By name: 1 to 32 letters, digits, `_`, `-`. */
  readonly mcpServers: Readonly<Record<string, McpServerSource>>;
  /** By name or pattern of the tool. */
  readonly policies: Readonly<Record<string, ToolPolicySource>>;
  /** By name. */
  readonly httpTools?: Readonly<Record<string, HttpToolSource>>;
  /**
   * The way out for HTTP tools, MCP servers by URL and `http_get`: one that checks where it goes. An error of it may say by
   * `sent: false` that nothing was sent. Default: nothing goes out.
   */
  readonly fetch?: typeof fetch;
  /** What `read_blob` reads; without it there is no such tool. */
  readonly blobs?: BlobSource;
  /** Never shown to a model, whatever a tool says. */
  readonly secrets?: readonly string[];
}
