/**
 * When a cron expression is due, in a time zone.
 *
 * 1  The same expression and zone have the same times, whoever asks and in whichever order: nothing but the clock of a zone decides.
 * 2  A time of day that a zone's clock skips is due once, at the moment of the skip, and one that it shows twice is due once, the first time. Of an
 *    expression with a wildcard or a step in its minute or its hour, real time counts: it goes on in its rhythm, whatever the clock shows.
 * 3  No two times lie closer together than a minute.
 */
export interface CronRule {
  /** The first time after `after_ms`, epoch milliseconds; null where there is none any more. */
  next(after_ms: number): number | null;
  /** The last time at or before `until_ms`; null where there was none. */
  latest(until_ms: number): number | null;
}

export type CronReading =
  | { readonly type: 'rule'; readonly rule: CronRule }
  /** In words for people. */
  | { readonly type: 'invalid'; readonly field: 'cron' | 'timezone'; readonly problem: string };

export type CronTimes = (cron: string, timezone: string) => CronReading;
