/** For how long whom is not asked, by what it said. */
import type { ErrorType } from '@treadle/core';

export interface BenchTime {
  /** A key, or a model for all its keys. */
  readonly whom: 'credential' | 'model';
  /** Seconds; what the provider says comes first. */
  readonly for_s: number;
  /** Whether a run may wait for its end; without, it is asked last, since only a person mends it. */
  readonly waitable: boolean;
}

const benchTimes: Readonly<Partial<Record<ErrorType, BenchTime>>> = {
  auth_invalid: { whom: 'credential', for_s: 3600, waitable: false },
  access_denied: { whom: 'credential', for_s: 600, waitable: false },
  billing_exhausted: { whom: 'credential', for_s: 3600, waitable: false },
  quota_window: { whom: 'credential', for_s: 300, waitable: true },
  rate_limited: { whom: 'credential', for_s: 10, waitable: true },
  model_not_found: { whom: 'model', for_s: 300, waitable: false },
};

/** Seconds: as long as a provider may ask. */
const longestS = 7 * 24 * 3600;

export function benchTime(error_type: ErrorType): BenchTime | null {
  return benchTimes[error_type] ?? null;
}

/**
 * Ms for which a failed call benches its key or model; 0 = not at all. A burst is over soon: where there is no other key, asking is
 * how one learns that it is over.
 */
export function benchMs(failure: { readonly error_type: ErrorType; readonly retry_after_s: number | null }, { otherKeys }: { readonly otherKeys: boolean }): number {
  const time = benchTime(failure.error_type);
  if (time === null) return 0;
  const burst = failure.error_type === 'rate_limited' && (failure.retry_after_s ?? 0) <= 60;
  if (burst && !otherKeys) return 0;
  return Math.min(failure.retry_after_s ?? time.for_s, longestS) * 1000;
}
