import { expect, test } from 'vitest';
import { eventText, newRunId, type Driver } from './driver.ts';

const keepAll = { keep_events: 1000, retention_ms: 60_000 };

export function archiveTests(it: () => Driver): void {
  const due = (limit = 100, retry_ms = 60_000) => it().store.dueForArchive(0, { limit, retry_ms });

  test('of a run is due some time after an append, and put off for the next who asks', async () => {
    const run_id = await it().create();
    await it().under.passTime(it().under.archiveAfterMs + 10);
    expect(await due()).toEqual([run_id]);
    expect(await due()).toEqual([]);
  });

  test('is not put off by what is appended meanwhile', async () => {
    const { run_id, claim } = await it().after({ type: 'keep' });
    await it().under.passTime(0.6 * it().under.archiveAfterMs);
    await it().commits(it().write(claim, 2, { type: 'keep' }));
    await it().under.passTime(0.6 * it().under.archiveAfterMs);
    expect(await due()).toEqual([run_id]);
  });

  test('is due at once when a run has ended', async () => {
    const { run_id } = await it().after({ type: 'end' }, 'completed');
    expect(await due()).toEqual([run_id]);
  });

  test('tries again what was not archived, at most so many at once', async () => {
    const runs = [];
    for (let i = 0; i < 3; i++) runs.push((await it().after({ type: 'end' }, 'completed')).run_id);
    expect([...await due(2, 0), ...await due(3, 0)].filter((id, at, all) => all.indexOf(id) === at).sort()).toEqual(runs.sort());
  });

  test('seals a range, and the same one until it is archived', async () => {
    const { run_id, claim } = await it().after({ type: 'keep' });
    expect(await it().store.seal(run_id, 100)).toEqual({ run_id, first_seq: 1, last_seq: 2, ended: false });
    await it().commits(it().write(claim, 2, { type: 'end' }, { status: 'completed' }));
    const sealed = await it().store.seal(run_id, 100);
    expect(sealed).toEqual({ run_id, first_seq: 1, last_seq: 2, ended: false });
    await it().store.archived(sealed!, keepAll);
    expect(await it().store.seal(run_id, 100)).toEqual({ run_id, first_seq: 3, last_seq: 3, ended: true });
  });

  test('seals no more events than asked for, and nothing where nothing is new', async () => {
    const { run_id } = await it().after({ type: 'keep' });
    for (const seq of [1, 2]) {
      const sealed = await it().store.seal(run_id, 1);
      expect(sealed).toMatchObject({ first_seq: seq, last_seq: seq });
      await it().store.archived(sealed!, keepAll);
    }
    expect(await it().store.seal(run_id, 1)).toBeNull();
    expect(await it().store.seal(newRunId(), 1)).toBeNull();
  });

  test('moves the watermark only for the range that was sealed', async () => {
    const { run_id } = await it().after({ type: 'keep' });
    const range = { run_id, first_seq: 1, last_seq: 2, ended: false };
    await it().store.archived(range, keepAll);
    expect((await it().store.read(run_id))?.archived_seq).toBe(0);
    const sealed = await it().store.seal(run_id, 1);
    await it().store.archived(range, keepAll);
    expect((await it().store.read(run_id))?.archived_seq).toBe(0);
    await it().store.archived(sealed!, keepAll);
    await it().store.archived(sealed!, keepAll);
    expect((await it().store.read(run_id))?.archived_seq).toBe(1);
  });

  test('trims what is safe in the archive, but for the events to keep', async () => {
    const run_id = await it().create({ events: [1, 2, 3, 4, 5].map((seq) => eventText(seq)) });
    await it().store.archived((await it().store.seal(run_id, 4))!, { keep_events: 2, retention_ms: 60_000 });
    expect(await it().store.events(run_id, 0, 10)).toEqual({ first_seq: 4, last_seq: 5, moves: [], events: [eventText(4), eventText(5)] });
    await it().store.archived((await it().store.seal(run_id, 4))!, { keep_events: 0, retention_ms: 60_000 });
    expect(await it().store.events(run_id, 0, 10)).toEqual({ first_seq: 0, last_seq: 5, moves: [], events: [] });
    const { claim } = await it().claim(run_id);
    await it().commits(it().write(claim, 5, { type: 'keep' }));
    expect(await it().store.events(run_id, 5, 10)).toEqual({ first_seq: 6, last_seq: 6, moves: [], events: [eventText(6)] });
  });

  test('never trims what is not in the archive', async () => {
    const run_id = await it().create({ events: [1, 2, 3].map((seq) => eventText(seq)) });
    await it().store.archived((await it().store.seal(run_id, 1))!, { keep_events: 0, retention_ms: 60_000 });
    expect(await it().store.events(run_id, 0, 10)).toMatchObject({ first_seq: 2, events: [eventText(2), eventText(3)] });
  });

  test('of an ended run: it is kept until its log is archived whole', async () => {
    const { run_id } = await it().after({ type: 'end' }, 'completed');
    const retention = { keep_events: 1000, retention_ms: 200 };
    await it().store.archived((await it().store.seal(run_id, 1))!, retention);
    await it().under.passTime(220);
    expect((await it().store.read(run_id))?.archived_seq).toBe(1);
    await it().store.archived((await it().store.seal(run_id, 1))!, retention);
    expect((await it().store.read(run_id))?.archived_seq).toBe(2);
  });

  test('in several segments leaves an ended run due until they are merged', async () => {
    const { run_id } = await it().after({ type: 'end' }, 'completed');
    const retention = { keep_events: 1000, retention_ms: 200 };
    await it().store.archived((await it().store.seal(run_id, 1))!, retention);
    expect(await it().store.archiveDuty(run_id)).toEqual({ type: 'none' });
    await it().store.archived((await it().store.seal(run_id, 1))!, retention);
    await it().under.passTime(220);
    expect(await due(100, 0)).toEqual([run_id]);
    expect(await it().store.seal(run_id, 1)).toBeNull();
    expect(await it().store.archiveDuty(run_id)).toEqual({ type: 'merge' });
    expect(await due(100, 0)).toEqual([run_id]);
    await it().store.archiveDutyDone(run_id, 'remove', { settle_ms: 0 });
    expect(await it().store.archiveDuty(run_id)).toEqual({ type: 'merge' });
    await it().store.archiveDutyDone(run_id, 'merge', { settle_ms: 0 });
    expect(await it().store.archiveDuty(run_id)).toEqual({ type: 'none' });
    expect(await due(100, 0)).toEqual([]);
  });

  test('says how many events wait for it, and since when', async () => {
    expect(await it().store.archiveBacklog(0, { looks: 100 })).toEqual({ events: 0, oldest_ts: null });
    const at = (seq: number, ts: number) => JSON.stringify({ type: 'assistant_text', seq, ts, content: '"ts":1' });
    const older = await it().create({ events: [at(1, 1_700_000_000.25), at(2, 1_700_000_001)] });
    await it().create({ events: [at(1, 1_700_000_002.5)] });
    expect(await it().store.archiveBacklog(0, { looks: 100 })).toEqual({ events: 3, oldest_ts: 1_700_000_000.25 });
    await it().store.archived((await it().store.seal(older, 1))!, { keep_events: 0, retention_ms: 1000 });
    expect(await it().store.archiveBacklog(0, { looks: 100 })).toEqual({ events: 2, oldest_ts: 1_700_000_001 });
    await it().store.archived((await it().store.seal(older, 1))!, { keep_events: 0, retention_ms: 1000 });
    expect(await it().store.archiveBacklog(0, { looks: 100 })).toEqual({ events: 1, oldest_ts: 1_700_000_002.5 });
  });

  test('in one segment leaves nothing to merge', async () => {
    const { run_id } = await it().after({ type: 'end' }, 'completed');
    await it().store.archived((await it().store.seal(run_id, 100))!, keepAll);
    expect(await it().store.archiveDuty(run_id)).toEqual({ type: 'none' });
    expect(await due()).toEqual([]);
  });

  test('of a live run never lets it expire', async () => {
    const { run_id, claim } = await it().after({ type: 'keep' });
    await it().store.archived((await it().store.seal(run_id, 100))!, { keep_events: 0, retention_ms: 50 });
    await it().under.passTime(70);
    await it().commits(it().write(claim, 2, { type: 'job' }));
  });
}
