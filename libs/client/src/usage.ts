/** What runs have used, as `GET /v1/usage` answers it. */
export interface UsageSums {
  /** That have ended; by model, those that have asked it. */
  readonly runs: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  /** Part of `input_tokens`. */
  readonly cached_tokens: number;
  /** Of attempts whose reply was not used; in no other count. */
  readonly wasted_tokens: number;
  readonly cost_usd: number;
  /** Part of `cost_usd`. */
  readonly wasted_cost_usd: number;
}

export type UsageGroup = 'model' | 'agent' | 'day';

/** Whole UTC days, as ISO 8601 dates or times within them; both ends included. */
export interface UsageRequest { readonly group_by?: UsageGroup; readonly from?: string; readonly to?: string }

export interface UsageReport {
  readonly from: string;
  readonly to: string;
  readonly group_by: UsageGroup;
  /** Each with the one field that `group_by` names. */
  readonly data: readonly (UsageSums & { readonly model?: string; readonly agent?: string; readonly day?: string })[];
  readonly total: UsageSums;
}
