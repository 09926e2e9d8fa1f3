/**
 * How large a reply may become on its wire, so that a server which never ends does not fill the memory. Models say one token per line,
 * and what a line has around it is many times that: it counts for little, or a long answer could never be read.
 *
 * Owns: the counts of one reply.
 */
import { UnreadableReply } from './stream-fault.ts';

/** Bytes of a line that are taken for its frame. */
const frame = 512;
/** Of lines that are frames alone, as of any, a part counts all the same. */
const leastPart = 1 / 8;

export interface ReplySize {
  /** Throws `UnreadableReply` when it is too much. */
  readonly add: (chunk: Uint8Array) => void;
}

/** `most`: bytes of a reply without frames. */
export function createReplySize(most: number): ReplySize {
  let bytes = 0;
  let lines = 0;
  return {
    add: (chunk) => {
      bytes += chunk.length;
      for (const byte of chunk) if (byte === 0x0a || byte === 0x0d) lines += 1;
      if (Math.max(bytes * leastPart, bytes - frame * lines) > most) throw new UnreadableReply('(the reply is too large)');
    },
  };
}
