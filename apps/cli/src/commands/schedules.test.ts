import { describe, expect, test } from 'vitest';
import { answeringApi } from '../fixtures/answering-api.ts';
import { schedulesCommand } from './schedules.ts';

const schedule = {
  id: 'sch_1', name: 'nightly', cron: '0 3 * * *', timezone: 'Europe/Berlin', catch_up_s: 3600, paused: false,
  run: { agent: 'assistant', input: 'report', limits: {}, metadata: {}, tags: [], priority: 50, session_id: null, on_busy: 'reject', chain: null },
  created_at: '2030-01-01T00:00:00.000Z', next_run_at: '2030-01-02T02:00:00.000Z', last_run_at: '2030-01-01T02:00:00.000Z', last_run_id: 'run_1',
  last_error: { due_at: '2030-01-01T02:00:00.000Z', code: 'session_busy', message: 'The session was busy.' }, counts: { fired: 3, skipped: 2, failed: 1 },
};
const api = answeringApi({ status: 200, body: schedule });

describe('schedules', () => {
  test.each<[string[], unknown]>([
    [['0 3 * * *', 'report'], { cron: '0 3 * * *', run: { input: 'report' } }],
    [['@daily', 'report', '--timezone', 'Europe/Berlin', '--name', 'n', '--agent', 'a', '--session', 'ses_1', '--on-busy', 'queue', '--chain', 'c', '--tag', 'x', '--tag', 'y', '--catch-up', '60', '--paused'],
      { cron: '@daily', timezone: 'Europe/Berlin', name: 'n', catch_up_s: 60, paused: true, run: { input: 'report', agent: 'a', session_id: 'ses_1', on_busy: 'queue', chain: 'c', tags: ['x', 'y'] } }],
  ])('create %j', async (args, body) => {
    expect(await schedulesCommand(['create', ...args])).toBe(0);
    expect(api.asked).toEqual([{ method: 'POST', url: '/v1/schedules', body }]);
    expect(api.printed).toBe('sch_1 is next due at 2030-01-02T02:00:00.000Z\n');
  });

  test('ls prints a line each, and how to go on', async () => {
    api.answer = { status: 200, body: { data: [schedule, { ...schedule, id: 'sch_2', name: null, paused: true, next_run_at: null }], next_cursor: 'c1' } };
    expect(await schedulesCommand(['ls', '--limit', '2', '--cursor', 'c0'])).toBe(0);
    expect(api.asked).toMatchObject([{ method: 'GET', url: '/v1/schedules?limit=2&cursor=c0' }]);
    expect(api.printed.replaceAll(/ +/g, ' ')).toBe('sch_1 0 3 * * * Europe/Berlin 2030-01-02T02:00:00.000Z assistant nightly\nsch_2 0 3 * * * Europe/Berlin paused assistant\nmore: --cursor c1\n');
  });

  test('show says what it does, when, and how it went', async () => {
    expect(await schedulesCommand(['show', 'sch_1'])).toBe(0);
    expect(api.printed).toBe([
      'sch_1 (nightly) is next due at 2030-01-02T02:00:00.000Z', '0 3 * * * in Europe/Berlin; made up for within 3600 s', 'assistant: report', 'last: run_1, due at 2030-01-01T02:00:00.000Z',
      'fired 3  skipped 2  failed 1', '2030-01-01T02:00:00.000Z made no run: session_busy: The session was busy.', ''].join('\n'));
  });

  test.each([
    ['pause', { method: 'PATCH', url: '/v1/schedules/sch_1', body: { paused: true } }, 'sch_1 is paused\n'],
    ['resume', { method: 'PATCH', url: '/v1/schedules/sch_1', body: { paused: false } }, 'sch_1 is next due at 2030-01-02T02:00:00.000Z\n'],
    ['rm', { method: 'DELETE', url: '/v1/schedules/sch_1', body: undefined }, 'sch_1 is deleted\n'],
  ])('%s asks once, and says what is now', async (verb, request, text) => {
    expect(await schedulesCommand([verb, 'sch_1'])).toBe(0);
    expect([api.asked, api.printed]).toEqual([[request], text]);
    api.printed = '';
    await schedulesCommand([verb, 'sch_1', '--json']);
    expect(JSON.parse(api.printed)).toEqual(schedule);
  });

  test.each([[[]], [['create']], [['create', '@daily']], [['create', '@daily', 'a', 'b']], [['create', '@daily', 'a', '--catch-up', 'x']], [['ls', 'x']], [['show']], [['rm', 'a', 'b']], [['fly', 'x']], [['constructor', 'x']]])(
    '%j is bad usage, and nothing is asked', async (args) => {
      await expect(schedulesCommand(args)).rejects.toMatchObject({ exitCode: 2 });
      expect(api.asked).toEqual([]);
    });
});
