/** Schedules outlive their store: what was changed goes to the archive, and comes back with its next time. */
import { cronTimes } from '@treadle/cron';
import { ArchiveFailed, archiveSchedules, restoreSchedules, scheduledRunId, type ScheduleDefinition } from '@treadle/engine';
import { createMemoryArchive, createMemoryScheduleStore, newScheduleId, someDefinition } from '@treadle/testkit';
import { beforeEach, describe, expect, test } from 'vitest';

const minute = 60_000;
const hour = 60 * minute;
const round = { limit: 100, retry_ms: 5000 };
/** 2023-11-14T22:00Z. */
const start = Date.UTC(2023, 10, 14, 22);

let nowMs: number;
let archive: ReturnType<typeof createMemoryArchive>;
let schedules: ReturnType<typeof createMemoryScheduleStore>;
beforeEach(() => {
  nowMs = start;
  archive = createMemoryArchive();
  schedules = createMemoryScheduleStore(() => nowMs);
});

const hourly: ScheduleDefinition = { ...someDefinition, cron: '0 * * * *', timezone: 'UTC' };

async function create(definition: ScheduleDefinition = hourly, id = newScheduleId()): Promise<string> {
  const reading = cronTimes(definition.cron, definition.timezone);
  const next_ms = reading.type === 'rule' ? reading.rule.next(nowMs) : start + hour;
  await schedules.create({ id, tenant: 'acme', definition, paused: false, next_ms, not_after_ms: Infinity, most: 9 });
  return id;
}

async function pause(id: string, paused = true): Promise<void> {
  const { version, definition } = (await schedules.schedule(id))!;
  await schedules.change({ id, tenant: 'acme', change_id: `${version}`, version, definition, paused, next_ms: 'as_it_is', not_after_ms: Infinity });
}

const carry = () => archiveSchedules({ schedules, archive }, 0, round);
const archived = async (): Promise<unknown[]> => { const all = []; for await (const each of archive.schedules()) all.push(JSON.parse(each.document)); return all; };

describe('what has changed', () => {
  test('is carried into the archive once, with all that a schedule is', async () => {
    const id = await create();
    await carry();
    expect(await archived()).toEqual([{ id, tenant: 'acme', definition: hourly, paused: false, created_at_ms: start, version: 1, next_ms: start + hour }]);
    archive.failNext(1);
    // Nothing is asked of the archive where nothing has changed.
    await carry();
    archive.failNext(0);
    await pause(id);
    await carry();
    expect(await archived()).toMatchObject([{ id, paused: true, version: 2 }]);
  });

  test('while the archive is away it waits, and a put whose answer was lost is made again', async () => {
    await create();
    archive.failNext(1);
    await expect(carry()).rejects.toThrow('away');
    nowMs += 5000;
    archive.dropAnswer(1);
    await expect(carry()).rejects.toThrow('lost');
    nowMs += 5000;
    await carry();
    expect(await archived()).toHaveLength(1);
    nowMs += hour;
    expect(await schedules.dueForArchive(0, round)).toEqual([]);
  });

  test('and what the archive refuses of one holds back no other', async () => {
    const [refused, good] = [await create(), await create()];
    const refusing = { ...archive, putSchedule: async (schedule: Parameters<typeof archive.putSchedule>[0]) => {
      if (schedule.id === refused) throw new ArchiveFailed('refused', '403');
      await archive.putSchedule(schedule);
    } };
    await expect(archiveSchedules({ schedules, archive: refusing }, 0, round)).rejects.toThrow('403');
    expect(await archived()).toMatchObject([{ id: good }]);
    nowMs += 5000;
    await carry();
    expect(await archived()).toHaveLength(2);
  });

  test('between the look and the put is carried, too', async () => {
    const id = await create();
    await archiveSchedules({ archive: { ...archive, putSchedule: async (schedule) => { await pause(id); await archive.putSchedule(schedule); } }, schedules }, 0, round);
    await carry();
    expect(await archived()).toMatchObject([{ version: 2, paused: true }]);
  });

  test('a removal stays, although a put that was on its way comes after it', async () => {
    const id = await create();
    await archiveSchedules({ schedules, archive: { ...archive, putSchedule: async (schedule) => {
      await schedules.archived(id, 1);
      await schedules.remove({ id, tenant: 'acme', not_after_ms: Infinity });
      await carry();
      await archive.putSchedule(schedule);
    } } }, 0, round);
    await carry();
    expect(await archived()).toEqual([]);
  });
});

describe('after the store was lost', () => {
  const deps = () => ({ schedules, archive, cron: cronTimes, clock: { nowMs: () => nowMs } });
  const restore = (over: { accept_repeats?: boolean; strict?: boolean; shards?: number } = {}) => restoreSchedules(deps(), { accept_repeats: false, strict: false, shards: 1, ...over });
  const lose = (ms: number): void => {
    nowMs += ms;
    schedules = createMemoryScheduleStore(() => nowMs);
  };

  test('every schedule comes back as it was, once, and none that was removed', async () => {
    const [kept, paused, gone] = [await create(), await create(), await create()];
    await pause(paused);
    await schedules.remove({ id: gone, tenant: 'acme', not_after_ms: Infinity });
    await carry();
    lose(3 * hour + minute);
    expect(await restore()).toEqual({ found: 2, restored: 2, present: 0, failed: [] });
    expect(await restore()).toEqual({ found: 2, restored: 0, present: 2, failed: [] });
    expect(await schedules.schedule(kept)).toEqual({ id: kept, tenant: 'acme', definition: hourly, paused: false, created_at_ms: start, version: 1, next_ms: start + 4 * hour, last: null, fired: 0, skipped: 0, failed: 0, last_error: null });
    expect(await schedules.schedule(paused)).toMatchObject({ paused: true, version: 2 });
    expect(await schedules.schedule(gone)).toBeNull();
    // A change after that is newer than what the archive has.
    await pause(kept);
    await carry();
    expect(await archived()).toMatchObject([{ id: kept, version: 2, paused: true }, { id: paused }]);
  });

  test.each([
    ['the latest time is made up for where repeats are accepted', { accept_repeats: true }, 10 * minute, false, 0],
    ['and in strict mode, where nothing was done that the archive lacks', { strict: true }, 10 * minute, false, 0],
    ['not otherwise: its run may have been made and lost', {}, 10 * minute, false, 1],
    ['not where the archive has its run', { accept_repeats: true }, 10 * minute, true, 1],
    ['not where it is too old', { accept_repeats: true }, 31 * minute, false, 1],
  ])('%s', async (_, options, late, has, hours) => {
    const id = await create({ ...hourly, catch_up_s: 1800 });
    await carry();
    const due = start + 2 * hour;
    const run_id = scheduledRunId(id, due);
    if (has) await archive.putSegment({ run_id, first_seq: 1, last_seq: 1, events: [JSON.stringify({ type: 'turn_start', seq: 1, ts: 1, run_id, turn_number: 1, epoch: 1, attempt: 1, worker: 'w' })] });
    lose(2 * hour + late);
    await restore(options);
    expect((await schedules.schedule(id))?.next_ms).toBe(due + hours * hour);
  });

  test('a time before the schedule had it is not made up for', async () => {
    nowMs = start + minute;
    const id = await create();
    await carry();
    lose(minute);
    await restore({ accept_repeats: true });
    expect((await schedules.schedule(id))?.next_ms).toBe(start + hour);
  });

  test('what cannot be put back is named, and keeps back nothing else', async () => {
    const [elsewhere, broken, whole] = [await create(hourly, newScheduleId(1)), await create({ ...hourly, timezone: 'Gone/Away' }), await create()];
    await carry();
    lose(minute);
    const summary = await restore();
    expect(summary).toMatchObject({ found: 3, restored: 1, present: 0 });
    expect(summary.failed).toEqual(expect.arrayContaining([
      { schedule_id: elsewhere, problem: 'its shard has no worker: TREADLE_SHARDS is 1' }, { schedule_id: broken, problem: expect.stringContaining('time zone') as string }]));
    expect(await schedules.schedule(whole)).not.toBeNull();
  });
});
