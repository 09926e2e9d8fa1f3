import { expect, test } from 'vitest';
import { eventText, newRunId, type Driver } from './driver.ts';

export function manyTests(it: () => Driver): void {
  test('appends are answered in order, each for itself', async () => {
    const claims = [];
    for (let i = 0; i < 3; i++) claims.push((await it().claim(await it().create())).claim);
    const [a, b, c] = claims as [typeof claims[0], typeof claims[0], typeof claims[0]];
    await it().send(c!.run_id, { type: 'cancel' }, { command_id: 'stop' });
    const replies = await it().store.appendMany([
      it().append(a!, 1, { events: [eventText(2), eventText(3)] }),
      it().append(b!, 7),
      it().append(c!, 1),
      it().append({ ...a!, run_id: newRunId() }, 1),
    ]);
    expect(replies).toEqual([
      { type: 'committed', inbox: [] }, { type: 'fenced' },
      { type: 'committed', inbox: [{ command_id: 'stop', command: { type: 'cancel' } }] }, { type: 'fenced' },
    ]);
    expect(await it().logOf(a!.run_id)).toEqual([eventText(1), eventText(2), eventText(3)]);
    expect(await it().logOf(b!.run_id)).toEqual([eventText(1)]);
    expect((await it().store.read(a!.run_id))?.stored).toMatchObject({ last_seq: 3, epoch: 1, last_ts: 1_700_000_001.5 });
  });

  test('an append sent again writes nothing, and one of a claim that is over is fenced', async () => {
    const run_id = await it().create();
    const { claim } = await it().claim(run_id);
    const append = it().append(claim, 1);
    for (let i = 0; i < 2; i++) expect(await it().store.appendMany([append])).toEqual([{ type: 'committed', inbox: [] }]);
    expect(await it().logOf(run_id)).toHaveLength(2);
    await it().claim(run_id);
    expect(await it().store.appendMany([it().append(claim, 2)])).toEqual([{ type: 'fenced' }]);
  });

  test('no appends and no requests are answered with nothing', async () => {
    expect(await it().store.appendMany([])).toEqual([]);
    expect(await it().store.watch([])).toEqual([]);
  });

  test('a watch tells which claims hold, and what has come in that was not seen', async () => {
    const { claim: held } = await it().claim(await it().create());
    const { claim: lost } = await it().claim(await it().create());
    await it().claim(lost.run_id);
    const { claim: over } = await it().after({ type: 'job' });
    for (const id of ['c1', 'c2']) await it().send(held.run_id, { type: 'steer', text: id }, { command_id: id });
    const c2 = { command_id: 'c2', command: { type: 'steer', text: 'c2' } };
    expect(await it().store.watch([
      { claim: lost, inbox_seen: 0 }, { claim: held, inbox_seen: 1 }, { claim: over, inbox_seen: 0 }, { claim: held, inbox_seen: 2 },
    ])).toEqual([{ type: 'fenced' }, { type: 'held', inbox: [c2] }, { type: 'fenced' }, { type: 'held', inbox: [] }]);
  });

  test('runs under way are counted by status, calls in doubt and waits too, and a write sent again counts once', async () => {
    const counts = () => it().store.activeRuns(0);
    const before = await counts();
    expect(before).toEqual({ queued: 0, running: 0, paused: 0, in_doubt: 0, due: 0, webhooks: 0 });
    const { last } = await it().after({ type: 'job' });
    await it().create();
    expect(await counts()).toEqual({ ...before, queued: 1, running: 1 });
    await it().store.commit(last);
    await it().after({ type: 'wait', delay_ms: 60_000 });
    const { run_id, claim } = await it().after({ type: 'keep' });
    await it().commits(it().write(claim, 2, { type: 'pause' }, { status: 'paused', pending: ['a', 'b', 'c sha256:1'] }));
    expect(await counts()).toEqual({ queued: 1, running: 2, paused: 1, in_doubt: 2, due: 1, webhooks: 0 });
    await it().send(run_id, { type: 'resume' });
    const { claim: again } = await it().claim(run_id, 3);
    await it().commits(it().write(again, 3, { type: 'end' }, { status: 'failed', inbox_seen: 1, applies_inbox: true }));
    expect(await counts()).toEqual({ queued: 1, running: 2, paused: 0, in_doubt: 0, due: 1, webhooks: 0 });
  });
}
