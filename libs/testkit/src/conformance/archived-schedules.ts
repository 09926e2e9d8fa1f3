/** Schedules in an archive: A5 of the port. */
import type { Archive, ArchivedSchedule } from '@treadle/engine';
import { expect, it } from 'vitest';
import { newScheduleId } from './schedule-store.ts';

export function scheduleTests(archive: () => Archive): void {
  async function known(ids: readonly string[]): Promise<ArchivedSchedule[]> {
    const all: ArchivedSchedule[] = [];
    for await (const schedule of archive().schedules()) if (ids.includes(schedule.id)) all.push(schedule);
    return all;
  }

  it('gives back the newest version of each schedule, in the order of ids, whichever was put last', async () => {
    const [one, two, three] = [newScheduleId(), newScheduleId(), newScheduleId(3)];
    const put = (id: string, version: number) => archive().putSchedule({ id, version, document: `{"version":${version},"text":"ö"}` });
    for (const [id, version] of [[one, 2], [one, 1], [two, 9], [two, 10], [three, 1], [three, 1]] as const) await put(id, version);
    expect(await known([one, two, three])).toEqual([[one, 2], [two, 10], [three, 1]].map(([id, version]) => ({ id, version, document: `{"version":${version},"text":"ö"}` })));
    await expect(archive().putSchedule({ id: '../elsewhere', version: 1, document: '{}' })).rejects.toThrow(RangeError);
    await expect(archive().putSchedule({ id: one, version: 0, document: '{}' })).rejects.toThrow(RangeError);
  });

  it('lists none that was removed, not even when a write that was on its way comes after the removal', async () => {
    const [gone, never, other] = [newScheduleId(), newScheduleId(), newScheduleId()];
    for (const id of [gone, other]) await archive().putSchedule({ id, version: 1, document: '{}' });
    const removal = { tenant: 'acme', deleted_at: '2030-01-01T00:00:00.000Z' };
    for (const id of [gone, never]) await archive().removeSchedule({ id, ...removal });
    expect(await known([gone, never, other])).toEqual([{ id: other, version: 1, document: '{}' }]);
    await archive().putSchedule({ id: gone, version: 2, document: '{}' });
    expect(await known([gone])).toEqual([]);
    await archive().removeSchedule({ id: gone, ...removal });
    expect(await known([gone])).toEqual([]);
  });
}
