/** What the worker needs and a run must not hold: addresses, keys, programs, functions. Found again by name. */
import type { EffectClass, ModelPrice, OnUnknown, ParallelClass } from '@treadle/core';
import type { FunctionTool } from './define-tool.ts';
import type { LoadedConfig } from './load.ts';
import type { CheckFunction, DecideFunction } from './schema/answers.ts';
import type { CheckedConfig } from './schema/config.ts';

export interface ModelConnection {
  readonly provider: string;
  readonly base_url: string;
  /** Empty where the server asks for none. */
  readonly credentials: readonly string[];
  readonly credential_strategy: 'fill_first' | 'round_robin';
  /** Of each credential, fleet-wide; per minute and at once. */
  readonly rates: { readonly requests_per_minute: number | null; readonly tokens_per_minute: number | null; readonly in_flight: number | null };
  readonly first_token_timeout_ms: number;
  readonly idle_timeout_ms: number;
}

export type McpServer = {
  readonly trusted: boolean;
  /** Calls at once per worker. */
  readonly concurrency: number;
} & (
  | { readonly command: string; readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> }
  | { readonly url: string; readonly headers: Readonly<Record<string, string>> });

export type HttpTool = CheckedConfig['http_tools'][string];
type ToolPolicyConfig = CheckedConfig['tools'][string];

/** The host's own word on a tool; what is absent is left to trusted hints, then to the careful defaults. */
export interface ToolPolicy {
  readonly parallel?: ParallelClass;
  readonly effect?: EffectClass;
  readonly timeout_ms?: number;
  readonly max_total_ms?: number;
  /** Calls of each such tool at once per worker. */
  readonly concurrency?: number;
  readonly on_unknown?: OnUnknown;
  readonly approval?: ToolPolicyConfig['approval'] & {};
  readonly approval_timeout_s?: number | null;
  readonly on_approval_timeout?: 'deny' | 'expire';
  /** Identical calls in a row are no loop. */
  readonly polling?: boolean;
  readonly path_args?: readonly string[];
  readonly roots?: readonly string[];
}

/** By the model's name in the configuration. Holds secrets. */
export function modelConnections(config: LoadedConfig): Readonly<Record<string, ModelConnection>> {
  return mapValues(config.models, ({ provider, base_url, credentials, credential_strategy, rates, first_token_timeout_ms, idle_timeout_ms }) => (
    { provider, base_url, credentials, credential_strategy, rates, first_token_timeout_ms, idle_timeout_ms }));
}

/** By the server's name. Holds secrets. */
export function mcpServers(config: LoadedConfig): Readonly<Record<string, McpServer>> {
  return mapValues(config.mcp_servers, ({ command, args, env, url, headers, trusted, concurrency }): McpServer => (
    url === undefined ? { command: command ?? '', args, env, trusted, concurrency } : { url, headers, trusted, concurrency }));
}

/** By the tool's name. Holds secrets in `headers` and `url`. */
export function httpTools(config: LoadedConfig): Readonly<Record<string, HttpTool>> {
  return config.http_tools;
}

/** By name or pattern of the tool. */
export function toolPolicies(config: LoadedConfig): Readonly<Record<string, ToolPolicy>> {
  return mapValues(config.tools, ({ parallel, effect, timeout_ms, max_total_ms, on_unknown, approval, approval_timeout_s, on_approval_timeout, polling, path_args, roots, concurrency }) => ({
    ...(max_total_ms === undefined || max_total_ms === null ? {} : { max_total_ms }),
    ...(parallel === undefined ? {} : { parallel }), ...(effect === undefined ? {} : { effect }), ...(timeout_ms === undefined ? {} : { timeout_ms }),
    ...(on_unknown === undefined ? {} : { on_unknown }), ...(polling === undefined ? {} : { polling }),
    ...(approval === undefined ? {} : { approval }), ...(approval_timeout_s === undefined ? {} : { approval_timeout_s }), ...(on_approval_timeout === undefined ? {} : { on_approval_timeout }),
    ...(path_args === undefined ? {} : { path_args }), ...(roots === undefined ? {} : { roots }), ...(concurrency === undefined ? {} : { concurrency }),
  }));
}

/** By name. Holds secrets. */
export function webhookEndpoints(config: LoadedConfig): CheckedConfig['webhooks'] {
  return config.webhooks;
}

export function functionTools(config: LoadedConfig): readonly FunctionTool[] {
  return config.functions;
}

/** By the model's name in the configuration; zero where none is given. */
export function modelPrices(config: LoadedConfig): Readonly<Record<string, ModelPrice>> {
  return mapValues(config.models, ({ price: { cached_input_per_mtok, ...price } }) => ({ ...price, ...(cached_input_per_mtok == null ? {} : { cached_input_per_mtok }) }));
}

/** The functions among all agents' stop hooks, by name. */
export function hookFunctions(config: LoadedConfig): Readonly<Record<string, DecideFunction>> {
  const hooks = Object.values(config.agents).flatMap((agent) => agent.stop_hooks);
  return Object.fromEntries(hooks.flatMap((hook) => (hook.type === 'function' ? [[hook.name, hook.decide]] : [])));
}

/** The functions among all agents' validators, by name. */
export function validatorFunctions(config: LoadedConfig): Readonly<Record<string, CheckFunction>> {
  const validators = Object.values(config.agents).flatMap((agent) => agent.validators);
  return Object.fromEntries(validators.flatMap((validator) => (validator.type === 'function' ? [[validator.name, validator.check]] : [])));
}

function mapValues<From, To>(record: Readonly<Record<string, From>>, map: (value: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]));
}
