/** What of a session's transcript a new run starts from. */
import { withoutImages } from './images.ts';
import type { Message } from './message.ts';
import { messageBytes } from './request.ts';

/** Bytes; what the window cannot hold is compacted anyway. */
const mostBytes = 512 * 1024;

/** The newest messages within the bound, from a user message on, every call with its results. */
export function boundedHistory(messages: readonly Message[]): readonly Message[] {
  let bytes = 0;
  let start = messages.length;
  for (let index = messages.length - 1; index >= 0 && bytes <= mostBytes; index--) {
    bytes += messageBytes(messages[index] as Message);
    if (bytes <= mostBytes && messages[index]?.role === 'user') start = index;
  }
  return messages.slice(start).map(forAnotherRun);
}

/** Images of results lie with the run that made them, and go when it is deleted: another run cannot rely on them. */
export function forAnotherRun(message: Message): Message {
  if (message.role !== 'tool' || message.images === undefined) return message;
  const { images: _, ...rest } = message;
  return { ...rest, content: withoutImages(message, '[Its images belong to an earlier run and are not shown.]') };
}
