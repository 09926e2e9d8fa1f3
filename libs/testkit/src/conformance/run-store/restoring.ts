import { randomUUID } from 'node:crypto';
import type { RestoredRun } from '@treadle/engine';
import { expect, test } from 'vitest';
import { eventText, ledgerEntry, newRunId, noChanges, ownSession, type Driver } from './driver.ts';

function restored(fields: Partial<RestoredRun> = {}): RestoredRun {
  const run_id = fields.run_id ?? newRunId();
  return {
    run_id, tenant: 'acme', agent: 'assistant', tags: ['t'], priority: 50, session_id: ownSession(run_id).id, status: 'running', epoch: 1004, archived_seq: 9,
    events: [], last_ts: 1_700_000_000.25, event_epoch: 4, changes: { ...noChanges, fields: { status: '"running"' }, messages: ['{"role":"user"}'] },
    ledger: [], open_calls: [], pending: [], job: { type: 'now' }, ...fields,
  };
}

export function restoringTests(it: () => Driver): void {
  test('a run comes back with its state, its ledger and a job, and its log goes on behind the archive', async () => {
    const run = restored({ ledger: [{ tool_use_id: 'a', entry: ledgerEntry('a') }], open_calls: ['a'] });
    expect(await it().store.restore(run)).toBe('restored');
    expect(await it().jobs(run.run_id)).toEqual(['turn 1004']);
    const { claim, claimed } = await it().claim(run.run_id, 1004);
    expect(claimed).toMatchObject({
      epoch: 1005, last_seq: 9, deliveries: 1, inbox: [], ledger: [ledgerEntry('a')],
      stored: { fields: { status: '"running"' }, last_seq: 9, epoch: 4, messages: ['{"role":"user"}'] } });
    await it().commits(it().write(claim, 9, { type: 'job' }));
    expect(await it().store.events(run.run_id, 0, 10)).toMatchObject({ first_seq: 10, last_seq: 10 });
    expect(await it().store.seal(run.run_id, 100)).toMatchObject({ first_seq: 10, last_seq: 10 });
    expect((await it().store.list({ tenant: 'acme', session_id: null, status: null, agent: null, tag: null, before_id: null, limit: 200 })).run_ids).toContain(run.run_id);
  });

  test('a run that is there is left alone, and a second time nothing happens', async () => {
    const run_id = await it().create();
    expect(await it().store.restore(restored({ run_id }))).toBe('exists');
    expect(await it().jobs(run_id)).toEqual(['turn 1']);
    const run = restored();
    expect([await it().store.restore(run), await it().store.restore(run)]).toEqual(['restored', 'exists']);
    expect(await it().jobs(run.run_id)).toEqual(['turn 1004']);
  });

  test('a paused run has no job until a command wakes it; a word is taken for what it waits for', async () => {
    const run = restored({ status: 'paused', job: { type: 'none' }, pending: ['a'], events: [eventText(10)] });
    await it().store.restore(run);
    expect(await it().jobs(run.run_id)).toEqual([]);
    expect(await it().logOf(run.run_id)).toEqual([eventText(10)]);
    expect(await it().send(run.run_id, { type: 'outcome', tool_use_id: 'a', outcome: 'happened', by: 'ann' })).toEqual({ type: 'accepted' });
    expect(await it().jobs(run.run_id)).toEqual(['turn 1005']);
  });

  test('what waits waits until its time', async () => {
    const run = restored({ job: { type: 'at', due_ms: await it().store.now() + 250 } });
    await it().store.restore(run);
    expect((await it().pump()).woken).toBe(0);
    expect(await it().jobs(run.run_id)).toEqual([]);
    await it().under.passTime(260);
    expect((await it().pump()).woken).toBe(1);
    expect(await it().jobs(run.run_id)).toEqual(['turn 1004']);
  });

  test('one that came back as paused is not resumed before its turn; whatever else is asked of it is taken', async () => {
    const [first, second] = [newRunId(), newRunId()];
    const session_id = ownSession(first).id;
    for (const run_id of [first, second]) await it().store.restore(restored({ run_id, session_id, status: 'paused', job: { type: 'none' } }));
    expect(await it().send(second, { type: 'resume' })).toEqual({ type: 'behind', run_id: first });
    expect(await it().send(second, { type: 'steer', text: 'x' })).toEqual({ type: 'accepted' });
    expect(await it().send(first, { type: 'resume' })).toEqual({ type: 'accepted' });
    const { claim } = await it().claim(first, 1005);
    await it().commits(it().write(claim, 9, { type: 'end' }, { status: 'failed', inbox_seen: 1, applies_inbox: true }));
    await it().store.finished(first);
    expect(await it().send(second, { type: 'resume' })).toEqual({ type: 'accepted' });
  });

  test('runs of a session go one after the other again, behind what the session said last', async () => {
    const ended = newRunId();
    const [first, second] = [newRunId(), newRunId()];
    const session_id = ownSession(first).id;
    await it().store.restoreSession({ session_id, tenant: 'acme', last: ended });
    await it().store.restoreSession({ session_id, tenant: 'acme', last: `run_${'0'.repeat(32)}` });
    await it().store.restore(restored({ run_id: first, session_id }));
    await it().store.restore(restored({ run_id: second, session_id, status: 'queued', epoch: 0 }));
    expect(await it().store.session(session_id)).toEqual({ tenant: 'acme', current: first, last: ended });
    expect(await it().jobs(second)).toEqual([]);
    const { claim, claimed } = await it().claim(first, 1004, randomUUID());
    expect(claimed.session_last).toBe(ended);
    await it().commits(it().write(claim, 9, { type: 'end' }, { status: 'failed' }));
    await it().store.finished(first);
    expect(await it().jobs(second)).toEqual(['turn 1']);
    expect(await it().store.session(session_id)).toEqual({ tenant: 'acme', current: second, last: first });
  });
}
