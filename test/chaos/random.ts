/** Random numbers that a seed repeats (mulberry32, public domain). */
export interface Random {
  /** From 0 up to 1. */
  (): number;
}

export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** From 0 up to `below`. */
export function pick(random: Random, below: number): number {
  return Math.floor(random() * below);
}

/** `CHAOS_SEED`, or one of the moment; printed, so that a failure can be repeated. */
export function chosenSeed(test: string): number {
  const seed = Number(process.env['CHAOS_SEED'] ?? Date.now() % 1_000_000);
  process.stdout.write(`${test}: CHAOS_SEED=${seed}\n`);
  return seed;
}

/** `small` on every change, `large` where `CHAOS_SCALE=large`. */
export function scaled(sizes: { readonly small: number; readonly large: number }): number {
  return process.env['CHAOS_SCALE'] === 'large' ? sizes.large : sizes.small;
}
