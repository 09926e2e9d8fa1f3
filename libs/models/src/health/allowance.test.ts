import type { ErrorType } from '@treadle/core';
import { expect, test } from 'vitest';
import { allowanceAfter, comesAgainMs, firstAllowance, roomOf, standsFor } from './allowance.ts';

test.each([
  [10, 0.5, 5], [50, 0.5, 25], [3, 0.5, 1], [1, 0.5, 1], [10, 0, 1], [10, 0.01, 1], [10, 1, 10],
])('of %d slots a model begins with the share %d: %d', (slots, share, calls) => {
  expect(firstAllowance({ slots, share })).toBe(calls);
});

test.each<[number, 'ok' | ErrorType | null, number]>([
  [1, 'ok', 2], [9, 'ok', 10], [10, 'ok', 10],
  [10, 'timeout', 5], [5, 'timeout', 2], [3, 'timeout', 1], [1, 'timeout', 1],
  [5, 'server_error', 5], [5, 'overloaded', 5], [5, 'connect_failed', 5], [5, 'empty_response', 5], [5, null, 5],
])('of %d calls that may be in flight, one that came to %s leaves %d of 10', (allowance, came, after) => {
  expect(allowanceAfter(allowance, came, 10)).toBe(after);
});

test('as many replies as there are slots give a model all of them, and a few time-outs leave it one', () => {
  const after = (came: 'ok' | 'timeout', times: number, from: number) => Array.from({ length: times }).reduce<number>((calls) => allowanceAfter(calls, came, 50), from);
  expect(after('ok', 25, firstAllowance({ slots: 50, share: 0.5 }))).toBe(50);
  expect(after('timeout', 6, 50)).toBe(1);
});

test.each([
  ['all that it is allowed', true, 5, 0, 5], ['what the others leave', true, 5, 2, 3], ['one, where they leave nothing', true, 5, 5, 1], ['one, where they have more than that', true, 5, 9, 1],
  ['what time-outs have left it', true, 2, 1, 2], ['what the others leave of what one begins with, whatever it was allowed before', true, 9, 2, 3], ['what it is allowed, whatever those have, where it answers', false, 8, 5, 8],
])('of 10 slots a model has %s (silent: %s, allowed %d, the other silent ones have %d): %d', (_what, silent, allowance, others, calls) => {
  expect(roomOf({ allowance, silent, others }, { slots: 10, share: 0.5 })).toBe(calls);
});

test('a share of one leaves all slots to each, however many others have', () => {
  expect(roomOf({ allowance: 10, silent: true, others: 10 }, { slots: 10, share: 1 })).toBe(10);
});

test.each([
  [10, 40, 1], [5, 0, 1], [5, 5, 2], [5, 40, 2], [2, 3, 3], [1, 1, 2], [1, 4, 5], [1, 40, 10],
])('with %d in flight and %d waiting for one of 10 slots a time-out stands for %d', (allowance, waiting, count) => {
  expect(standsFor(allowance, { waiting, slots: 10 })).toBe(count);
});

test.each([
  ['at once where the model has just answered', 0, 0, 250],
  ['after as long as it has been silent', 900, 0, 900],
  ['but not much later, however long that is', 3_600_000, 0, 2000],
  ['behind those who were sent away before', 2000, 2100, 2150],
  ['closer together where it answers soon', 200, 1000, 1006],
  ['within ten minutes, also where the clock was set back', 2000, 7_200_000, 600_000],
  ['not before its own time, where those were sent away long ago', 700, -90_000, 700],
])('a run comes again %s', (_when, quiet_ms, last_ms, ms) => {
  expect(comesAgainMs({ quiet_ms, last_ms })).toBe(ms);
});

test('as many as may look within two seconds look, however many wait', () => {
  let last_ms = 0;
  const times = Array.from({ length: 400 }, () => { last_ms = comesAgainMs({ quiet_ms: 60_000, last_ms }); return last_ms; });
  for (let from = 2000; from < 20_000; from += 2000) expect(times.filter((ms) => ms >= from && ms < from + 2000)).toHaveLength(40);
});
