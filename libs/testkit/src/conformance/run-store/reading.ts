import { expect, test } from 'vitest';
import { eventText, ledgerEntry, newRunId, type Driver } from './driver.ts';

export function readTests(it: () => Driver): void {
  const everyRun = { tenant: 'acme', status: null, agent: null, tag: null, session_id: null, before_id: null, limit: 100 };

  test('of a run that nobody knows answer null', async () => {
    const run_id = newRunId();
    expect([await it().store.read(run_id), await it().store.events(run_id, 0, 10), await it().store.ledger(run_id)]).toEqual([null, null, null]);
  });

  test('events after a seq, at most so many', async () => {
    const run_id = await it().create({ events: [1, 2, 3, 4].map((seq) => eventText(seq)) });
    expect(await it().store.events(run_id, 1, 2)).toEqual({ first_seq: 1, last_seq: 4, moves: [], events: [eventText(2), eventText(3)] });
    expect(await it().store.events(run_id, 4, 2)).toEqual({ first_seq: 1, last_seq: 4, moves: [], events: [] });
  });

  test('the ledger holds the last word on every call', async () => {
    const run_id = await it().create();
    const { claim } = await it().claim(run_id);
    expect(await it().store.ledger(run_id)).toEqual([]);
    const settled = ledgerEntry('a', { status: 'settled', settled_epoch: 1 });
    for (const [seq, entry] of [ledgerEntry('a'), settled].entries()) {
      await it().commits(it().write(claim, seq + 1, { type: 'keep' }, { ledger: [{ tool_use_id: 'a', entry }] }));
    }
    expect(await it().store.ledger(run_id)).toEqual([settled]);
  });

  test('lists a tenant’s runs, newest first, page by page', async () => {
    const ids = [];
    for (let i = 0; i < 5; i++) ids.unshift(await it().create());
    await it().create({ tenant: 'other' });
    expect(await it().store.list(everyRun)).toEqual({ run_ids: ids, next_before_id: null });
    const first = await it().store.list({ ...everyRun, limit: 2 });
    expect(first).toEqual({ run_ids: ids.slice(0, 2), next_before_id: ids[1] });
    const second = await it().store.list({ ...everyRun, limit: 3, before_id: first.next_before_id });
    expect(second).toEqual({ run_ids: ids.slice(2), next_before_id: null });
    expect(await it().store.list({ ...everyRun, tenant: 'nobody' })).toEqual({ run_ids: [], next_before_id: null });
  });

  test('lists by status, agent and tag', async () => {
    const plain = await it().create();
    const tagged = await it().create({ tags: ['blue', 'a b'], agent: 'painter' });
    const { run_id: ended } = await it().after({ type: 'end' }, 'failed');
    const list = async (fields: object) => (await it().store.list({ ...everyRun, ...fields })).run_ids;
    expect(await list({ status: 'failed' })).toEqual([ended]);
    expect(await list({ status: 'queued' })).toEqual([tagged, plain]);
    expect(await list({ live: true })).toEqual([tagged, plain]);
    expect(await list({ live: true, agent: 'assistant' })).toEqual([plain]);
    expect(await list({ agent: 'painter' })).toEqual([tagged]);
    expect(await list({ tag: 'a b' })).toEqual([tagged]);
    expect(await list({ tag: 'blu' })).toEqual([]);
    expect(await list({ status: 'failed', agent: 'painter' })).toEqual([]);
  });

  test('lists by the tags that a commit has changed', async () => {
    const run_id = await it().create({ tags: ['old'] });
    const { claim } = await it().claim(run_id);
    await it().commits(it().write(claim, 1, { type: 'keep' }, { changes: { fields: { tags: '["new"]' }, generation: 1, replaces: false, messages: [] } }));
    const list = async (tag: string) => (await it().store.list({ ...everyRun, tag })).run_ids;
    expect([await list('old'), await list('new')]).toEqual([[], [run_id]]);
  });

  test('a key is reserved once per tenant, for the run that came first', async () => {
    const not_after_ms = await it().later();
    const key = { tenant: 'acme', key: 'k', body_hash: 'h1', run_id: newRunId(), not_after_ms };
    const first = { run_id: key.run_id, body_hash: 'h1' };
    expect(await it().store.reserveKey(key)).toEqual({ type: 'reserved', ...first });
    expect(await it().store.reserveKey({ ...key, run_id: newRunId(), body_hash: 'h2' })).toEqual({ type: 'held', ...first });
    const other = { ...key, tenant: 'other', run_id: newRunId() };
    expect(await it().store.reserveKey(other)).toEqual({ type: 'reserved', run_id: other.run_id, body_hash: 'h1' });
  });

  test('a key is not reserved after its time', async () => {
    const key = { tenant: 'acme', key: 'k', body_hash: 'h', run_id: newRunId() };
    expect(await it().store.reserveKey({ ...key, not_after_ms: await it().store.now() - 1 })).toEqual({ type: 'too_late' });
    expect((await it().store.reserveKey({ ...key, not_after_ms: await it().later() })).type).toBe('reserved');
  });
}
