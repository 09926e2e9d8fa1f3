/** Tokens and money of a run, a turn or a reply. */

export interface Usage {
  /** Of the prompt, those that came from a provider's cache included. */
  readonly input_tokens: number;
  /** Of the reply, its thinking included. */
  readonly output_tokens: number;
  /** Those of `input_tokens` that came from a provider's cache. */
  readonly cached_tokens: number;
  /** Spent on attempts whose reply was not used: in no other count. */
  readonly wasted_tokens: number;
  /** Of all of them, the wasted ones included. */
  readonly cost_usd: number;
  /** What of `cost_usd` was wasted; absent = nothing. */
  readonly wasted_cost_usd?: number;
}

/** US dollars per million tokens. */
export interface ModelPrice {
  readonly input_per_mtok: number;
  readonly output_per_mtok: number;
  /** Of input from a provider's cache; absent = as other input. */
  readonly cached_input_per_mtok?: number;
}

export const noUsage: Usage = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, wasted_tokens: 0, cost_usd: 0 };

export function addUsage(a: Usage, b: Usage): Usage {
  return combined(a, b, (x, y) => x + y);
}

/** What of `whole` is not `part`'s. Money is a sum of fractions: what rounding leaves below zero is nothing. */
export function withoutUsage(whole: Usage, part: Usage): Usage {
  return combined(whole, part, (x, y) => Math.max(0, x - y));
}

function combined(a: Usage, b: Usage, with_: (x: number, y: number) => number): Usage {
  const wasted_cost_usd = with_(a.wasted_cost_usd ?? 0, b.wasted_cost_usd ?? 0);
  return {
    input_tokens: with_(a.input_tokens, b.input_tokens),
    output_tokens: with_(a.output_tokens, b.output_tokens),
    cached_tokens: with_(a.cached_tokens, b.cached_tokens),
    wasted_tokens: with_(a.wasted_tokens, b.wasted_tokens),
    cost_usd: with_(a.cost_usd, b.cost_usd),
    ...(wasted_cost_usd > 0 ? { wasted_cost_usd } : {}),
  };
}

/** The same tokens, counted as waste: what a failed attempt cost. */
export function asWaste({ input_tokens, output_tokens, cost_usd }: Usage): Usage {
  return { ...noUsage, wasted_tokens: input_tokens + output_tokens, cost_usd, ...(cost_usd > 0 ? { wasted_cost_usd: cost_usd } : {}) };
}

/** US dollars of one reply. */
export function costOf({ input_tokens, output_tokens, cached_tokens }: Usage, { input_per_mtok, output_per_mtok, cached_input_per_mtok = input_per_mtok }: ModelPrice): number {
  const cached = Math.min(cached_tokens, input_tokens);
  return ((input_tokens - cached) * input_per_mtok + cached * cached_input_per_mtok + output_tokens * output_per_mtok) / 1e6;
}
