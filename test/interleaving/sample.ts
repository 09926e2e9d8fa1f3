/** Some of many scenarios, drawn by a seed that is printed on failure. */

/** Mulberry32: the same seed draws the same scenarios. */
export function sample<T>(scenarios: readonly T[], { seed, each }: { readonly seed: number; readonly each: number }): T[] {
  let state = seed;
  const random = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  return Array.from({ length: each }, () => scenarios[Math.floor(random() * scenarios.length)]!);
}
