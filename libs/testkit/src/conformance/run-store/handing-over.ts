import { expect, test } from 'vitest';
import type { Driver } from './driver.ts';

export function handoverTests(it: () => Driver): void {
  test('`keep` adds no job and leaves the claim', async () => {
    const { run_id, claim } = await it().after({ type: 'keep' });
    expect(await it().jobs(run_id)).toEqual(['turn 1']);
    await it().commits(it().write(claim, 2, { type: 'keep' }));
  });

  test('`job` adds the job of the next number before it answers', async () => {
    const { run_id } = await it().after({ type: 'job' });
    expect(await it().jobs(run_id)).toEqual(['turn 1', 'turn 2']);
    expect((await it().claim(run_id, 2)).claim).toMatchObject({ n: 2, epoch: 2 });
  });

  test('`wait` has no job until the time has come; then the pump adds the next number', async () => {
    const { run_id } = await it().after({ type: 'wait', delay_ms: 250 });
    expect(await it().jobs(run_id)).toEqual(['turn 1']);
    expect(await it().pump()).toEqual({ woken: 0, nudged: 0 });
    await it().under.passTime(260);
    expect(await it().pump()).toEqual({ woken: 1, nudged: 0 });
    expect(await it().jobs(run_id)).toEqual(['turn 1', 'turn 2']);
    expect(await it().pump()).toEqual({ woken: 0, nudged: 0 });
    await it().claim(run_id, 2);
  });

  test('a run that a command wakes before its time is told how long it still had to wait', async () => {
    const { run_id } = await it().after({ type: 'wait', delay_ms: 60_000 });
    const steer = { run_id, command_id: 'early', command: { type: 'steer' as const, text: 'x' }, not_after_ms: await it().later() };
    expect(await it().store.command(steer)).toEqual({ type: 'accepted' });
    const { claim, claimed } = await it().claim(run_id, 3);
    expect(claimed.wait_ms).toBeGreaterThan(50_000);
    expect(claimed.wait_ms).toBeLessThanOrEqual(60_000);
    await it().commits(it().write(claim, 2, { type: 'job' }, { inbox_seen: 1, applies_inbox: true }));
    expect((await it().claim(run_id, 4)).claimed.wait_ms).toBe(0);
  });

  test('`pause` has no job, however long', async () => {
    const { run_id } = await it().after({ type: 'pause' }, 'paused');
    await it().under.passTime(it().under.graceMs + 10);
    expect(await it().pump()).toEqual({ woken: 0, nudged: 0 });
    expect(await it().jobs(run_id)).toEqual(['turn 1']);
    expect((await it().store.read(run_id))?.status).toBe('paused');
  });

  test('`end` adds the finish job, which is looked for until the run is finished', async () => {
    const { run_id } = await it().after({ type: 'end' }, 'completed');
    expect(await it().jobs(run_id)).toEqual(['finish', 'turn 1']);
    await it().under.loseJob({ type: 'finish', run_id, n: 0 });
    await it().under.passTime(it().under.graceMs + 10);
    expect(await it().pump()).toEqual({ woken: 0, nudged: 1 });
    expect(await it().jobs(run_id)).toEqual(['finish', 'turn 1']);

    await it().store.finished(run_id);
    await it().store.finished(run_id);
    await it().under.loseJob({ type: 'finish', run_id, n: 0 });
    await it().under.passTime(it().under.graceMs + 10);
    expect(await it().pump()).toEqual({ woken: 0, nudged: 0 });
  });

  test('`finished` of a run that has not ended changes nothing', async () => {
    const run_id = await it().create();
    await it().store.finished(run_id);
    await it().under.loseJob({ type: 'turn', run_id, n: 1 });
    await it().under.passTime(it().under.graceMs + 10);
    expect((await it().pump()).nudged).toBe(1);
  });

  test.each([{ type: 'wait', delay_ms: 1 }, { type: 'pause' }, { type: 'end' }] as const)(
    '`$type` is refused while a command is in the inbox that the claimant has not seen', async (next) => {
      const run_id = await it().create();
      const { claim } = await it().claim(run_id);
      await it().send(run_id, { type: 'steer', text: 'left' }, { command_id: 'c1' });
      await it().send(run_id, { type: 'steer', text: 'right' }, { command_id: 'c2' });
      const entries = [{ command_id: 'c1', command: { type: 'steer', text: 'left' } }, { command_id: 'c2', command: { type: 'steer', text: 'right' } }];
      expect(await it().store.commit(it().write(claim, 1, next))).toEqual({ type: 'inbox_changed', inbox: entries });
      expect(await it().store.commit(it().write(claim, 1, next, { inbox_seen: 1 }))).toEqual({ type: 'inbox_changed', inbox: entries.slice(1) });
      expect(await it().logOf(run_id)).toHaveLength(1);
      expect(await it().jobs(run_id)).toEqual(['turn 1']);
      const status = next.type === 'end' ? 'completed' : 'running';
      await it().commits(it().write(claim, 1, next, { inbox_seen: 2, applies_inbox: true, status }));
    });

  test('`keep` and `job` go on, and tell of the commands that have not been seen', async () => {
    const run_id = await it().create();
    const { claim } = await it().claim(run_id);
    await it().send(run_id, { type: 'steer', text: 'left' }, { command_id: 'c1' });
    const inbox = [{ command_id: 'c1', command: { type: 'steer', text: 'left' } }];
    expect(await it().store.commit(it().write(claim, 1, { type: 'keep' }))).toEqual({ type: 'committed', inbox });
    expect(await it().store.commit(it().write(claim, 2, { type: 'job' }))).toEqual({ type: 'committed', inbox });
    expect((await it().claim(run_id, 2)).claimed).toMatchObject({ inbox, inbox_in: 1 });
  });

  test('applied commands leave the inbox, later ones stay', async () => {
    const run_id = await it().create();
    const { claim } = await it().claim(run_id);
    for (const id of ['c1', 'c2', 'c3']) await it().send(run_id, { type: 'steer', text: id }, { command_id: id });
    const c3 = { command_id: 'c3', command: { type: 'steer', text: 'c3' } };
    const seen = it().write(claim, 1, { type: 'keep' }, { inbox_seen: 2, applies_inbox: true });
    expect(await it().store.commit(seen)).toEqual({ type: 'committed', inbox: [c3] });
    expect(await it().store.commit(seen)).toEqual({ type: 'committed', inbox: [c3] });
    expect((await it().claim(run_id)).claimed).toMatchObject({ inbox: [c3], inbox_in: 3 });
  });
}
