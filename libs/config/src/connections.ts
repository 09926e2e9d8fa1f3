/** What the worker needs and a run must not hold: addresses, keys, programs, functions. Found again by name. */
import type { EffectClass, ParallelClass } from '@treadle/core';
import type { FunctionTool } from './define-tool.ts';
import type { LoadedConfig } from './load.ts';

export interface ModelConnection {
  readonly provider: string;
  readonly base_url: string;
  readonly api_key: string | null;
  readonly first_token_timeout_ms: number;
  readonly idle_timeout_ms: number;
}

export interface McpServer {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly trusted: boolean;
  /** Calls at once per worker. */
  readonly concurrency: number;
}

/** The host's own word on a tool; what is absent is left to trusted hints, then to the careful defaults. */
export interface ToolPolicy {
  readonly parallel?: ParallelClass;
  readonly effect?: EffectClass;
  readonly timeout_ms?: number;
}

/** By the model's name in the configuration. Holds secrets. */
export function modelConnections(config: LoadedConfig): Readonly<Record<string, ModelConnection>> {
  return mapValues(config.models, ({ provider, base_url, credentials, first_token_timeout_ms, idle_timeout_ms }) => (
    { provider, base_url, api_key: credentials[0] ?? null, first_token_timeout_ms, idle_timeout_ms }));
}

/** By the server's name. Holds secrets in `env` and `args`. */
export function mcpServers(config: LoadedConfig): Readonly<Record<string, McpServer>> {
  return mapValues(config.mcp_servers, ({ command, args, env, trusted, concurrency }) => ({ command, args, env, trusted, concurrency }));
}

/** By name or pattern of the tool. */
export function toolPolicies(config: LoadedConfig): Readonly<Record<string, ToolPolicy>> {
  return mapValues(config.tools, ({ parallel, effect, timeout_ms }) => ({
    ...(parallel === undefined ? {} : { parallel }), ...(effect === undefined ? {} : { effect }), ...(timeout_ms === undefined ? {} : { timeout_ms }),
  }));
}

export function functionTools(config: LoadedConfig): readonly FunctionTool[] {
  return config.functions;
}

function mapValues<From, To>(record: Readonly<Record<string, From>>, map: (value: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]));
}
