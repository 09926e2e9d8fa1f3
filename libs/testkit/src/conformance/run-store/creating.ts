import { expect, test } from 'vitest';
import { eventText, newRunId, noChanges, ownSession, type Driver } from './driver.ts';

export function creationTests(it: () => Driver): void {
  test('writes events, state, transcript and the first job together', async () => {
    const run_id = await it().create({ events: [eventText(1), eventText(2)], changes: { ...noChanges, fields: { agent: '"a"' }, messages: ['{"m":1}'] } });
    expect(await it().logOf(run_id)).toEqual([eventText(1), eventText(2)]);
    expect(await it().store.read(run_id)).toEqual({
      tenant: 'acme', status: 'queued', archived_seq: 0,
      stored: { fields: { agent: '"a"' }, last_seq: 2, last_ts: 1_700_000_000.25, epoch: 0, generation: 1, messages: ['{"m":1}'] },
    });
    expect(await it().jobs(run_id)).toEqual(['turn 1']);
  });

  test('is idempotent by run id: asked again it changes nothing', async () => {
    const run_id = await it().create();
    const again = { run_id, tenant: 'other', agent: 'b', tags: [], priority: 1, events: [eventText(1), eventText(2)], last_ts: 9, changes: noChanges, run_at_ms: null, session: ownSession(run_id) };
    expect(await it().store.create({ ...again, not_after_ms: await it().later() })).toEqual({ type: 'exists' });
    expect(await it().logOf(run_id)).toEqual([eventText(1)]);
    expect(await it().jobs(run_id)).toEqual(['turn 1']);
  });

  test('does nothing after its time (no ghosts)', async () => {
    const run_id = newRunId();
    const late = { run_id, tenant: 'acme', agent: 'a', tags: [], priority: 50, events: [eventText(1)], last_ts: 1, changes: noChanges, run_at_ms: null, session: ownSession(run_id) };
    expect(await it().store.create({ ...late, not_after_ms: await it().store.now() - 1 })).toEqual({ type: 'too_late' });
    expect(await it().store.read(run_id)).toBeNull();
    expect(await it().jobs(run_id)).toEqual([]);
  });

  test('with a time to run at, it has no job before that time and one after it', async () => {
    const run_id = await it().create({ run_at_ms: await it().store.now() + 250 });
    expect(await it().pump()).toEqual({ woken: 0, nudged: 0 });
    expect(await it().store.claim({ run_id, n: 1, claim_id: 'c', held: null })).toEqual({ type: 'stale' });
    await it().under.passTime(260);
    expect(await it().pump()).toEqual({ woken: 1, nudged: 0 });
    expect(await it().jobs(run_id)).toEqual(['turn 1']);
    expect((await it().claim(run_id)).claim.epoch).toBe(1);
  });
}
