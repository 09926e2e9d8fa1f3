/** Tokens and money of a run, a turn or a reply. */

export interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cached_tokens: number;
  /** Spent on attempts whose reply was not used. */
  readonly wasted_tokens: number;
  readonly cost_usd: number;
}

export const noUsage: Usage = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, wasted_tokens: 0, cost_usd: 0 };

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    input_tokens: a.input_tokens + b.input_tokens,
    output_tokens: a.output_tokens + b.output_tokens,
    cached_tokens: a.cached_tokens + b.cached_tokens,
    wasted_tokens: a.wasted_tokens + b.wasted_tokens,
    cost_usd: a.cost_usd + b.cost_usd,
  };
}

/** The same tokens, counted as waste: what a failed attempt cost. */
export function asWaste(usage: Usage): Usage {
  return { ...noUsage, wasted_tokens: usage.input_tokens + usage.output_tokens, cost_usd: usage.cost_usd };
}
