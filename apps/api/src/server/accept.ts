/** Which of the forms that a route offers a client wants, by its `Accept` header (RFC 9110, section 12.5.1). */

/**
 * The offered type with the highest weight; of equal ones the one that is named more exactly. `offered` goes from the plainest to
 * the most special: who takes anything gets the first of equals, who names several exactly gets the last. Null when there is no
 * header, or it takes none of them.
 */
export function preferredType<T extends string>(accept: string | undefined, offered: readonly T[]): T | null {
  const ranges = (accept ?? '').split(',').map(rangeOf);
  let best: (MediaRange & { readonly type: T }) | null = null;
  for (const type of offered) {
    const range = ranges.filter((each) => each.covers(type)).sort((a, b) => b.exactness - a.exactness)[0];
    if (range === undefined || range.weight === 0) continue;
    if (best === null || range.weight > best.weight || (range.weight === best.weight && isCloser(range, best))) best = { type, ...range };
  }
  return best?.type ?? null;
}

interface MediaRange { readonly weight: number; readonly exactness: 0 | 1 | 2; readonly covers: (type: string) => boolean }

function isCloser(range: MediaRange, best: MediaRange): boolean {
  return range.exactness > best.exactness || (range.exactness === best.exactness && range.exactness === 2);
}

function rangeOf(text: string): MediaRange {
  const [name = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  const weight = /^q\s*=\s*([01](?:\.\d{0,3})?)$/.exec(parameters.find((each) => /^q\s*=/.test(each)) ?? 'q=1')?.[1];
  const found = { weight: weight === undefined ? 0 : Math.min(1, Number(weight)) };
  if (name === '*/*') return { ...found, exactness: 0, covers: () => true };
  if (name.endsWith('/*')) return { ...found, exactness: 1, covers: (type) => type.startsWith(name.slice(0, -1)) };
  return { ...found, exactness: 2, covers: (type) => type === name };
}
