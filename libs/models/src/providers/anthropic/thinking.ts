/**
 * A reply's thinking as it must go back to the model that thought it: unchanged, signed, in its place among text and calls. The log
 * keeps the words in the reply; `provider_data` keeps whose they are, the signatures, and where each block stood.
 */
import type { Message } from '@treadle/core';

export type AnthropicThinking =
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'redacted_thinking'; readonly data: string };

/** Which model is asked: its configured name, and the provider's. Signatures hold for no other. */
export interface Origin { readonly name: string; readonly model: string }

/** One block of a reply; lengths are in characters (UTF-16) of the reply's thinking and text. */
export type LaidBlock =
  | { readonly type: 'thinking'; readonly length: number; readonly signature: string }
  | { readonly type: 'redacted_thinking'; readonly data: string }
  | { readonly type: 'text'; readonly length: number }
  | { readonly type: 'call' };

/** What `provider_data` holds. */
export interface Layout { readonly wire: 'anthropic'; readonly model: string; readonly blocks: readonly LaidBlock[] }

/** Null where there is no thinking to keep. */
export function layoutOf(model: string, blocks: readonly LaidBlock[]): Layout | null {
  return blocks.some((block) => block.type === 'thinking' || block.type === 'redacted_thinking') ? { wire: 'anthropic', model, blocks } : null;
}

export type PlacedBlock = AnthropicThinking | { readonly type: 'text'; readonly text: string };

/** Thinking and text in their order; the calls stand behind them. Null where the thinking is another model's, or no longer fits the reply: it was shortened, or its calls were taken out. */
export function laidOut(message: Extract<Message, { role: 'assistant' }>, origin: Origin): readonly PlacedBlock[] | null {
  const layout = message.provider_data;
  if (!isLayout(layout) || message.model !== origin.name || layout.model !== origin.model) return null;
  let thinking = 0;
  let text = 0;
  let calls = 0;
  const placed = layout.blocks.flatMap((block): readonly PlacedBlock[] => {
    switch (block.type) {
      case 'thinking': return [{ type: 'thinking', thinking: message.thinking.slice(thinking, thinking += block.length), signature: block.signature }];
      case 'redacted_thinking': return [{ type: 'redacted_thinking', data: block.data }];
      case 'text': return [{ type: 'text', text: message.text.slice(text, text += block.length) }];
      case 'call': calls += 1; return [];
    }
  });
  const fits = thinking === message.thinking.length && text === message.text.length && calls === message.calls.length;
  return fits ? placed : null;
}

function isLayout(value: unknown): value is Layout {
  return value !== null && typeof value === 'object' && (value as Partial<Layout>).wire === 'anthropic' && Array.isArray((value as Partial<Layout>).blocks);
}
