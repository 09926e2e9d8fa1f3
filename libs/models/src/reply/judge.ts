/** What a reply that has come whole amounts to. The same on every wire, once its own words are known. */
import { noUsage, type ErrorType, type ModelReply, type ModelRequest, type ReplyCall, type Usage } from '@treadle/core';
import type { ProviderOutcome } from '../provider.ts';
import { readArguments } from './tool-arguments.ts';

export interface Collected { readonly text: string; readonly thinking: string; readonly provider_data: unknown; readonly calls: readonly ReplyCall[] }

export interface Ending {
  /** The wire's own word for how it ended. */
  readonly finish_raw: string;
  /** Whether that word says that a limit cut the reply. */
  readonly cut: boolean;
  readonly usage: Usage;
  /** What the server calls the model: may be anything. */
  readonly served_as?: unknown;
}

/** Tokens. A reply cut with less room left than this was cut by the window, and a larger output limit cannot help. */
const leastRoom = 512;
const longestName = 256;

/** Calls count for more than the word: many servers say `stop` with calls there. */
export function judged(collected: Collected, { finish_raw, cut, usage, served_as }: Ending, request: ModelRequest): ProviderOutcome {
  if (cut && windowIsFull(usage, request)) {
    return failedReply('context_overflow', `the context window of ${request.model.context_window} tokens is full: ${usage.input_tokens} of the prompt, ${usage.output_tokens} of the reply`, usage);
  }
  const finish: ModelReply['finish'] = cut ? 'length' : collected.calls.length > 0 ? 'tool_calls' : 'stop';
  const served = typeof served_as === 'string' && served_as !== '' ? { served_as: served_as.slice(0, longestName).toWellFormed() } : {};
  return { type: 'replied', reply: { ...collected, finish, finish_raw, usage, ...served } };
}

function windowIsFull(usage: Usage, request: ModelRequest): boolean {
  const { context_window, max_output_tokens } = request.model;
  return context_window - usage.input_tokens < leastRoom && usage.output_tokens < max_output_tokens;
}

/** A whole reply that is a failure all the same, with what it has cost. */
export function failedReply(error_type: ErrorType, detail: string, usage: Usage | null): ProviderOutcome {
  return { type: 'failed', failure: { error_type, detail, retry_after_s: null, usage } };
}

/** A call as the wire gave it; nothing of it is certain. */
export function readCall(raw: { readonly id: unknown; readonly name: unknown; readonly args: unknown }, request: ModelRequest): ReplyCall {
  const name = typeof raw.name === 'string' && raw.name.trim() !== '' ? raw.name.trim().toWellFormed() : 'unnamed_tool';
  const tool = request.tools.find((each) => each.wire_name === name || each.name === name);
  return { provider_id: typeof raw.id === 'string' && raw.id !== '' ? raw.id.toWellFormed() : null, name, ...readArguments(raw.args, tool) };
}

/** `input`: the whole prompt, what came from a cache included. */
export function usageOf(counts: { readonly input: unknown; readonly output: unknown; readonly cached?: unknown }): Usage {
  const input_tokens = count(counts.input);
  return { ...noUsage, input_tokens, output_tokens: count(counts.output), cached_tokens: Math.min(input_tokens, count(counts.cached)) };
}

/** Tokens. What a server counts beyond it is no count: sums over many runs must stay numbers. */
const mostTokens = 1e9;

export function count(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= mostTokens ? value : 0;
}

export function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return value !== null && typeof value === 'object' ? value as Record<string, unknown> : {};
}
