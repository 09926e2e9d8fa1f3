/** Finding runs by the archive alone, and removing them for good: A3 and A4 of the port. */
import type { Archive, ArchivedRun, Segment } from '@treadle/engine';
import { expect, it } from 'vitest';

export interface RunMakers {
  freshRunId(): string;
  archivedSegment(run_id: string, first_seq: number, last_seq: number, text?: string): Segment;
}

export function findingTests(archive: () => Archive, { freshRunId, archivedSegment }: RunMakers): void {
  const known = async (ids: readonly string[]): Promise<ArchivedRun[]> => (await listed(archive().runs())).filter((run) => ids.includes(run.run_id));
  const today = new Date().toISOString().slice(0, 10);

  it('knows every run, how far its log goes without a gap, and whether it has ended', async () => {
    const [whole, gapped, headless, ended, merged] = Array.from({ length: 5 }, freshRunId) as [string, string, string, string, string];
    for (const [run_id, first, last] of [[whole, 1, 2], [whole, 3, 7], [gapped, 1, 2], [gapped, 4, 5], [headless, 2, 3], [ended, 1, 4], [merged, 1, 2], [merged, 1, 6], [merged, 3, 4], [merged, 7, 9]] as const) {
      await archive().putSegment(archivedSegment(run_id, first, last));
    }
    await archive().putRun({ run_id: ended, tenant: 'acme', document: '{}' });
    await archive().putBlob(whole, Buffer.from('beside'));
    expect(await known([whole, gapped, headless, ended, merged])).toEqual([
      { run_id: whole, ended: false, last_seq: 7 }, { run_id: gapped, ended: false, last_seq: 2 }, { run_id: headless, ended: false, last_seq: 0 },
      { run_id: ended, ended: true, last_seq: 4 }, { run_id: merged, ended: false, last_seq: 9 },
    ].sort((a, b) => (a.run_id < b.run_id ? -1 : 1)));
  });

  it('tells the same log after a merge, and after another', async () => {
    const run_id = freshRunId();
    const parts = [[1, 2], [3, 7], [8, 8]].map(([first, last]) => archivedSegment(run_id, first!, last!));
    for (const part of parts) await archive().putSegment(part);
    for (let times = 0; times < 2; times++) {
      await archive().merge(run_id);
      expect(await archive().events(run_id, 0, 100)).toEqual(parts.flatMap((part) => part.events));
      expect(await archive().events(run_id, 6, 2)).toEqual([parts[1]!.events[4], parts[2]!.events[0]]);
      expect(await known([run_id])).toEqual([{ run_id, ended: false, last_seq: 8 }]);
    }
    await archive().merge(freshRunId());
  });

  it('finds the ended runs of a tenant by their day', async () => {
    const mine = [freshRunId(), freshRunId()].sort();
    const old = `run_${Date.UTC(2001, 8, 9).toString(16).padStart(12, '0')}${'0'.repeat(20)}`;
    const tenant = `acme.${freshRunId().slice(-16)}`;
    for (const run_id of [...mine, old]) await archive().putRun({ run_id, tenant, document: '{}' });
    await archive().putRun({ run_id: freshRunId(), tenant: 'acme', document: '{}' });
    await archive().putSegment(archivedSegment(freshRunId(), 1, 1));
    expect(await listed(archive().runsOf(tenant, today))).toEqual(mine);
    expect(await listed(archive().runsOf(tenant, '2001-09-08'))).toEqual([]);
    expect(await listed(archive().runsOf(tenant, '2001-09-09'))).toEqual([old]);
    expect(await listed(archive().runsOf('nobody', today))).toEqual([]);
  });

  it('leaves nothing of a run that was removed, but that it was', async () => {
    const [run_id, other] = [freshRunId(), freshRunId()];
    for (const id of [run_id, other]) {
      for (const [first, last] of [[1, 2], [3, 4]] as const) await archive().putSegment(archivedSegment(id, first, last));
      await archive().putRun({ run_id: id, tenant: 'acme', document: '{}' });
    }
    const blob = await archive().putBlob(run_id, Buffer.from('beside'));
    expect(await archive().removal(run_id)).toBeNull();
    const removal = { run_id, tenant: 'acme', deleted_at: '2030-01-01T00:00:00.000Z' };
    await archive().remove(removal);
    expect([await archive().events(run_id, 0, 10), await archive().getRun(run_id), await archive().getBlob(run_id, blob)]).toEqual([[], null, null]);
    expect(await known([run_id, other])).toEqual([{ run_id: other, ended: true, last_seq: 4 }]);
    expect(await listed(archive().runsOf('acme', today))).not.toContain(run_id);
    expect(await listed(archive().runsOf('acme', today))).toContain(other);
    expect(await archive().removal(run_id)).toEqual(removal);
  });

  it('removes again what was put after a removal, whose time stays that of the first', async () => {
    const run_id = freshRunId();
    const removal = { run_id, tenant: 'acme', deleted_at: '2030-01-01T00:00:00.000Z' };
    await archive().remove(removal);
    await archive().putSegment(archivedSegment(run_id, 1, 2));
    expect(await known([run_id])).toEqual([]);
    await archive().remove({ ...removal, deleted_at: '2031-01-01T00:00:00.000Z' });
    expect(await archive().events(run_id, 0, 10)).toEqual([]);
    expect(await archive().removal(run_id)).toEqual(removal);
  });
}

async function listed<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
