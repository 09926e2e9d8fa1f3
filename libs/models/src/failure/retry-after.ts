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
  /** The status says that something is used up: then a budget's reset counts although nothing says how much is left of it. */
  readonly limited?: boolean;
}

const inMs = ['retry-after-ms', 'x-retry-after-ms', 'x-ms-retry-after-ms'];
const inS = ['retry-after', 'x-retry-after'];

/**
 * Seconds from now, 0 to 31 days; the first source that says more than "now" counts, and else "now", where one says that: the headers
 * in milliseconds, those in seconds, the words, used-up budgets.
 */
export function retryAfterS(sources: RetryAfterSources): number | null {
  const { headers, text, nowMs, limited = false } = sources;
  const said = [
    ...inMs.map((name) => sane(decimal(headers?.get(name) ?? ''), 1 / 1000)), ...inS.map((name) => header(headers?.get(name) ?? '', nowMs)),
    words(text, nowMs), usedUp(headers, { nowMs, limited }),
  ].filter((each) => each !== null);
  return said.find((each) => each > 0) ?? said[0] ?? null;
}

/** Budgets that vendors count in headers of their own: `reset` is "1s", "6m0s", seconds, or a time. */
const budgets = [
  ...['-requests', '-tokens', ''].map((what) => ({ remaining: `x-ratelimit-remaining${what}`, reset: `x-ratelimit-reset${what}` })),
  { remaining: 'x-ratelimit-remaining', reset: 'x-ratelimit-reset-after' }, { remaining: 'ratelimit-remaining', reset: 'ratelimit-reset' },
  ...['requests', 'tokens', 'input-tokens', 'output-tokens'].map((what) => ({ remaining: `anthropic-ratelimit-${what}-remaining`, reset: `anthropic-ratelimit-${what}-reset` })),
];

/** Until the last of the budgets that have nothing left is filled again. */
function usedUp(headers: Headers | null, { nowMs, limited }: { readonly nowMs: number; readonly limited: boolean }): number | null {
  const resets = (unsaid: boolean): number[] => budgets
    .filter(({ remaining }) => (unsaid ? !(headers?.has(remaining) ?? false) : headers?.get(remaining)?.trim() === '0'))
    .map(({ reset }) => span(headers?.get(reset)?.trim() ?? '', nowMs)).filter((wait) => wait !== null);
  // The IETF's one header for it, in its newer and its older form.
  const [, left, wait] = /\b(?:r|remaining)=(\d{1,15})[;,]\s?(?:t|reset)=(\d{1,9})/.exec(headers?.get('ratelimit') ?? '') ?? [];
  // Of a plan's windows of hours and days.
  const plan = headers?.get('anthropic-ratelimit-unified-status') === 'rejected' ? span(headers.get('anthropic-ratelimit-unified-reset')?.trim() ?? '', nowMs) : null;
  const certain = [...resets(false), ...(left === '0' ? [Number(wait)] : []), ...(plan === null ? [] : [plan])];
  const waits = certain.length === 0 && limited ? resets(true) : certain;
  return waits.length === 0 ? null : Math.max(...waits);
}

function span(value: string, nowMs: number): number | null {
  return compact(value) ?? (/^\d{10}(\d{3})?$/.test(value) ? since1970(value, nowMs) : sane(decimal(value), 1)) ?? date(value, nowMs);
}

function compact(value: string): number | null {
  return /^(\d{1,9}(\.\d{1,9})?(ms|[smhd])){1,4}$/.test(value) ? sane(total(value), 1) : null;
}

/** Quoted by some; sent twice, the longer one counts. */
function header(value: string, nowMs: number): number | null {
  const trimmed = value.trim().replace(/^"(.*)"$/, '$1').trim();
  const several = trimmed.split(',').map(decimal).filter((each) => each !== null);
  if (several.length > 0 && several.length === trimmed.split(',').length) return sane(Math.max(...several), 1);
  return compact(trimmed) ?? date(trimmed, nowMs);
}

/** Seconds or milliseconds since 1970; which of them, its size says. */
function since1970(value: string, nowMs: number): number | null {
  return sane(Math.max(0, Number(value) * (value.length === 10 ? 1000 : 1) - nowMs), 1 / 1000);
}

function decimal(value: string): number | null {
  return /^\d{1,15}(\.\d{1,9})?$/.test(value.trim()) ? Number(value) : null;
}

/** Only the shapes of HTTP and ISO dates: the platform's parser also makes dates of "5 minutes". */
function date(value: string, nowMs: number): number | null {
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? .*\d|^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/.test(value)) return null;
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : sane(Math.max(0, at - nowMs), 1 / 1000);
}

const unitS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };
const amount = String.raw`\d{1,9}(?:\.\d{1,9})?\s{0,2}(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?)(?![a-z])`;
const verbs = 'try again|retry|retrying|resets?|renews?|come back|available again|wait';
const waitWords = new RegExp(
  String.raw`(?:(?:${verbs})(?: (?:in|after|for|about|at least)){0,3}:?\s{1,2})(${amount}(?:(?:,| and)?\s{0,2}${amount}){0,3})`, 'i');
/** Compact forms have no boundary between the units ("7m12s"), so this one looks at digits instead. */
const compactWords = new RegExp(String.raw`(?:${verbs})(?: (?:in|after|for|about|at least)){0,3}:?\s{1,2}((?:\d{1,9}(?:\.\d{1,9})?(?:ms|[smhd])){2,4})(?![a-z0-9])`, 'i');
const parts = /(\d{1,9}(?:\.\d{1,9})?)\s{0,2}(milliseconds?|ms|[smhdw])/gi;
/** `retry_after`, `retryAfterMs`, `retryDelay`, `resets_in_seconds`, … with a number, or a number and its unit. */
const waitField = /"(?:retry|resets?|wait)[_-]?(?:after|in|delay|for)[_-]?(seconds?|secs?|s|milliseconds?|millis|ms)?"\s{0,4}:\s{0,4}"?(\d{1,12}(?:\.\d{1,9})?)(ms|[smh](?![a-z]))?/i;
const atWords = /(?:(?:resets?|renews?|try again|retry|available(?: again)?)(?:[ _](?:at|on|after))|until)"?\s{0,4}:?\s{0,4}"?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.]{0,16} ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))/i;

function words(text: string, nowMs: number): number | null {
  const found = compactWords.exec(text)?.[1] ?? waitWords.exec(text)?.[1];
  if (found !== undefined) return sane(total(found), 1);
  const [, named = '', count = '', unit] = waitField.exec(text) ?? [];
  if (count !== '') return sane(Number(count), unitS[unit?.toLowerCase() ?? (/^m/i.test(named) ? 'ms' : 's')] ?? 1);
  const at = atWords.exec(text)?.[1];
  if (at !== undefined) return date(at, nowMs);
  const epoch = /"(?:resets?_at|x-ratelimit-reset)"\s{0,4}:\s{0,4}"?(\d{10}|\d{13})(?!\d)/i.exec(text)?.[1];
  return epoch === undefined ? null : since1970(epoch, nowMs);
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
