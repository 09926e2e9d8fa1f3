/**
 * Puts a stream of Messages events together: blocks by their index, counts from its beginning and its end.
 *
 * States: open → closed (`message_stop`). Events and blocks of unknown kinds are passed over.
 */
import type { ModelRequest, Usage } from '@treadle/core';
import { StreamedError } from '../../http/stream-fault.ts';
import type { EventCollector } from '../../http/streamed-call.ts';
import type { ProviderOutcome } from '../../provider.ts';
import { asObject, count, failedReply, judged, readCall, usageOf } from '../../reply/judge.ts';
import { createTextAssembler } from '../../reply/text-assembler.ts';
import { withOwnNames } from '../../request/argument-names.ts';
import { plainSchema } from '../../request/plain-schema.ts';
import { layoutOf, type LaidBlock } from './thinking.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A block in the making; `text` is what its deltas have brought. */
interface Block { readonly kind: string; readonly start: Fields; text: string; signature: string }

export function createReplyCollector(request: ModelRequest, onText: (increment: string) => void): EventCollector {
  const assembler = createTextAssembler();
  const blocks = new Map<unknown, Block>();
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

  function begin(index: unknown, start: Fields): void {
    const block: Block = { kind: text(start['type']), start, text: '', signature: text(start['signature']) };
    blocks.set(index, block);
    // By the book a block begins empty; what stands in it all the same counts.
    if (block.kind === 'text') take(block, 'text', text(start['text']));
    if (block.kind === 'thinking') take(block, 'thinking', text(start['thinking']));
  }

  function take(block: Block, kind: string, increment: string): void {
    if (block.kind !== kind || increment === '') return;
    const shown = kind === 'text' ? assembler.take(increment) : increment;
    block.text += shown;
    if (kind === 'text') onText(shown);
  }

  function takeDelta(block: Block | undefined, delta: Fields): void {
    if (block === undefined) return;
    switch (delta['type']) {
      case 'text_delta': return take(block, 'text', text(delta['text']));
      case 'thinking_delta': return take(block, 'thinking', text(delta['thinking']));
      case 'input_json_delta': return take(block, 'tool_use', text(delta['partial_json']));
      case 'signature_delta': block.signature += text(delta['signature']);
    }
  }

  /** What was held back of a character that never became whole. */
  function endText(block: Block | undefined): void {
    if (block?.kind !== 'text') return;
    const rest = assembler.end();
    block.text += rest;
    onText(rest);
  }

  function takeEvent(type: unknown, value: Fields): boolean {
    switch (type) {
      case 'message_start': {
        takeUsage(asObject(value['message'])['usage']);
        served_as = asObject(value['message'])['model'];
        return true;
      }
      case 'content_block_start': begin(value['index'], asObject(value['content_block'])); return true;
      case 'content_block_delta': takeDelta(blocks.get(value['index']), asObject(value['delta'])); return true;
      case 'content_block_stop': endText(blocks.get(value['index'])); return true;
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
      if (name === 'error' || type === 'error' || (value['error'] !== undefined && value['error'] !== null)) throw new StreamedError(data);
      return takeEvent(type, value);
    },
    state: () => (closed ? 'closed' : 'open'),
    outcome: () => judge([...blocks.values()], { ending, usage: usageFrom(counts ?? {}), served_as }, request),
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
  const calls = blocks.filter((block) => block.kind === 'tool_use').map(({ start, text: json }) => withOwnNames(
    readCall({ id: start['id'], name: start['name'], args: json === '' ? start['input'] : json }, request), request.tools, (tool) => plainSchema(tool.input_schema)));
  const said = joined('text');
  // The log keeps no blank text.
  const provider_data = layoutOf(request.model.model, blocks.filter((block) => block.kind !== 'text' || said.trim() !== '').flatMap(laid));
  return judged({ text: said, thinking: joined('thinking').toWellFormed(), provider_data, calls }, { finish_raw, cut: finish_raw === 'max_tokens', usage, served_as }, request);
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

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
