/**
 * An answer that came in pieces, since the output limit cut it: joined without repetition or loss at the seams.
 */

/** The longest repetition that is looked for, characters. */
const maxOverlap = 400;
/** A shorter one may be chance. */
const minOverlap = 12;

/** `next` follows `so_far`; where the model began by repeating the end of what it had said, that is left out once. */
export function joinPieces(so_far: string, next: string): string {
  for (let length = Math.min(maxOverlap, so_far.length, next.length); length >= minOverlap; length--) {
    if (so_far.endsWith(next.slice(0, length))) return so_far + next.slice(length);
  }
  return so_far + next;
}
