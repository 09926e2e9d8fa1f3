/**
 * Puts Ollama's stream together: text, thinking, calls (always whole on this wire) and the counts of the last line.
 *
 * States: open → done (the line with `done: true`). Only a done one can be made a reply.
 */
import { noUsage, type ModelReply, type ModelRequest, type ReplyCall, type Usage } from '@treadle/core';
import type { ProviderFailure } from '../../provider.ts';
import { createTextAssembler } from '../../text-assembler.ts';
import { readArguments } from './tool-arguments.ts';

/** A line as it may really be: nothing of it is certain. */
export interface OllamaLine {
  readonly message?: { readonly content?: unknown; readonly thinking?: unknown; readonly tool_calls?: unknown };
  readonly done?: unknown;
  readonly done_reason?: unknown;
  readonly prompt_eval_count?: unknown;
  readonly eval_count?: unknown;
}

export type Finished =
  | { readonly type: 'replied'; readonly reply: ModelReply }
  | { readonly type: 'failed'; readonly failure: ProviderFailure };

export interface ReplyCollector {
  readonly take: (line: OllamaLine) => void;
  /** What came, judged; null when the terminal line has not come. */
  readonly finish: () => Finished | null;
}

/** Tokens. A reply cut with less room left than this was cut by the window, and a larger output limit cannot help. */
const leastRoom = 512;

export function createReplyCollector(request: ModelRequest, onText: (increment: string) => void): ReplyCollector {
  const assembler = createTextAssembler();
  let text = '';
  let thinking = '';
  const calls: ReplyCall[] = [];
  let last: OllamaLine | null = null;

  const show = (increment: string): void => {
    text += increment;
    onText(increment);
  };

  return {
    take: (line) => {
      const { content, thinking: thought, tool_calls } = line.message ?? {};
      if (typeof thought === 'string') thinking += thought;
      if (typeof content === 'string') show(assembler.take(content));
      if (Array.isArray(tool_calls)) calls.push(...tool_calls.map((call: unknown) => readCall(call, request)));
      if (line.done === true) {
        show(assembler.end());
        last = line;
      }
    },
    finish: () => (last === null ? null : judge({ text, thinking: thinking.toWellFormed(), calls }, last, request)),
  };
}

interface Collected { readonly text: string; readonly thinking: string; readonly calls: readonly ReplyCall[] }

function judge(collected: Collected, last: OllamaLine, request: ModelRequest): Finished {
  const finish_raw = typeof last.done_reason === 'string' ? last.done_reason : '';
  const usage = usageOf(last);
  if (finish_raw === 'load' || finish_raw === 'unload') return failed('overloaded', 'model is loading', usage);
  const cut = finish_raw === 'length';
  if (cut && windowIsFull(usage, request)) {
    return failed('context_overflow', `the context window of ${request.model.context_window} tokens is full: ${usage.input_tokens} of the prompt, ${usage.output_tokens} of the reply`, usage);
  }
  const finish = cut ? 'length' : collected.calls.length > 0 ? 'tool_calls' : 'stop';
  return { type: 'replied', reply: { ...collected, provider_data: null, finish, finish_raw, usage } };
}

function windowIsFull(usage: Usage, request: ModelRequest): boolean {
  const { context_window, max_output_tokens } = request.model;
  return context_window - usage.input_tokens < leastRoom && usage.output_tokens < max_output_tokens;
}

function failed(error_type: ProviderFailure['error_type'], detail: string, usage: Usage): Finished {
  return { type: 'failed', failure: { error_type, detail, retry_after_s: null, usage } };
}

function readCall(raw: unknown, request: ModelRequest): ReplyCall {
  const { id, function: inner } = asObject(raw);
  const { name: rawName, arguments: rawArguments } = asObject(inner);
  const name = typeof rawName === 'string' && rawName !== '' ? rawName.toWellFormed() : 'unnamed_tool';
  const tool = request.tools.find((each) => each.wire_name === name || each.name === name);
  return { provider_id: typeof id === 'string' && id !== '' ? id.toWellFormed() : null, name, ...readArguments(rawArguments, tool) };
}

function usageOf(line: OllamaLine): Usage {
  return { ...noUsage, input_tokens: count(line.prompt_eval_count), output_tokens: count(line.eval_count) };
}

function count(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return value !== null && typeof value === 'object' ? value as Record<string, unknown> : {};
}
