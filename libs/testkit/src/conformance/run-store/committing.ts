import { expect, test } from 'vitest';
import { eventText, ledgerEntry, newRunId, type Driver } from './driver.ts';

export function commitTests(it: () => Driver): void {
  /** Everything a reader could see of a run. */
  async function everything(run_id: string) {
    const { store } = it();
    return [await store.read(run_id), await it().logOf(run_id), await store.ledger(run_id), await it().jobs(run_id)];
  }

  test('writes events, state, transcript and ledger together', async () => {
    const run_id = await it().create();
    const { claim } = await it().claim(run_id);
    const changes = { fields: { status: '"running"', answer: '"€ and \\u0000"' }, generation: 1, replaces: false, messages: ['{"m":2}', '{"m":3}'] };
    const ledger = [{ tool_use_id: 'a', entry: ledgerEntry('a') }];
    await it().commits(it().write(claim, 1, { type: 'keep' }, { events: [eventText(2), eventText(3, '„ü“')], changes, ledger, last_ts: 1_700_000_001.123 }));
    expect(await it().store.read(run_id)).toEqual({
      tenant: 'acme', status: 'running', archived_seq: 0,
      stored: {
        fields: { status: '"running"', answer: '"€ and \\u0000"' }, last_seq: 3, last_ts: 1_700_000_001.123, epoch: 1, generation: 1,
        messages: ['{"role":"user"}', '{"m":2}', '{"m":3}'],
      },
    });
    expect(await it().logOf(run_id)).toEqual([eventText(1), eventText(2), eventText(3, '„ü“')]);
    expect(await it().store.ledger(run_id)).toEqual([ledgerEntry('a')]);
  });

  test('begins a new generation of the transcript where it is told to', async () => {
    const run_id = await it().create();
    const { claim } = await it().claim(run_id);
    const changes = { fields: {}, generation: 2, replaces: true, messages: ['{"m":9}'] };
    await it().commits(it().write(claim, 1, { type: 'keep' }, { changes }));
    expect((await it().store.read(run_id))?.stored).toMatchObject({ generation: 2, messages: ['{"m":9}'] });
  });

  test('takes what is larger than a script can unpack at once', async () => {
    const run_id = await it().create();
    const { claim } = await it().claim(run_id);
    const many = Array.from({ length: 9001 }, (_, index) => JSON.stringify({ index }));
    const fields = Object.fromEntries(many.map((text, index) => [`f${index}`, text]));
    await it().commits(it().write(claim, 1, { type: 'keep' }, { changes: { fields, generation: 1, replaces: true, messages: many } }));
    const stored = (await it().store.read(run_id))?.stored;
    expect(stored?.messages).toEqual(many);
    expect(stored?.fields).toMatchObject(fields);
  });

  test('with no events leaves seq, time and the epoch of the last event alone', async () => {
    const run_id = await it().create();
    const { claim } = await it().claim(run_id);
    await it().commits(it().write(claim, 1, { type: 'keep' }, { events: [], ledger: [{ tool_use_id: 'a', entry: ledgerEntry('a') }] }));
    expect((await it().store.read(run_id))?.stored).toMatchObject({ last_seq: 1, last_ts: 1_700_000_000.25, epoch: 0 });
    await it().commits(it().write(claim, 1, { type: 'keep' }));
  });

  test('is fenced, and changes nothing at all, unless epoch, claim id and seq are all equal', async () => {
    const run_id = await it().create();
    const { claim: zombie } = await it().claim(run_id);
    const { claim } = await it().claim(run_id);
    const before = await everything(run_id);
    const full = {
      changes: { fields: { status: '"x"' }, generation: 2, replaces: true, messages: ['{"m":1}'] }, ledger: [{ tool_use_id: 'a', entry: ledgerEntry('a') }],
      open_calls: ['a'], applies_inbox: true,
    };
    const refused = [
      it().write(zombie, 1, { type: 'job' }, full),
      it().write({ ...claim, claim_id: zombie.claim_id }, 1, { type: 'job' }, full),
      it().write({ ...claim, epoch: zombie.epoch }, 1, { type: 'job' }, full),
      it().write(claim, 0, { type: 'job' }, full),
      it().write(claim, 2, { type: 'end' }, full),
      it().write({ ...claim, claim_id: '' }, 1, { type: 'job' }, full),
    ];
    for (const write of refused) {
      expect(await it().store.commit(write)).toEqual({ type: 'fenced' });
      expect(await everything(run_id)).toEqual(before);
    }
    await it().commits(it().write(claim, 1, { type: 'job' }, full));
  });

  test('is fenced by its seq alone, from before what was written since though it adds no event, and from beyond it', async () => {
    const run_id = await it().create();
    const { claim } = await it().claim(run_id);
    const begins = { events: [], ledger: [{ tool_use_id: 'a', entry: ledgerEntry('a') }] };
    await it().commits(it().write(claim, 1, { type: 'keep' }));
    const before = await everything(run_id);
    for (const write of [it().write(claim, 1, { type: 'keep' }, begins), it().write(claim, 3, { type: 'keep' })]) {
      expect(await it().store.commit(write)).toEqual({ type: 'fenced' });
      expect(await everything(run_id)).toEqual(before);
    }
  });

  test('of a run that nobody knows is fenced', async () => {
    const write = it().write({ run_id: newRunId(), n: 1, epoch: 1, claim_id: 'c' }, 0, { type: 'keep' });
    expect(await it().store.commit(write)).toEqual({ type: 'fenced' });
  });

  test('sent again is answered as the first time, and writes nothing', async () => {
    const run_id = await it().create();
    const { claim } = await it().claim(run_id);
    const kept = it().write(claim, 1, { type: 'keep' }, { changes: { fields: {}, generation: 1, replaces: false, messages: ['{"m":2}'] } });
    await it().commits(kept);
    const before = await everything(run_id);
    await it().commits(kept);
    expect(await everything(run_id)).toEqual(before);
  });

  test.each([{ type: 'job' }, { type: 'wait', delay_ms: 60_000 }, { type: 'pause' }, { type: 'end' }] as const)(
    'that ended its claim by $type is still answered when sent again, but nothing else of that claim is', async (next) => {
      const { run_id, claim, last } = await it().after(next, next.type === 'end' ? 'completed' : 'running');
      const before = await everything(run_id);
      await it().commits(last);
      expect(await it().store.commit({ ...last, commit_id: 'another' })).toEqual({ type: 'fenced' });
      expect(await it().store.commit({ ...last, claim: { ...claim, claim_id: 'another' } })).toEqual({ type: 'fenced' });
      expect(await it().store.commit(it().write(claim, 2, { type: 'keep' }))).toEqual({ type: 'fenced' });
      expect(await everything(run_id)).toEqual(before);
    });

  test('of an older commit id is fenced', async () => {
    const run_id = await it().create();
    const { claim } = await it().claim(run_id);
    const first = it().write(claim, 1, { type: 'keep' });
    await it().commits(first);
    await it().commits(it().write(claim, 2, { type: 'keep' }));
    expect(await it().store.commit(first)).toEqual({ type: 'fenced' });
    expect(await it().logOf(run_id)).toHaveLength(3);
  });
}
