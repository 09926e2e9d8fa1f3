import { expect, test } from 'vitest';
import { ledgerEntry, newRunId, type Driver } from './driver.ts';

const accepted = { type: 'accepted' };

export function commandTests(it: () => Driver): void {
  test('are accepted in order, and once per command id', async () => {
    const run_id = await it().create();
    for (const id of ['a', 'b', 'a']) expect(await it().send(run_id, { type: 'steer', text: id }, { command_id: id })).toEqual(accepted);
    const { claimed } = await it().claim(run_id);
    expect(claimed.inbox.map((entry) => entry.command_id)).toEqual(['a', 'b']);
    expect(claimed.inbox_in).toBe(2);
  });

  test('do nothing after their time', async () => {
    const { run_id } = await it().after({ type: 'pause' }, 'paused');
    expect(await it().send(run_id, { type: 'resume' }, { not_after_ms: await it().store.now() - 1 })).toEqual({ type: 'too_late' });
    expect(await it().jobs(run_id)).toEqual(['turn 1']);
  });

  test('to a run that nobody knows are told so', async () => {
    expect(await it().send(newRunId(), { type: 'cancel' })).toEqual({ type: 'missing' });
  });

  test('to an ended run are refused with its status', async () => {
    const { run_id } = await it().after({ type: 'end' }, 'failed');
    for (const type of ['cancel', 'pause', 'resume'] as const) {
      expect(await it().send(run_id, { type })).toEqual({ type: 'invalid_state', status: 'failed' });
    }
  });

  test('wake a paused run under the next number; sent again they wake nothing', async () => {
    const { run_id } = await it().after({ type: 'pause' }, 'paused');
    expect(await it().send(run_id, { type: 'resume' }, { command_id: 'r' })).toEqual(accepted);
    expect(await it().jobs(run_id)).toEqual(['turn 1', 'turn 3']);
    expect(await it().send(run_id, { type: 'resume' }, { command_id: 'r' })).toEqual(accepted);
    expect(await it().jobs(run_id)).toEqual(['turn 1', 'turn 3']);
    const { claimed } = await it().claim(run_id, 3);
    expect(claimed.inbox).toEqual([{ command_id: 'r', command: { type: 'resume' } }]);
  });

  test('wake a waiting run at once, and its old time adds nothing', async () => {
    const { run_id } = await it().after({ type: 'wait', delay_ms: 250 });
    expect(await it().send(run_id, { type: 'steer', text: 'now' })).toEqual(accepted);
    expect(await it().jobs(run_id)).toEqual(['turn 1', 'turn 3']);
    await it().under.passTime(260);
    expect((await it().pump()).woken).toBe(0);
    await it().claim(run_id, 3);
  });

  test('to a run that has a job add none', async () => {
    const { run_id } = await it().after({ type: 'job' });
    for (const type of ['pause', 'resume', 'cancel'] as const) expect(await it().send(run_id, { type })).toEqual(accepted);
    expect(await it().jobs(run_id)).toEqual(['turn 1', 'turn 2']);
  });

  test('resume is for a run that is paused, or about to be', async () => {
    const run_id = await it().create();
    expect(await it().send(run_id, { type: 'resume' })).toEqual({ type: 'invalid_state', status: 'queued' });
    expect(await it().send(run_id, { type: 'pause' })).toEqual(accepted);
    expect(await it().send(run_id, { type: 'resume' })).toEqual(accepted);
    expect(await it().send(run_id, { type: 'resume' })).toEqual({ type: 'invalid_state', status: 'queued' });
  });

  test('no call begins while a command is unseen, and nothing of that write happens', async () => {
    const run_id = await it().create();
    const { claim } = await it().claim(run_id);
    await it().send(run_id, { type: 'pause' });
    const begins = { ledger: [{ tool_use_id: 'a', entry: ledgerEntry('a') }] };
    expect(await it().store.commit(it().write(claim, 1, { type: 'keep' }, begins))).toMatchObject({ type: 'inbox_changed', inbox: [{ command: { type: 'pause' } }] });
    expect(await it().store.ledger(run_id)).toEqual([]);
    expect((await it().store.read(run_id))?.stored.last_seq).toBe(1);
    const settles = { ledger: [{ tool_use_id: 'a', entry: { ...ledgerEntry('a'), status: 'settled' as const } }], events: [] };
    expect(await it().store.commit(it().write(claim, 1, { type: 'keep' }, settles))).toMatchObject({ type: 'committed' });
    await it().commits(it().write(claim, 1, { type: 'keep' }, { ...begins, inbox_seen: 1 }));
  });

  test('a pause that has been applied is pending no more', async () => {
    const run_id = await it().create();
    const { claim } = await it().claim(run_id);
    await it().send(run_id, { type: 'pause' });
    const applied = it().write(claim, 1, { type: 'pause' }, { status: 'paused', inbox_seen: 1, applies_inbox: true });
    await it().commits(applied);
    expect(await it().send(run_id, { type: 'resume' })).toEqual(accepted);
    const again = await it().claim(run_id, 3);
    await it().commits(it().write(again.claim, 2, { type: 'keep' }, { inbox_seen: 2, applies_inbox: true }));
    expect(await it().send(run_id, { type: 'resume' })).toEqual({ type: 'invalid_state', status: 'running' });
  });

  test('a word is taken for a call that waits for one, once; what wakes the run tells of it', async () => {
    const run_id = await it().create();
    const { claim } = await it().claim(run_id);
    const word = (tool_use_id: string) => ({ type: 'outcome', tool_use_id, outcome: 'happened', by: 'ann' } as const);
    expect(await it().send(run_id, word('a'))).toEqual({ type: 'invalid_state', status: 'queued' });
    await it().commits(it().write(claim, 1, { type: 'pause' }, { status: 'paused', pending: ['a', 'b'] }));
    expect(await it().send(run_id, word('c'))).toEqual({ type: 'invalid_state', status: 'paused' });
    expect(await it().send(run_id, word('a'))).toEqual(accepted);
    expect(await it().send(run_id, word('a'))).toEqual({ type: 'already_decided' });
    expect(await it().jobs(run_id)).toEqual(['turn 1', 'turn 3']);
    const again = await it().claim(run_id, 3);
    expect(again.claimed.inbox).toMatchObject([{ command: word('a') }]);
    // A word that comes while the calls are taken off is not left behind.
    expect(await it().send(run_id, word('b'))).toEqual(accepted);
    const goesOn = { inbox_seen: 1, applies_inbox: true };
    expect(await it().store.commit(it().write(again.claim, 2, { type: 'keep' }, goesOn))).toMatchObject({ type: 'inbox_changed', inbox: [{ command: word('b') }] });
    await it().commits(it().write(again.claim, 2, { type: 'keep' }, { ...goesOn, inbox_seen: 2 }));
    expect(await it().send(run_id, word('b'))).toEqual({ type: 'already_decided' });
  });

  test('a word on an approval is taken for the very call that waits, once, and leaves room for one on how it went', async () => {
    const run_id = await it().create();
    const { claim } = await it().claim(run_id);
    const word = (digest: string, decision: 'approve' | 'deny' = 'approve') => ({ type: 'approval', tool_use_id: 'a', digest, decision, by: 'ann', reason: null } as const);
    const went = { type: 'outcome', tool_use_id: 'a', outcome: 'happened', by: 'ann' } as const;
    const refused = { type: 'invalid_state', status: 'paused' };
    await it().commits(it().write(claim, 1, { type: 'pause' }, { status: 'paused', pending: ['a sha256:1'] }));
    expect(await it().send(run_id, word('sha256:2'))).toEqual(refused);
    expect(await it().send(run_id, went)).toEqual(refused);
    const words = await Promise.all([word('sha256:1'), word('sha256:1', 'deny'), word('sha256:1'), word('sha256:1'), word('sha256:1')].map((each) => it().send(run_id, each)));
    expect(words.map(({ type }) => type).sort()).toEqual(['accepted', ...Array.from({ length: 4 }, () => 'already_decided')]);
    const again = await it().claim(run_id, 3);
    expect(again.claimed.inbox).toHaveLength(1);
    await it().commits(it().write(again.claim, 2, { type: 'pause' }, { status: 'paused', inbox_seen: 1, applies_inbox: true, pending: ['a'] }));
    expect(await it().send(run_id, word('sha256:1'))).toEqual({ type: 'already_decided' });
    expect(await it().send(run_id, went)).toEqual(accepted);
  });

  test('a word on an approval comes too late for a run that is being cancelled or has ended, unless it had one', async () => {
    const word = (tool_use_id: string) => ({ type: 'approval', tool_use_id, digest: 'd', decision: 'approve', by: 'ann', reason: null } as const);
    const run_id = await it().create();
    const { claim } = await it().claim(run_id);
    await it().commits(it().write(claim, 1, { type: 'pause' }, { status: 'paused', pending: ['a d', 'b d'] }));
    expect(await it().send(run_id, word('a'))).toEqual(accepted);
    expect(await it().send(run_id, { type: 'cancel' })).toEqual(accepted);
    expect(await it().send(run_id, word('b'))).toEqual({ type: 'invalid_state', status: 'paused' });
    const again = await it().claim(run_id, 3);
    await it().commits(it().write(again.claim, 2, { type: 'end' }, { status: 'cancelled', inbox_seen: 2, applies_inbox: true }));
    expect(await it().send(run_id, word('b'))).toEqual({ type: 'invalid_state', status: 'cancelled' });
    expect(await it().send(run_id, word('a'))).toEqual({ type: 'already_decided' });
  });

  test('cancel is accepted once; a second one has no second effect, and nothing else is taken after it', async () => {
    const { run_id } = await it().after({ type: 'pause' }, 'paused');
    expect(await it().send(run_id, { type: 'cancel' })).toEqual(accepted);
    expect(await it().send(run_id, { type: 'cancel' })).toEqual(accepted);
    expect(await it().jobs(run_id)).toEqual(['turn 1', 'turn 3']);
    for (const command of [{ type: 'steer', text: 'x' }, { type: 'pause' }, { type: 'resume' }] as const) {
      expect(await it().send(run_id, command)).toEqual({ type: 'invalid_state', status: 'paused' });
    }
    expect((await it().claim(run_id, 3)).claimed.inbox_in).toBe(1);
  });

  test('a cancel of a run that nobody has claimed makes its old job stale', async () => {
    const run_id = await it().create();
    expect(await it().send(run_id, { type: 'cancel' })).toEqual(accepted);
    expect(await it().jobs(run_id)).toEqual(['turn 1', 'turn 2']);
    expect(await it().store.claim({ run_id, n: 1, claim_id: 'c', held: null })).toEqual({ type: 'stale' });
    expect((await it().claim(run_id, 2)).claimed.inbox).toHaveLength(1);
  });

  test('a run with a time to run at keeps it, whatever comes, but a cancel', async () => {
    const run_id = await it().create({ run_at_ms: await it().store.now() + 60_000 });
    expect(await it().send(run_id, { type: 'steer', text: 'x' })).toEqual(accepted);
    expect(await it().jobs(run_id)).toEqual([]);
    expect(await it().send(run_id, { type: 'cancel' })).toEqual(accepted);
    expect(await it().jobs(run_id)).toEqual(['turn 2']);
    expect((await it().claim(run_id, 2)).claimed.inbox).toHaveLength(2);
  });

  test('more than a thousand that wait are refused, until some are applied', async () => {
    const run_id = await it().create();
    const { claim } = await it().claim(run_id);
    for (let n = 1; n <= 1000; n++) expect(await it().send(run_id, { type: 'steer', text: 'x' }, { command_id: `c${n}` })).toEqual(accepted);
    expect(await it().send(run_id, { type: 'steer', text: 'x' }, { command_id: 'more' })).toEqual({ type: 'inbox_full' });
    await it().commits(it().write(claim, 1, { type: 'keep' }, { inbox_seen: 1000, applies_inbox: true }));
    expect(await it().send(run_id, { type: 'steer', text: 'x' }, { command_id: 'more' })).toEqual(accepted);
  });
}
