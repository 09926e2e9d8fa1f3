/**
 * Puts Ollama's stream together: text, thinking, calls (always whole on this wire) and the counts of the last line.
 *
 * States: open → done (the line with `done: true`). Only a done one can be made a reply.
 */
import type { ModelRequest, ReplyCall } from '@treadle/core';
import type { ProviderOutcome } from '../../provider.ts';
import { failedReply, judged, readCall, usageOf } from '../../reply/judge.ts';
import { callOf, isBlocked, isCut, listOf, partsOf } from '../../reply/loose.ts';
import { createTextAssembler } from '../../reply/text-assembler.ts';

/** A line as it may really be: nothing of it is certain. */
export interface OllamaLine {
  readonly message?: { readonly content?: unknown; readonly thinking?: unknown; readonly tool_calls?: unknown };
  readonly model?: unknown;
  readonly done?: unknown;
  readonly done_reason?: unknown;
  readonly prompt_eval_count?: unknown;
  readonly eval_count?: unknown;
}

export interface ReplyCollector {
  readonly take: (line: OllamaLine) => void;
  /** What came, judged; null when the terminal line has not come. */
  readonly finish: () => ProviderOutcome | null;
}

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

  function finish(): ProviderOutcome | null {
    if (last === null) return null;
    const finish_raw = typeof last.done_reason === 'string' ? last.done_reason : '';
    const usage = usageOf({ input: last.prompt_eval_count, output: last.eval_count });
    if (isBlocked(finish_raw)) return failedReply('content_blocked', 'the reply was stopped by the content filter', usage);
    if (finish_raw === 'load' || finish_raw === 'unload') return failedReply('overloaded', 'model is loading', usage);
    return judged({ text, thinking: thinking.toWellFormed(), provider_data: null, calls }, { finish_raw, cut: isCut(finish_raw), usage, served_as: last.model }, request);
  }

  return {
    finish,
    take: (line) => {
      const { content, thinking: thought, tool_calls } = line.message ?? {};
      if (typeof thought === 'string') thinking += thought;
      for (const part of partsOf(content)) {
        if (part.thinks) thinking += part.text;
        else show(assembler.take(part.text));
      }
      calls.push(...listOf(tool_calls).map((call) => readCall(callOf(call), request)));
      if (line.done === true) {
        show(assembler.end());
        last = line;
      }
    },
  };
}
