import { expect, test } from 'vitest';
import { newRunId, ownSession, type Driver } from './driver.ts';

const everyRun = { tenant: 'acme', status: null, agent: null, tag: null, session_id: null, before_id: null, limit: 100 };

export function removalTests(it: () => Driver): void {
  const remove = async (run_id: string, fields: { tenant?: string; not_after_ms?: number } = {}) =>
    it().store.remove({ run_id, tenant: 'acme', not_after_ms: await it().later(), ...fields });
  const ended = async (): Promise<string> => (await it().after({ type: 'end' }, 'completed')).run_id;
  const due = () => it().store.dueForArchive(0, { limit: 100, retry_ms: 0 });

  test('leaves nothing of an ended run but that it was deleted, and when', async () => {
    const [run_id, other] = [await ended(), await ended()];
    const reply = await remove(run_id);
    expect(reply).toEqual({ type: 'removed', deleted_at_ms: expect.any(Number) as number });
    expect([await it().store.read(run_id), await it().store.events(run_id, 0, 10), await it().store.ledger(run_id)]).toEqual([null, null, null]);
    expect((await it().store.list(everyRun)).run_ids).toEqual([other]);
    expect(await it().store.removed(run_id)).toEqual({ tenant: 'acme', deleted_at_ms: (reply as { deleted_at_ms: number }).deleted_at_ms });
    expect(await it().store.removed(other)).toBeNull();
    expect((await it().store.read(other))?.status).toBe('completed');
  });

  test('is answered again as the first time', async () => {
    const run_id = await ended();
    const first = await remove(run_id);
    await it().under.passTime(20);
    expect(await remove(run_id, { not_after_ms: 0 })).toEqual(first);
  });

  test('takes neither a live run, nor another tenant’s, nor comes too late', async () => {
    const live = await it().create();
    const run_id = await ended();
    expect(await remove(live)).toEqual({ type: 'not_ended', status: 'queued' });
    expect(await remove(run_id, { tenant: 'other' })).toEqual({ type: 'missing' });
    expect(await remove(run_id, { not_after_ms: await it().store.now() - 1 })).toEqual({ type: 'too_late' });
    expect((await it().store.read(run_id))?.status).toBe('completed');
    await remove(run_id);
    expect(await remove(run_id, { tenant: 'other' })).toEqual({ type: 'missing' });
  });

  test('of a run that only the archive knows is remembered, too', async () => {
    const run_id = newRunId();
    expect(await remove(run_id)).toMatchObject({ type: 'removed' });
    expect(await it().store.removed(run_id)).toMatchObject({ tenant: 'acme' });
  });

  test('keeps the id from being used again, or commanded', async () => {
    const run_id = await ended();
    await remove(run_id);
    const again = { run_id, tenant: 'acme', agent: 'a', tags: [], priority: 50, events: ['{"seq":1}'], last_ts: 1, changes: { fields: {}, generation: 1, replaces: false, messages: [] }, run_at_ms: null, not_after_ms: await it().later(), session: ownSession(run_id) };
    expect(await it().store.create(again)).toEqual({ type: 'exists' });
    expect(await it().send(run_id, { type: 'cancel' })).toEqual({ type: 'missing' });
    expect(await it().store.read(run_id)).toBeNull();
  });

  test('is due in the archive until it was carried out twice, the second time a while later', async () => {
    const run_id = await ended();
    await it().store.seal(run_id, 100);
    const { deleted_at_ms } = await remove(run_id) as { deleted_at_ms: number };
    await it().under.passTime(5);
    expect(await due()).toEqual([run_id]);
    expect(await it().store.seal(run_id, 100)).toBeNull();
    expect(await it().store.archiveDuty(run_id)).toEqual({ type: 'remove', tenant: 'acme', deleted_at_ms });
    await it().store.archiveDutyDone(run_id, 'merge', { settle_ms: 0 });
    expect(await due()).toEqual([run_id]);
    await it().store.archiveDutyDone(run_id, 'remove', { settle_ms: 100 });
    expect(await due()).toEqual([]);
    await it().under.passTime(120);
    expect(await due()).toEqual([run_id]);
    expect(await it().store.archiveDuty(run_id)).toMatchObject({ type: 'remove' });
    await it().store.archiveDutyDone(run_id, 'remove', { settle_ms: 100 });
    await it().under.passTime(120);
    expect(await due()).toEqual([]);
    expect(await it().store.removed(run_id)).not.toBeNull();
  });

  test('is not undone by an archiver that had sealed a range before', async () => {
    const run_id = await ended();
    const sealed = await it().store.seal(run_id, 100);
    await remove(run_id);
    await it().store.archived(sealed!, { keep_events: 0, retention_ms: 1 });
    await it().under.passTime(20);
    expect(await it().store.removed(run_id)).not.toBeNull();
    expect(await it().store.archiveDuty(run_id)).toMatchObject({ type: 'remove' });
  });

  test('makes its session forget the run, and go on with the next', async () => {
    const session = { id: ownSession(newRunId()).id, mode: 'new', when_busy: 'queue' } as const;
    const run_id = await it().create({ session });
    const next = await it().create({ session: { ...session, mode: 'join' } });
    const { claim } = await it().claim(run_id);
    await it().commits(it().write(claim, 1, { type: 'end' }, { status: 'completed' }));
    await remove(run_id);
    await it().store.finished(run_id);
    expect(await it().store.session(session.id)).toEqual({ tenant: 'acme', current: next, last: null });
    const { claim: second, claimed } = await it().claim(next);
    expect(claimed.session_last).toBeNull();
    await it().commits(it().write(second, 1, { type: 'end' }, { status: 'completed' }));
    await it().store.finished(next);
    expect(await it().store.session(session.id)).toEqual({ tenant: 'acme', current: null, last: next });
    await remove(next);
    expect(await it().store.session(session.id)).toEqual({ tenant: 'acme', current: null, last: null });
  });
}
