/**
 * Images that a model refuses for their size: sent smaller, then smaller again, then taken out with a note in their place.
 */
import type { TranscriptEdit } from './events.ts';
import type { Attachment, KeptMessage, Message } from './message.ts';

/** Pixels of the longer side; what most models look at anyway, then half of it. */
const sides = [1568, 768] as const;

/** The next smaller size; null when there is none. */
export function nextImageSide(now: number | null): number | null {
  return sides.find((side) => now === null || side < now) ?? null;
}

/** The kinds that every provider with images takes. */
const imageTypes: readonly string[] = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

export function isImage({ media_type }: Pick<Attachment, 'media_type'>): boolean {
  return imageTypes.includes(media_type);
}

/** Bytes of each image of a message, roughly. */
function imageSizes(message: Message): readonly number[] {
  if (message.role === 'tool') return (message.images ?? []).map((image) => image.bytes);
  if (message.role !== 'user' || typeof message.content === 'string') return [];
  return message.content.flatMap((part) => part.type === 'image' ? [part.data.length * 3 / 4] : []);
}

export function hasImages(messages: readonly Message[]): boolean {
  return messages.some((message) => imageSizes(message).length > 0);
}

/** What stands for a message once its images are gone. */
export function withoutImages(message: Message, note: string): string {
  if (message.role === 'assistant') return message.text;
  if (typeof message.content !== 'string') return message.content.map((part) => part.type === 'text' ? part.text : note).join('\n');
  return `${message.content}\n${note}`;
}

/** Takes out the largest image, or every one of the message that holds it: an edit names messages. */
export function withoutLargestImage(messages: readonly KeptMessage[]): TranscriptEdit {
  const sizes = messages.map((message) => Math.max(0, ...imageSizes(message)));
  const largest = messages[sizes.indexOf(Math.max(0, ...sizes))];
  if (largest === undefined || !hasImages([largest])) return { removed: [], replaced: [] };
  return { removed: [], replaced: [{ seq: largest.seq, by: withoutImages(largest, '[An image was taken out: the model refused it for its size.]') }] };
}
