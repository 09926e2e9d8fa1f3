import { describe, expect, test } from 'vitest';
import type { CronRule } from '@treadle/engine';
import { cronTimes } from './index.ts';

function ruleOf(cron: string, timezone: string): CronRule {
  const reading = cronTimes(cron, timezone);
  if (reading.type === 'invalid') throw new Error(reading.problem);
  return reading.rule;
}

function timesOf(cron: string, timezone: string, from: string, count: number): string[] {
  const { next } = ruleOf(cron, timezone);
  const times: number[] = [];
  for (let at = Date.parse(from); times.length < count; at = times.at(-1)!) times.push(next(at)!);
  return times.map((ms) => new Date(ms).toISOString().slice(0, 16));
}

/** Berlin skips 02:00–03:00 on 2026-03-29 (01:00Z) and shows 02:00–03:00 twice on 2026-10-25; New York skips on 03-08 (07:00Z), repeats 01:00–02:00 on 11-01. */
describe('summer time', () => {
  test.each([
    ['does not exist: once, at the skip', '30 2 * * *', 'Europe/Berlin', '2026-03-28T00:00Z', ['2026-03-28T01:30', '2026-03-29T01:00', '2026-03-30T00:30']],
    ['exists twice: the first time', '30 2 * * *', 'Europe/Berlin', '2026-10-24T00:00Z', ['2026-10-24T00:30', '2026-10-25T00:30', '2026-10-26T01:30']],
    ['of a list, does not exist', '15,45 2 * * *', 'America/New_York', '2026-03-08T00:00Z', ['2026-03-08T07:00', '2026-03-09T06:15', '2026-03-09T06:45']],
    ['of a list, coincides with the next one', '0 2,3 * * *', 'America/New_York', '2026-03-08T00:00Z', ['2026-03-08T07:00', '2026-03-09T06:00', '2026-03-09T07:00']],
    ['of a list, exists twice', '30 1,2 * * *', 'America/New_York', '2026-11-01T00:00Z', ['2026-11-01T05:30', '2026-11-01T07:30', '2026-11-02T06:30']],
    ['of a range, exists twice', '0 1-3 * * *', 'America/New_York', '2026-11-01T00:00Z', ['2026-11-01T05:00', '2026-11-01T07:00', '2026-11-01T08:00', '2026-11-02T06:00']],
    ['midnight is skipped', '15 0 * * *', 'America/Havana', '2026-03-07T12:00Z', ['2026-03-08T05:00', '2026-03-09T04:15']],
    ['half an hour is skipped', '15 2 * * *', 'Australia/Lord_Howe', '2026-10-03T00:00Z', ['2026-10-03T15:30', '2026-10-04T15:15']],
    ['half an hour comes twice', '45 1 * * *', 'Australia/Lord_Howe', '2026-04-04T00:00Z', ['2026-04-04T14:45', '2026-04-05T15:15']],
    ['a day is skipped', '0 12 30 12 *', 'Pacific/Apia', '2011-12-28T00:00Z', ['2012-12-29T22:00']],
    ['each hour, as it comes', '0 * * * *', 'Europe/Berlin', '2026-10-24T23:30Z', ['2026-10-25T00:00', '2026-10-25T01:00', '2026-10-25T02:00']],
    ['a rhythm goes on over the skip', '*/30 * * * *', 'Europe/Berlin', '2026-03-29T00:15Z', ['2026-03-29T00:30', '2026-03-29T01:00', '2026-03-29T01:30']],
    ['no summer time', '30 2 * * *', 'UTC', '2026-03-28T12:00Z', ['2026-03-29T02:30', '2026-03-30T02:30']],
    ['a leap day', '0 0 29 2 *', 'UTC', '2026-03-01T00:00Z', ['2028-02-29T00:00', '2032-02-29T00:00']],
    ['last day of the month', '0 0 L * *', 'UTC', '2026-01-31T12:00Z', ['2026-02-28T00:00', '2026-03-31T00:00']],
    ['weekdays by name', '0 9 * * MON-FRI', 'Asia/Kathmandu', '2026-03-06T12:00Z', ['2026-03-09T03:15']],
    ['a nickname', '@daily', 'Europe/Berlin', '2026-06-01T12:00Z', ['2026-06-01T22:00']],
  ])('%s', (_, cron, timezone, from, expected) => {
    expect(timesOf(cron, timezone, from, expected.length)).toEqual(expected);
  });

  test('a time is the latest from its own millisecond to the one before the next, in every zone and over every change', () => {
    for (const cron of ['30 2 * * *', '30 1,2 * * *', '0 1-3 * * *', '*/30 1 * * *', '7 * * * *']) {
      for (const timezone of ['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Africa/Casablanca']) {
        for (const from of ['2026-03-07', '2026-03-28', '2026-10-03', '2026-10-24', '2026-10-31']) {
          const rule = ruleOf(cron, timezone);
          let time = rule.next(Date.parse(from))!;
          for (let count = 0; count < 6; count++) {
            const following = rule.next(time)!;
            expect(following - time).toBeGreaterThanOrEqual(60_000);
            for (const at of [time, time + 1, following - 1]) expect([cron, timezone, rule.latest(at)]).toEqual([cron, timezone, time]);
            expect(rule.latest(time - 1)).toBeLessThan(time);
            time = following;
          }
        }
      }
    }
  });
});

test.each([
  ['', /five fields/], ['* * * *', /five fields/], ['* * * * * *', /at most once a minute/], ['0 0 0 * * * 2030', /at most once a minute/], ['61 * * * *', /invalid value for minute: 61/],
  ['0 24 * * *', /invalid value for hour/], ['*/0 * * * *', /illegal stepping/], ['5-1 * * * *', /larger/], ['x * * * *', /illegal characters/], ['? * * * *', /write \*/],
  ['2030-01-01T00:00:00', /five fields/], ['@reboot', /five fields/], ['@every 5m', /five fields/], [`${'0,'.repeat(200)}0 * * * *`, /five fields/],
])('"%s" is no cron expression, and it is said why', (cron, why) => {
  expect(cronTimes(cron, 'UTC')).toMatchObject({ type: 'invalid', field: 'cron', problem: expect.stringMatching(why) as string });
});

test.each(['', 'Mars/Olympus', '+02:00', 'Europe/Berlin ', 'utc\n', 'x'.repeat(100)])('"%s" is no time zone', (timezone) => {
  expect(cronTimes('0 0 * * *', timezone)).toMatchObject({ type: 'invalid', field: 'timezone' });
});

test('a date that never comes has no next time', () => {
  expect(ruleOf('0 0 30 2 *', 'UTC').next(Date.parse('2026-01-01'))).toBeNull();
});
