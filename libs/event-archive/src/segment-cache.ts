/**
 * Segments that were read lately: a log is read page by page, and a page is a small part of a segment.
 * Segments never change, so what was read once stays right; whether one is still there is asked before, by a listing.
 */
export interface SegmentCache {
  /** The lines under a key, by `read` where they are not known; null where there is no such object. */
  lines(key: string, read: () => Promise<readonly string[] | null>): Promise<readonly string[] | null>;
}

/** Keeps about so many characters. A read that fails is not remembered; several readers at once share one. */
export function createSegmentCache(maxChars: number): SegmentCache {
  const kept = new Map<string, { readonly lines: readonly string[]; readonly chars: number }>();
  const reading = new Map<string, Promise<readonly string[] | null>>();
  let chars = 0;

  function keep(key: string, lines: readonly string[]): void {
    const own = lines.reduce((sum, line) => sum + line.length, 0);
    if (own > maxChars) return;
    kept.set(key, { lines, chars: own });
    chars += own;
    for (const [oldest, entry] of kept) {
      if (chars <= maxChars) return;
      kept.delete(oldest);
      chars -= entry.chars;
    }
  }

  return {
    async lines(key, read) {
      const known = kept.get(key);
      if (known !== undefined) {
        // Used last: forgotten last.
        kept.delete(key);
        kept.set(key, known);
        return known.lines;
      }
      const under = reading.get(key) ?? read().then((lines) => {
        if (lines !== null) keep(key, lines);
        return lines;
      }).finally(() => reading.delete(key));
      reading.set(key, under);
      return under;
    },
  };
}
