import { randomUUID } from 'node:crypto';
import type { WriteBack } from '@treadle/engine';
import { expect, test } from 'vitest';
import { eventText, ledgerEntry, newRunId, noChanges, ownSession, type Driver } from './driver.ts';

/** What the archive tells of a run that the store knows up to seq 2: it goes on to 9. */
function archived(run_id: string): WriteBack['run'] {
  return {
    run_id, tenant: 'acme', agent: 'assistant', tags: ['t'], priority: 50, session_id: ownSession(run_id).id, status: 'running', last_ts: 1_700_000_009.5,
    event_epoch: 4, archived_seq: 9, events: [], changes: { ...noChanges, fields: { status: '"running"', turn_number: '2' }, messages: ['{"role":"tool"}'] },
    ledger: [{ tool_use_id: 'a', entry: ledgerEntry('a') }], open_calls: ['a'], pending: [],
  };
}

/** A run of two events that has come to another store, claimed there. */
async function come(it: Driver) {
  const { run_id } = await it.after({ type: 'job' });
  await it.under.otherStore(run_id);
  const { claim, claimed } = await it.claim(run_id, 2);
  const back = (fields: Partial<WriteBack> = {}): WriteBack => (
    { claim, expected_seq: 2, store_id: claimed.other_store ?? '', run: archived(run_id), commands_applied: 0, next: { type: 'job' }, tell: [], ...fields });
  return { run_id, claim, claimed, back };
}

export function otherStoreTests(it: () => Driver): void {
  test('a run that this store has made, and written, is at home in it', async () => {
    const { run_id } = await it().after({ type: 'job' });
    expect([(await it().claim(run_id, 2)).claimed.other_store, await it().store.moves(run_id)]).toEqual([null, []]);
    expect(await it().store.moves(newRunId())).toEqual([]);
  });

  test('every claim says that the store is another, under an epoch beyond all that may be lost, until one has committed under its name', async () => {
    const { run_id, claim, claimed } = await come(it());
    expect(claimed.other_store ?? '').not.toBe('');
    expect(claim.epoch).toBeGreaterThan(1000);
    expect(await it().store.moves(run_id)).toMatchObject([{ seq: 2 }]);
    await it().commits(it().write(claim, 2, { type: 'job' }));
    const next = await it().claim(run_id, 3);
    expect(next.claimed.other_store).toBe(claimed.other_store);
    await it().commits(it().write(next.claim, 3, { type: 'job' }, { store_id: claimed.other_store ?? '' }));
    expect(next.claim.epoch).toBeGreaterThan(await it().store.now() - 60_000);
    const third = await it().claim(run_id, 4);
    expect([third.claimed.other_store, third.claim.epoch]).toEqual([null, next.claim.epoch + 1]);
    const moves = await it().store.moves(run_id);
    expect(moves).toMatchObject([{ seq: 3 }]);
    expect((await it().store.events(run_id, 0, 10))?.moves).toEqual(moves);
    expect(Math.abs(await it().store.now() - moves[0]!.at_ms)).toBeLessThan(60_000);
    await it().under.otherStore(run_id);
    await it().commits(it().write((await it().claim(run_id, 4)).claim, 4, { type: 'job' }, { store_id: 'yet another' }));
    expect((await it().store.moves(run_id)).slice(0, 2)).toMatchObject([{ seq: 3 }, { seq: 4 }]);
  });

  test('a run is put to where its archived log ends, and goes on from there', async () => {
    const { run_id, back } = await come(it());
    expect(await it().store.writeBack(back())).toBe('written');
    expect(await it().store.moves(run_id)).toMatchObject([{ seq: 9 }]);
    expect(await it().jobs(run_id)).toContain('turn 3');
    const { claim, claimed } = await it().claim(run_id, 3);
    expect(claimed).toMatchObject({
      other_store: null, last_seq: 9, deliveries: 1, ledger: [ledgerEntry('a')],
      stored: { fields: { status: '"running"', turn_number: '2' }, last_seq: 9, last_ts: 1_700_000_009.5, epoch: 4, messages: ['{"role":"tool"}'] } });
    expect(claimed.stored?.fields).toEqual({ status: '"running"', turn_number: '2' });
    await it().commits(it().write(claim, 9, { type: 'job' }));
    expect(await it().logOf(run_id)).toEqual([eventText(10)]);
    expect(await it().store.seal(run_id, 100)).toMatchObject({ first_seq: 10, last_seq: 10 });
  });

  test('is not written back by whoever does not hold it, nor twice', async () => {
    const { run_id, claim, back } = await come(it());
    for (const other of [{ claim: { ...claim, epoch: 1 } }, { claim: { ...claim, claim_id: 'other' } }, { expected_seq: 1 }]) {
      expect(await it().store.writeBack(back(other))).toBe('fenced');
    }
    expect(await it().store.writeBack(back({ claim: { ...claim, run_id: newRunId() } }))).toBe('fenced');
    expect((await it().store.read(run_id))?.stored.last_seq).toBe(2);
    expect([await it().store.writeBack(back()), await it().store.writeBack(back())]).toEqual(['written', 'fenced']);
  });

  test('what follows is as behind a commit: a wait, a pause, the end with its last duty', async () => {
    const waits = await come(it());
    await it().store.writeBack(waits.back({ next: { type: 'wait', delay_ms: 250 } }));
    expect((await it().pump()).woken).toBe(0);
    await it().under.passTime(260);
    expect((await it().pump()).woken).toBe(1);

    const paused = await come(it());
    await it().store.writeBack(paused.back({ run: { ...archived(paused.run_id), status: 'paused' }, next: { type: 'pause' } }));
    expect(await it().store.claim({ run_id: paused.run_id, n: 3, claim_id: randomUUID(), held: null })).toEqual({ type: 'stale' });
    await it().send(paused.run_id, { type: 'resume' });
    expect(await it().jobs(paused.run_id)).toContain('turn 4');

    const over = await come(it());
    await it().store.writeBack(over.back({ run: { ...archived(over.run_id), status: 'completed', archived_seq: 8, events: [eventText(9)] }, next: { type: 'end' } }));
    expect(await it().jobs(over.run_id)).toContain('finish');
    expect(await it().store.seal(over.run_id, 100)).toEqual({ run_id: over.run_id, first_seq: 9, last_seq: 9, ended: true });
  });

  test('whom the run had told of its end is told again, once', async () => {
    const parent = await it().create();
    const over = await come(it());
    const tell = [{ run_id: parent, command_id: 'end', command: { type: 'steer', text: 'x' } }] as const;
    await it().store.writeBack(over.back({ run: { ...archived(over.run_id), status: 'completed', archived_seq: 8, events: [eventText(9)] }, next: { type: 'end' }, tell }));
    expect(await it().send(parent, { type: 'steer', text: 'x' }, { command_id: 'end' })).toEqual({ type: 'accepted' });
    expect((await it().claim(parent)).claimed.inbox.map((entry) => entry.command_id)).toEqual(['end']);
  });

  test('commands that the archived log does not have stay, in their order', async () => {
    const { run_id } = await it().after({ type: 'job' });
    for (const id of ['c1', 'c2', 'c3']) await it().send(run_id, { type: 'steer', text: id }, { command_id: id });
    await it().under.otherStore(run_id);
    const { claim, claimed } = await it().claim(run_id, 2);
    await it().store.writeBack({ claim, expected_seq: 2, store_id: claimed.other_store ?? '', run: archived(run_id), commands_applied: 1, next: { type: 'job' }, tell: [] });
    const next = await it().claim(run_id, 3);
    expect([next.claimed.inbox.map((entry) => entry.command_id), next.claimed.inbox_in]).toEqual([['c2', 'c3'], 3]);
    await it().commits(it().write(next.claim, 9, { type: 'pause' }, { status: 'paused', inbox_seen: 3, applies_inbox: true }));
  });
}
