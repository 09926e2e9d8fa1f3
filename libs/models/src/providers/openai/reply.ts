/**
 * Puts a stream of `chat.completion.chunk` together, as servers really send it: chunks without choices, a reason that comes twice or as
 * empty text, counts in a chunk of their own or beside the last text, thinking under two names, a whole reply in one object.
 *
 * States: open → finished (a `finish_reason` was seen; counts may follow) → closed (`[DONE]`).
 */
import type { ModelRequest, Usage } from '@treadle/core';
import { StreamedError } from '../../http/stream-fault.ts';
import type { EventCollector } from '../../http/streamed-call.ts';
import type { ProviderOutcome } from '../../provider.ts';
import { asObject, count, failedReply, judged, readCall, usageOf } from '../../reply/judge.ts';
import { isBlocked, isCut, listOf, partsOf, saysError } from '../../reply/loose.ts';
import { createTextAssembler } from '../../reply/text-assembler.ts';
import { createCallFragments } from './call-fragments.ts';

type Fields = Readonly<Record<string, unknown>>;

export function createReplyCollector(request: ModelRequest, onText: (increment: string) => void): EventCollector {
  const assembler = createTextAssembler();
  const fragments = createCallFragments();
  let text = '';
  let thinking = '';
  let refusal = '';
  let finish_raw: string | null = null;
  let usage: Usage | null = null;
  let served_as: unknown;
  let closed = false;

  const show = (increment: string): void => {
    text += increment;
    onText(increment);
  };

  /** The thinking's two names may stand side by side with the same words. */
  function takeDelta(delta: Fields): void {
    const { content, reasoning_content, reasoning, tool_calls, function_call } = delta;
    const thought = typeof reasoning_content === 'string' && reasoning_content !== '' ? reasoning_content : reasoning;
    if (typeof thought === 'string') thinking += thought;
    for (const part of partsOf(content)) {
      if (part.thinks) thinking += part.text;
      else show(assembler.take(part.text));
    }
    if (typeof delta['refusal'] === 'string') refusal += delta['refusal'];
    fragments.take(listOf(tool_calls));
    if (function_call !== undefined && function_call !== null) fragments.take([{ index: 0, function: function_call }]);
  }

  /** A whole message behind what came in deltas repeats it. */
  function came(): boolean {
    return text !== '' || thinking !== '' || fragments.calls().length > 0;
  }

  function takeChunk(chunk: Fields): boolean {
    const choices: unknown = chunk['choices'];
    // One is asked for; a server that sends several would mix two replies.
    const choice = Array.isArray(choices) ? asObject(choices.find((each: unknown) => (asObject(each)['index'] ?? 0) === 0)) : {};
    const { finish_reason } = choice;
    takeDelta(asObject(choice['delta'] ?? (came() ? {} : choice['message'])));
    // Some write the missing word out.
    if (typeof finish_reason === 'string' && finish_reason !== '' && finish_reason !== 'null') finish_raw ??= finish_reason;
    usage = readUsage(chunk['usage']) ?? usage;
    served_as ??= chunk['model'];
    return choices !== undefined || chunk['usage'] !== undefined;
  }

  function outcome(): ProviderOutcome {
    show(assembler.end());
    const calls = fragments.calls().map((call) => readCall(call, request));
    const raw = finish_raw ?? '';
    const cost = usage ?? usageOf({ input: 0, output: 0 });
    if (isBlocked(raw)) return failedReply('content_blocked', 'the reply was stopped by the content filter', cost);
    if (raw === 'insufficient_system_resource') return failedReply('overloaded', 'the server ran out of resources in the middle of the reply', cost);
    if (raw === 'error') return failedReply('server_error', 'the server ended the reply with an error', cost);
    if (refusal !== '' && text.trim() === '' && calls.length === 0) return failedReply('content_blocked', `the model refused: ${refusal}`, cost);
    return judged({ text, thinking: thinking.toWellFormed(), provider_data: null, calls }, { finish_raw: raw, cut: isCut(raw), usage: cost, served_as }, request);
  }

  return {
    take: ({ name, data, value }) => {
      if (value === null) {
        closed = true;
        return false;
      }
      // Behind the reason nothing can be lost any more: an error there is of no reply.
      if (isError(name, value)) {
        if (finish_raw !== null) return false;
        throw new StreamedError(data);
      }
      return takeChunk(value);
    },
    state: () => (finish_raw === null ? 'open' : closed ? 'closed' : 'finished'),
    outcome,
    usage: () => usage,
  };
}

/** In a frame of its own, under its event's name, beside empty choices, or flat. */
function isError(name: string, value: Fields): boolean {
  return name === 'error' || saysError(value) || value['object'] === 'error' || value['type'] === 'error';
}

/** Cached tokens are among the prompt's; DeepSeek counts them under a name of its own. */
function readUsage(raw: unknown): Usage | null {
  if (raw === null || typeof raw !== 'object') return null;
  const { prompt_tokens, prompt_tokens_details, prompt_cache_hit_tokens } = raw as Fields;
  return usageOf({ input: prompt_tokens, output: outputOf(raw as Fields), cached: asObject(prompt_tokens_details)['cached_tokens'] ?? prompt_cache_hit_tokens });
}

/** Thinking is among the reply's tokens; at xAI it stands beside them, as the total tells. */
function outputOf({ prompt_tokens, completion_tokens, total_tokens, completion_tokens_details }: Fields): number {
  const said = count(completion_tokens);
  const thought = count(asObject(completion_tokens_details)['reasoning_tokens']);
  return count(prompt_tokens) + said + thought <= count(total_tokens) ? said + thought : said;
}
