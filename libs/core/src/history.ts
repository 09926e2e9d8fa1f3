/** What of a session's transcript a new run starts from. */
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
  return messages.slice(start);
}
