/**
 * Puts a stream of Messages events together: blocks in the order in which they begin (not every server counts them), counts from its
 * beginning and its end. A whole message, from a server that does not stream, is taken as well.
 *
 * States: open → closed (`message_stop`). Events and blocks of unknown kinds are passed over.
 */
import type { ModelRequest, Usage } from '@treadle/core';
import { StreamedError } from '../../http/stream-fault.ts';
import type { EventCollector } from '../../http/streamed-call.ts';
import type { ProviderOutcome } from '../../provider.ts';
import { asObject, count, failedReply, judged, readCall, usageOf } from '../../reply/judge.ts';
import { isCut, listOf, saysError } from '../../reply/loose.ts';
import { withOwnNames } from '../../request/argument-names.ts';
import { plainSchema } from '../../request/plain-schema.ts';
import { createBlocks, inputOf, text, type Block } from './blocks.ts';
import { layoutOf, type LaidBlock } from './thinking.ts';

type Fields = Readonly<Record<string, unknown>>;

export function createReplyCollector(request: ModelRequest, onText: (increment: string) => void): EventCollector {
  const blocks = createBlocks(onText);
  let counts: Fields | null = null;
  let served_as: unknown;
  let ending: Fields = {};
  let closed = false;

  /** Counts are running totals: what a later event repeats replaces what an earlier one said. */
  function takeUsage(raw: unknown): void {
    if (raw === null || typeof raw !== 'object') return;
    const said = Object.entries(raw).filter(([, value]) => value !== null && value !== undefined);
    counts = { ...counts, ...Object.fromEntries(said) };
  }

  function takeWhole(message: Fields): void {
    takeUsage(message['usage']);
    served_as = message['model'];
    for (const [index, block] of listOf(message['content']).entries()) {
      blocks.begin(index, asObject(block));
      blocks.end(index);
    }
    ending = message;
    closed = text(message['stop_reason']) !== '';
  }

  function takeEvent(type: unknown, value: Fields): boolean {
    switch (type) {
      case 'message_start': {
        takeUsage(asObject(value['message'])['usage']);
        served_as = asObject(value['message'])['model'];
        return true;
      }
      case 'content_block_start': blocks.begin(value['index'], asObject(value['content_block'])); return true;
      case 'message': takeWhole(value); return true;
      case 'content_block_delta': blocks.add(value['index'], asObject(value['delta'])); return true;
      case 'content_block_stop': blocks.end(value['index']); return true;
      case 'message_delta': {
        ending = { ...ending, ...asObject(value['delta']) };
        takeUsage(value['usage']);
        return true;
      }
      case 'message_stop': closed = true; return true;
      default: return false;
    }
  }

  return {
    take: ({ name, data, value }) => {
      if (value === null) return false;
      // Some servers name the event only in its data.
      const type = value['type'] ?? name;
      if (name === 'error' || type === 'error' || saysError(value)) throw new StreamedError(data);
      return takeEvent(type, value);
    },
    state: () => (closed ? 'closed' : 'open'),
    outcome: () => judge(blocks.all(), { ending, usage: usageFrom(counts ?? {}), served_as }, request),
    usage: () => (counts === null ? null : usageFrom(counts)),
  };
}

interface End { readonly ending: Fields; readonly usage: Usage; readonly served_as: unknown }

function judge(blocks: readonly Block[], { ending, usage, served_as }: End, request: ModelRequest): ProviderOutcome {
  const finish_raw = text(ending['stop_reason']);
  if (finish_raw === 'refusal') {
    const { category, explanation } = asObject(ending['stop_details']);
    const why = [category, explanation].filter((each) => typeof each === 'string').join(': ');
    return failedReply('content_blocked', `the model refused${why === '' ? '' : ` (${why})`}`, usage);
  }
  if (finish_raw === 'model_context_window_exceeded') return failedReply('context_overflow', 'the context window is full', usage);
  const joined = (kind: string): string => blocks.filter((block) => block.kind === kind).map((block) => block.text).join('');
  const calls = blocks.filter((block) => block.kind === 'tool_use').map((block) => withOwnNames(
    readCall({ id: block.start['id'], name: block.start['name'], args: inputOf(block) }, request), request.tools, (tool) => plainSchema(tool.input_schema)));
  const said = joined('text');
  // The log keeps no blank text.
  const provider_data = layoutOf(request.model.model, blocks.filter((block) => block.kind !== 'text' || said.trim() !== '').flatMap(laid));
  return judged({ text: said, thinking: joined('thinking').toWellFormed(), provider_data, calls }, { finish_raw, cut: isCut(finish_raw), usage, served_as }, request);
}

function laid(block: Block): readonly LaidBlock[] {
  switch (block.kind) {
    case 'text': return [{ type: 'text', length: block.text.length }];
    case 'thinking': return [{ type: 'thinking', length: block.text.length, signature: block.signature }];
    case 'redacted_thinking': return [{ type: 'redacted_thinking', data: text(block.start['data']) }];
    case 'tool_use': return [{ type: 'call' }];
    default: return [];
  }
}

/** What was read from the cache and what was written to it are parts of the prompt that `input_tokens` leaves out. */
function usageFrom({ input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens }: Fields): Usage {
  const cached = count(cache_read_input_tokens);
  return usageOf({ input: count(input_tokens) + cached + count(cache_creation_input_tokens), output: output_tokens, cached });
}
