/**
 * Images that a model refuses for their size: sent smaller, then smaller again, then taken out with a note in their place.
 */
import type { TranscriptEdit } from './events.ts';
import type { KeptMessage } from './message.ts';

/** Pixels of the longer side; what most models look at anyway, then half of it. */
const sides = [1568, 768] as const;

/** The next smaller size; null when there is none. */
export function nextImageSide(now: number | null): number | null {
  return sides.find((side) => now === null || side < now) ?? null;
}

export function hasImages(messages: readonly KeptMessage[]): boolean {
  return messages.some((message) => message.role === 'user' && typeof message.content !== 'string' && message.content.some((part) => part.type === 'image'));
}

/** Takes out the largest image, or every one of the message that holds it: an edit names messages. */
export function withoutLargestImage(messages: readonly KeptMessage[]): TranscriptEdit {
  let largest: { message: KeptMessage & { role: 'user' }; bytes: number } | null = null;
  for (const message of messages) {
    if (message.role !== 'user' || typeof message.content === 'string') continue;
    const bytes = Math.max(0, ...message.content.map((part) => part.type === 'image' ? part.data.length : 0));
    if (bytes > (largest?.bytes ?? 0)) largest = { message, bytes };
  }
  if (largest === null || typeof largest.message.content === 'string') return { removed: [], replaced: [] };
  const by = largest.message.content.map((part) => part.type === 'text' ? part.text : '[An image was taken out: the model refused it for its size.]').join('\n');
  return { removed: [], replaced: [{ seq: largest.message.seq, by }] };
}
