import { expect, test } from 'vitest';
import { eventText, ledgerEntry, newRunId, noChanges, type Driver } from './driver.ts';

export function claimTests(it: () => Driver): void {
  test('raises the epoch by one and hands out the whole run', async () => {
    const run_id = await it().create();
    const { claimed } = await it().claim(run_id);
    expect(claimed).toEqual({
      type: 'claimed', epoch: 1, last_seq: 1, wait_ms: 0, session_last: null, other_store: null, inbox: [], inbox_in: 0, ledger: [], deliveries: 1, nudges: 0,
      stored: { fields: { status: '"queued"' }, last_seq: 1, last_ts: 1_700_000_000.25, epoch: 0, generation: 1, messages: ['{"role":"user"}'] },
    });
    expect((await it().claim(run_id)).claimed).toMatchObject({ epoch: 2, deliveries: 2 });
  });

  test('asked again under the same claim id it answers the same and raises nothing', async () => {
    const run_id = await it().create();
    const first = await it().claim(run_id, 1, 'claim-a');
    expect((await it().claim(run_id, 1, 'claim-a')).claimed).toEqual(first.claimed);
    expect((await it().claim(run_id, 1, 'claim-b')).claim.epoch).toBe(2);
  });

  test('of a job number that is not the current one changes nothing', async () => {
    const { run_id } = await it().after({ type: 'job' });
    for (const n of [1, 3]) expect(await it().store.claim({ run_id, n, claim_id: 'old', held: null })).toEqual({ type: 'stale' });
    expect((await it().claim(run_id, 2)).claim.epoch).toBe(2);
  });

  test('of a run that nobody knows says so', async () => {
    expect(await it().store.claim({ run_id: newRunId(), n: 1, claim_id: 'c', held: null })).toEqual({ type: 'missing' });
  });

  test('of an ended run, by the job that ended it delivered again, says that it has ended', async () => {
    const { run_id } = await it().after({ type: 'end' }, 'completed');
    expect(await it().store.claim({ run_id, n: 1, claim_id: 'again', held: null })).toEqual({ type: 'ended' });
  });

  test('of a paused or waiting run finds no live job', async () => {
    for (const next of [{ type: 'pause' }, { type: 'wait', delay_ms: 60_000 }] as const) {
      const { run_id } = await it().after(next, 'paused');
      for (const n of [1, 2]) expect(await it().store.claim({ run_id, n, claim_id: 'c', held: null })).toEqual({ type: 'stale' });
    }
  });

  test('tells a worker that what it holds is current only if nothing has happened since', async () => {
    const changes = [{}, { last_seq: 1 }, { last_seq: 3 }, { epoch: 2 }, { claim_id: 'other' }];
    const current = [];
    for (const change of changes) {
      const { run_id, claim } = await it().after({ type: 'job' });
      const held = { epoch: claim.epoch, claim_id: claim.claim_id, last_seq: 2, ...change };
      const reply = await it().store.claim({ run_id, n: 2, claim_id: 'next', held });
      expect(reply).toMatchObject({ type: 'claimed', epoch: 2, last_seq: 2 });
      current.push(reply.type === 'claimed' && reply.stored === null);
    }
    expect(current).toEqual([true, false, false, false, false]);
  });

  test('what a worker holds is no more current once somebody else has claimed the run', async () => {
    const { run_id, claim } = await it().after({ type: 'job' });
    await it().claim(run_id, 2);
    const held = { epoch: claim.epoch, claim_id: claim.claim_id, last_seq: 2 };
    const reply = await it().store.claim({ run_id, n: 2, claim_id: 'back', held });
    expect(reply.type === 'claimed' && reply.stored?.last_seq).toBe(2);
  });

  test('says which claim wrote the last event, not which one holds the run', async () => {
    const { run_id } = await it().after({ type: 'job' });
    expect((await it().claim(run_id, 2)).claimed).toMatchObject({ epoch: 2, stored: { epoch: 1 } });
    expect((await it().claim(run_id, 2)).claimed).toMatchObject({ epoch: 3, stored: { epoch: 1 } });
  });

  test('hands out the ledger of the open calls, and of those alone', async () => {
    const run_id = await it().create();
    const { claim } = await it().claim(run_id);
    const ledger = ['a', 'b', 'c'].map((id) => ({ tool_use_id: id, entry: ledgerEntry(id) }));
    await it().commits(it().write(claim, 1, { type: 'keep' }, { ledger, open_calls: ['b', 'c', 'not-begun'] }));
    expect((await it().claim(run_id)).claimed.ledger).toEqual([ledgerEntry('b'), ledgerEntry('c')]);
  });

  test('counts deliveries in a row, and a hand-over starts the count anew', async () => {
    const run_id = await it().create();
    await it().claim(run_id);
    const { claim, claimed } = await it().claim(run_id);
    expect(claimed.deliveries).toBe(2);
    await it().commits(it().write(claim, 1, { type: 'job' }));
    expect((await it().claim(run_id, 2)).claimed.deliveries).toBe(1);
  });

  test('goes on counting behind a claim that took over what a dead one had begun', async () => {
    const run_id = await it().create();
    await it().claim(run_id);
    const { claim } = await it().claim(run_id);
    await it().commits(it().write(claim, 1, { type: 'job' }, { took_over: 'counted' }));
    const next = await it().claim(run_id, 2);
    expect(next.claimed.deliveries).toBe(2);
    await it().store.recount([next.claim], -1);
    await it().commits(it().write(next.claim, 2, { type: 'job' }, { took_over: 'excused' }));
    expect((await it().claim(run_id, 3)).claimed.deliveries).toBe(2);
  });

  test('a delivery that is handed back does not count, and can write no more', async () => {
    const run_id = await it().create();
    const { claim } = await it().claim(run_id);
    await it().store.handBack(claim);
    expect(await it().store.commit(it().write(claim, 1, { type: 'job' }))).toEqual({ type: 'fenced' });
    const next = await it().claim(run_id);
    expect(next.claimed).toMatchObject({ epoch: 2, deliveries: 1 });
    await it().store.handBack(claim);
    await it().commits(it().write(next.claim, 1, { type: 'job' }, { changes: noChanges, events: [eventText(2)] }));
  });

  test('corrects the count of deliveries for claims that hold, and for no others', async () => {
    const [one, other] = [await it().create(), await it().create()];
    const old = (await it().claim(one)).claim;
    const { claim } = await it().claim(one);
    const beside = (await it().claim(other)).claim;
    await it().store.recount([claim, beside], -1);
    await it().store.recount([old], 1);
    await it().store.recount([claim], 1);
    await it().store.recount([beside], -1);
    expect((await it().claim(one)).claimed.deliveries).toBe(3);
    expect((await it().claim(other)).claimed.deliveries).toBe(1);
  });
}
