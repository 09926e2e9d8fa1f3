import { randomUUID } from 'node:crypto';
import type { ChildEnded } from '@treadle/core';
import { expect, test } from 'vitest';
import { eventText, newRunId, noChanges, ownSession, type Driver } from './driver.ts';

export function treeTests(it: () => Driver): void {
  /** A run that is claimed, and the claim. */
  const parent = async () => {
    const run_id = await it().create();
    return { run_id, ...await it().claim(run_id) };
  };
  const start = async (claim: Awaited<ReturnType<typeof parent>>['claim'], run_id = newRunId()) => ({ run_id, reply: await it().store.create({
    run_id, tenant: 'acme', agent: 'helper', tags: [], priority: 50, events: [eventText(1)], last_ts: 1, changes: noChanges, run_at_ms: null,
    not_after_ms: await it().later(), session: ownSession(run_id), parent: claim,
  }) });
  const told = (run_id: string, type: 'cancel' | 'pause' | 'resume', command_id: string = randomUUID()) => ({ run_id, command_id, command: { type } });
  const ended = (child_run_id: string): ChildEnded => ({
    type: 'child_ended', child_run_id, status: 'completed', stop_reason: 'answered', text: 'yes', tool_calls: 0,
    usage: { input_tokens: 0, output_tokens: 0, cached_tokens: 0, wasted_tokens: 0, cost_usd: 0 } });

  test('a child is created under its parent’s claim, once', async () => {
    const { claim } = await parent();
    const { run_id, reply } = await start(claim);
    expect(reply).toEqual({ type: 'created', behind: null });
    expect((await start(claim, run_id)).reply).toEqual({ type: 'exists' });
    expect(await it().jobs(run_id)).toEqual(['turn 1']);
  });

  test('no child is created under a claim that does not hold, or for a run that is being cancelled, has ended or is not there', async () => {
    const { run_id, claim } = await parent();
    const fenced = async (held = claim) => {
      const child = await start(held);
      expect(child.reply).toEqual({ type: 'fenced' });
      expect([await it().store.read(child.run_id), await it().jobs(child.run_id)]).toEqual([null, []]);
    };
    await fenced({ ...claim, claim_id: randomUUID() });
    await fenced({ ...claim, epoch: claim.epoch + 1 });
    await fenced({ ...claim, run_id: newRunId() });
    await it().send(run_id, { type: 'cancel' });
    await fenced();
    const over = await parent();
    await it().commits(it().write(over.claim, 1, { type: 'end' }, { status: 'completed' }));
    await fenced(over.claim);
    const left = await parent();
    await it().store.handBack(left.claim);
    await fenced(left.claim);
  });

  test('a commit tells other runs: each gets the command and, where it has none, a job', async () => {
    const { claim } = await parent();
    const { run_id: waiting } = await it().after({ type: 'pause' }, 'paused');
    const fresh = await it().create();
    const write = it().write(claim, 1, { type: 'job' }, { tell: [told(waiting, 'resume', 'r'), told(fresh, 'cancel', 'c')] });
    await it().commits(write);
    expect(await it().jobs(waiting)).toEqual(['turn 1', 'turn 3']);
    expect((await it().claim(waiting, 3)).claimed.inbox).toEqual([{ command_id: 'r', command: { type: 'resume' } }]);
    expect((await it().claim(fresh, 2)).claimed.inbox).toEqual([{ command_id: 'c', command: { type: 'cancel' } }]);
    // Sent again after a cut connection.
    expect((await it().store.commit(write)).type).toBe('committed');
    expect(await it().jobs(waiting)).toEqual(['turn 1', 'turn 3']);
  });

  test('a commit that is refused tells nobody', async () => {
    const { run_id, claim } = await parent();
    const other = await it().after({ type: 'pause' }, 'paused');
    const tell = { tell: [told(other.run_id, 'resume')] };
    expect(await it().store.commit(it().write({ ...claim, claim_id: 'x' }, 1, { type: 'job' }, tell))).toEqual({ type: 'fenced' });
    await it().send(run_id, { type: 'steer', text: 'wait' });
    expect((await it().store.commit(it().write(claim, 1, { type: 'end' }, { status: 'completed', ...tell }))).type).toBe('inbox_changed');
    expect(await it().jobs(other.run_id)).toEqual(['turn 1']);
  });

  test('who has ended, is not there or cannot take it is passed over', async () => {
    const { claim } = await parent();
    const { run_id: over } = await it().after({ type: 'end' }, 'failed');
    const { run_id: busy } = await it().after({ type: 'job' });
    await it().commits(it().write(claim, 1, { type: 'job' }, { tell: [told(over, 'cancel'), told(newRunId(), 'cancel'), told(busy, 'resume')] }));
    expect(await it().jobs(over)).toEqual(['finish', 'turn 1']);
    expect((await it().claim(busy, 2)).claimed.inbox).toEqual([]);
  });

  test('the end of a child wakes its parent, and finds room in a full inbox', async () => {
    const { run_id, claim } = await parent();
    await it().commits(it().write(claim, 1, { type: 'pause' }, { status: 'paused' }));
    for (let index = 0; index < 1000; index++) await it().send(run_id, { type: 'steer', text: 'x' });
    expect(await it().send(run_id, { type: 'steer', text: 'x' })).toEqual({ type: 'inbox_full' });
    const child = await parent();
    await it().commits(it().write(child.claim, 1, { type: 'end' }, { status: 'completed', tell: [{ run_id, command_id: 'end', command: ended(child.run_id) }] }));
    const { claimed } = await it().claim(run_id, 3);
    expect(claimed.inbox.at(-1)).toEqual({ command_id: 'end', command: ended(child.run_id) });
    expect(claimed.inbox_in).toBe(1001);
  });
}
