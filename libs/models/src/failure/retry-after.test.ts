import { describe, expect, it } from 'vitest';
import { retryAfterS } from './retry-after.ts';

const nowMs = Date.parse('2026-03-04T05:06:07.000Z');

function fromHeaders(headers: Record<string, string>): number | null {
  return retryAfterS({ headers: new Headers(headers), text: '', nowMs });
}

function fromText(text: string): number | null {
  return retryAfterS({ headers: null, text, nowMs });
}

describe('the headers', () => {
  it.each([
    ['26', 26], ['0', 0], ['1.5', 1.5], [' 7 ', 7], ['Wed, 04 Mar 2026 05:06:11 GMT', 4], ['Wednesday, 04-Mar-26 05:06:11 GMT', 4],
    ['2026-03-04T05:06:11Z', 4], ['Wed, 04 Mar 2026 05:00:00 GMT', 0], ['4s', 4], ['2m', 120], ['"4"', 4], ['4, 7', 7],
  ])('retry-after: %s is %d s', (value, expected) => {
    expect(fromHeaders({ 'retry-after': value })).toBe(expected);
  });

  it.each(['soon', '-5', 'NaN', 'Infinity', '1e9', '', '5 minutes', '99999999999', '1'.repeat(400), 'Wed, 99 Foo 2026 05:06:11 GMT', 'Wed, 04 Mar 2099 05:06:11 GMT', '0x10'])(
    'retry-after: "%s" says nothing', (value) => {
      expect(fromHeaders({ 'retry-after': value })).toBeNull();
    });

  it('prefer milliseconds, and pass over what cannot be read', () => {
    expect(fromHeaders({ 'retry-after-ms': '120', 'retry-after': '1' })).toBe(0.12);
    expect(fromHeaders({ 'retry-after-ms': 'x', 'retry-after': '1' })).toBe(1);
    expect(retryAfterS({ headers: new Headers({ 'retry-after': 'soon' }), text: 'try again in 3s', nowMs })).toBe(3);
  });
});

describe('other headers', () => {
  it.each([['x-retry-after', '4'], ['x-retry-after-ms', '4000'], ['x-ms-retry-after-ms', '4000'], ['ratelimit', '"default";r=0;t=4'], ['ratelimit', 'limit=100, remaining=0, reset=4']])('%s: %s', (name, value) => {
    expect(fromHeaders({ [name]: value })).toBe(4);
  });

  it('that say "now" stand behind what says a time', () => {
    expect(retryAfterS({ headers: new Headers({ 'retry-after': '0' }), text: '{"resets_in_seconds":2820}', nowMs })).toBe(2820);
    expect(retryAfterS({ headers: new Headers({ 'retry-after': 'Wed, 04 Mar 2026 05:00:00 GMT' }), text: 'try again in 3s', nowMs })).toBe(3);
    expect(retryAfterS({ headers: new Headers({ 'retry-after': '0' }), text: '', nowMs })).toBe(0);
  });

  it.each([['x-ratelimit-reset', '1772600777'], ['x-ratelimit-reset', '1772600777000'], ['x-ratelimit-reset', '10'], ['x-ratelimit-reset-after', '10'], ['ratelimit-reset', '10'], ['x-ratelimit-reset-requests', '10s']])(
    '%s: %s counts without a remainder only where the status says that something is used up', (name, value) => {
      expect(retryAfterS({ headers: new Headers({ [name]: value }), text: '', nowMs, limited: true })).toBe(10);
      expect(fromHeaders({ [name]: value })).toBeNull();
      expect(retryAfterS({ headers: new Headers({ [name]: value, [name.replace('reset-after', 'reset').replace('reset', 'remaining')]: '5' }), text: '', nowMs, limited: true })).toBeNull();
    });
});

describe('budgets that the headers count', () => {
  it.each([
    [{ 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '6m0s' }, 360], [{ 'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '120ms' }, 0.12],
    [{ 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '1s', 'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '9s' }, 9],
    [{ 'anthropic-ratelimit-input-tokens-remaining': '0', 'anthropic-ratelimit-input-tokens-reset': '2026-03-04T05:07:07Z' }, 60],
    [{ 'x-ratelimit-remaining-requests': '5', 'x-ratelimit-reset-requests': '6m0s' }, null], [{ 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': 'soon' }, null],
    [{ 'x-ratelimit-remaining-requests': '0' }, null],
    [{ 'anthropic-ratelimit-unified-status': 'rejected', 'anthropic-ratelimit-unified-reset': String(nowMs / 1000 + 2820) }, 2820],
    [{ 'anthropic-ratelimit-unified-status': 'allowed', 'anthropic-ratelimit-unified-reset': String(nowMs / 1000 + 2820) }, null],
  ])('%j is %s', (headers, expected) => {
    expect(fromHeaders(headers as unknown as Record<string, string>)).toBe(expected);
  });

  it('count for less than what was said', () => {
    expect(fromHeaders({ 'retry-after': '3', 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '9s' })).toBe(3);
  });
});

describe('the words', () => {
  it.each([
    ['Please try again in 7m12s.', 432], ['Please try again in 7.02s.', 7.02], ['try again in 120ms', 0.12], ['Try again in 5 minutes', 300],
    ['try again in 1h2m3s', 3723], ['usage limit reached, try again in 47 minutes', 2820], ['Please retry after 26 seconds.', 26],
    ['try again in 1 hour and 30 minutes', 5400], ['Limit resets in 2 hours', 7200], ['please wait 10 seconds', 10],
    ['{"error":"x","resets_in_seconds": 2820}', 2820], ['"retry_after":"12"', 12], ['"resets_at":"2026-03-04T05:06:17Z"', 10], ['{"resets_at":1772600777}', 10], ['"X-RateLimit-Reset":"1772600777000"', 10],
    ['{"retry_after_ms":4000}', 4], ['{"retryAfter":4}', 4], ['{"retryAfterMs":4000}', 4], ['{"retryDelay":"4s"}', 4], ['{"retry-after":4}', 4], ['{"reset_in":4}', 4], ['{"reset_after_seconds":4}', 4], ['{"retry_delay":"2m"}', 120],
    ['try again at 2026-03-04T05:06:17Z', 10], ['available again at 2026-03-04 05:06:17 UTC', 10], ['renews in 1 week', 604_800], ['Come back in 3 hours', 10_800],
  ])('%s', (text, expected) => {
    expect(fromText(text)).toBe(expected);
  });

  it.each(['try again', 'try again in a while', 'wait 5 minnows', 'try again in 999999999 days', 'HTTP 429', 'tokens per minute: 500', 'try again in 5'])(
    '"%s" says nothing', (text) => {
      expect(fromText(text)).toBeNull();
    });

  it('are looked for in bounded time', () => {
    const started = performance.now();
    fromText(`try again in ${'1 s '.repeat(16_000)}`);
    fromText('try again in '.repeat(5000));
    fromText(`try again in ${'9'.repeat(64_000)}`);
    expect(performance.now() - started).toBeLessThan(500);
  });
});
