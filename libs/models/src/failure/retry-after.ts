/**
 * When a provider says to come again, in all the forms they use. What cannot be read, or is absurd, is null and never NaN:
 * a NaN slips through every comparison and makes a timer fire at once.
 */

/** Seconds: monthly quotas exist, waits beyond that do not. */
const longestWaitS = 31 * 24 * 3600;

export interface RetryAfterSources {
  readonly headers: Headers | null;
  /** The error's body or text. */
  readonly text: string;
  /** Epoch milliseconds. */
  readonly nowMs: number;
}

/** Seconds from now, 0 to 31 days; the first source that can be read counts: `retry-after-ms`, `retry-after`, the words, used-up budgets. */
export function retryAfterS(sources: RetryAfterSources): number | null {
  const { headers, text, nowMs } = sources;
  return sane(decimal(headers?.get('retry-after-ms') ?? ''), 1 / 1000)
    ?? header(headers?.get('retry-after') ?? '', nowMs)
    ?? words(text, nowMs)
    ?? usedUp(headers, nowMs);
}

/** Budgets that vendors count in headers of their own: `reset` is "1s", "6m0s" or a date. */
const budgets = [
  ...['requests', 'tokens'].map((what) => ({ remaining: `x-ratelimit-remaining-${what}`, reset: `x-ratelimit-reset-${what}` })),
  ...['requests', 'tokens', 'input-tokens', 'output-tokens'].map((what) => ({ remaining: `anthropic-ratelimit-${what}-remaining`, reset: `anthropic-ratelimit-${what}-reset` })),
];

/** Until the last of the budgets that have nothing left is filled again. */
function usedUp(headers: Headers | null, nowMs: number): number | null {
  const waits = budgets.filter(({ remaining }) => headers?.get(remaining)?.trim() === '0').map(({ reset }) => span(headers?.get(reset)?.trim() ?? '', nowMs)).filter((wait) => wait !== null);
  return waits.length === 0 ? null : Math.max(...waits);
}

function span(value: string, nowMs: number): number | null {
  return /^(\d{1,9}(\.\d{1,9})?(ms|[smhd])){1,4}$/.test(value) ? sane(total(value), 1) : date(value, nowMs);
}

function header(value: string, nowMs: number): number | null {
  const trimmed = value.trim();
  return sane(decimal(trimmed), 1) ?? date(trimmed, nowMs);
}

function decimal(value: string): number | null {
  return /^\d{1,15}(\.\d{1,9})?$/.test(value.trim()) ? Number(value) : null;
}

/** Only the shapes of HTTP and ISO dates: the platform's parser also makes dates of "5 minutes". */
function date(value: string, nowMs: number): number | null {
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? .*\d|^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(value)) return null;
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : sane(Math.max(0, at - nowMs), 1 / 1000);
}

const unitS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400 };
const amount = String.raw`\d{1,9}(?:\.\d{1,9})?\s{0,2}(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])`;
const waitWords = new RegExp(
  String.raw`(?:(?:try again|retry|retrying|resets?|available again|wait)(?: (?:in|after|for|about|at least)){0,3}:?\s{1,2})(${amount}(?:(?:,| and)?\s{0,2}${amount}){0,3})`, 'i');
/** Compact forms have no boundary between the units ("7m12s"), so this one looks at digits instead. */
const compactWords = /(?:try again|retry|resets?|available again|wait)(?: (?:in|after|for|about|at least)){0,3}:?\s{1,2}((?:\d{1,9}(?:\.\d{1,9})?(?:ms|[smhd])){2,4})(?![a-z0-9])/i;
const parts = /(\d{1,9}(?:\.\d{1,9})?)\s{0,2}(milliseconds?|ms|[smhd])/gi;

function words(text: string, nowMs: number): number | null {
  const found = compactWords.exec(text)?.[1] ?? waitWords.exec(text)?.[1];
  if (found !== undefined) return sane(total(found), 1);
  const field = /"(?:resets_in_seconds|retry_after|retry_after_seconds)"\s{0,4}:\s{0,4}"?(\d{1,12}(?:\.\d{1,9})?)/.exec(text)?.[1];
  if (field !== undefined) return sane(Number(field), 1);
  const at = /resets?[ _]at"?\s{0,4}:?\s{0,4}"?(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d))/i.exec(text)?.[1];
  if (at !== undefined) return date(at, nowMs);
  // Seconds or milliseconds since 1970; which of them, its size says.
  const epoch = /"(?:resets?_at|x-ratelimit-reset)"\s{0,4}:\s{0,4}"?(\d{10}|\d{13})(?!\d)/i.exec(text)?.[1];
  return epoch === undefined ? null : sane(Math.max(0, Number(epoch) * (epoch.length === 10 ? 1000 : 1) - nowMs), 1 / 1000);
}

function total(phrase: string): number {
  let seconds = 0;
  for (const [, count, unit] of phrase.matchAll(parts)) {
    const name = (unit ?? 's').toLowerCase();
    seconds += Number(count) * (unitS[name.startsWith('ms') || name.startsWith('milli') ? 'ms' : name.charAt(0)] ?? 0);
  }
  return seconds;
}

function sane(value: number | null, factor: number): number | null {
  if (value === null) return null;
  const seconds = Math.round(value * factor * 1000) / 1000;
  return Number.isFinite(seconds) && seconds >= 0 && seconds <= longestWaitS ? seconds : null;
}
