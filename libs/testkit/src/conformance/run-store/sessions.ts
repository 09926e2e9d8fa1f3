import { expect, test } from 'vitest';
import type { CreateSession } from '@treadle/engine';
import { newRunId, ownSession, type Driver } from './driver.ts';

export function sessionTests(it: () => Driver): void {
  const join = (first: string, when_busy: CreateSession['when_busy'] = 'reject'): CreateSession => ({ id: ownSession(first).id, mode: 'join', when_busy });
  const ask = async (session: CreateSession, fields = {}) => {
    const run_id = newRunId();
    const reply = await it().store.create({
      run_id, tenant: 'acme', agent: 'a', tags: [], priority: 50, events: ['{"seq":1}'], last_ts: 1, changes: { fields: {}, generation: 1, replaces: false, messages: [] },
      run_at_ms: null, not_after_ms: await it().later(), session, ...fields,
    });
    return { run_id, reply };
  };
  const end = async (run_id: string, n = 1) => {
    const { claim, claimed } = await it().claim(run_id, n);
    await it().commits(it().write(claim, claimed.last_seq, { type: 'end' }, { status: 'completed', inbox_seen: claimed.inbox_in, applies_inbox: true }));
    await it().store.finished(run_id);
  };

  test('one run of a session at a time: while it has not ended, another is refused', async () => {
    const first = await it().create();
    expect((await ask(join(first))).reply).toEqual({ type: 'session_busy', run_id: first });
    await end(first);
    expect((await ask(join(first))).reply).toEqual({ type: 'created', behind: null });
  });

  test('a session is free as soon as its run has ended, before that run has done its last duty', async () => {
    const first = await it().create();
    const { claim } = await it().claim(first);
    await it().commits(it().write(claim, 1, { type: 'end' }, { status: 'completed' }));
    expect(await it().store.session(ownSession(first).id)).toEqual({ tenant: 'acme', current: null, last: first });
    const next = await ask(join(first));
    expect(next.reply).toEqual({ type: 'created', behind: null });
    await it().store.finished(first);
    expect((await it().claim(next.run_id)).claimed.session_last).toBe(first);
    expect((await ask(join(first))).reply).toEqual({ type: 'session_busy', run_id: next.run_id });
  });

  test('a run that waits for its session has no job until those before it have ended, in order', async () => {
    const first = await it().create();
    const second = await ask(join(first, 'queue'));
    const third = await ask(join(first, 'queue'));
    expect([second.reply, third.reply]).toEqual([{ type: 'created', behind: first }, { type: 'created', behind: first }]);
    expect([await it().jobs(second.run_id), await it().jobs(third.run_id)]).toEqual([[], []]);
    await it().under.passTime(it().under.graceMs + 10);
    await it().pump();
    expect(await it().jobs(second.run_id)).toEqual([]);
    await end(first);
    expect([await it().jobs(second.run_id), await it().jobs(third.run_id)]).toEqual([['turn 1'], []]);
    expect((await it().claim(second.run_id)).claimed.session_last).toBe(first);
  });

  test('one that was cancelled while it waited is passed over', async () => {
    const first = await it().create();
    const second = await ask(join(first, 'queue'));
    const third = await ask(join(first, 'queue'));
    await it().store.command({ run_id: second.run_id, command_id: 'c', command: { type: 'cancel' }, not_after_ms: await it().later() });
    await end(second.run_id, 2);
    expect(await it().jobs(third.run_id)).toEqual([]);
    await end(first);
    expect(await it().jobs(third.run_id)).toEqual(['turn 1']);
  });

  test('the last duty twice starts the next run once', async () => {
    const first = await it().create();
    const second = await ask(join(first, 'queue'));
    await end(first);
    await it().store.finished(first);
    expect(await it().jobs(second.run_id)).toEqual(['turn 1']);
    expect((await ask(join(first))).reply).toEqual({ type: 'session_busy', run_id: second.run_id });
  });

  test('can be begun without a run, read, and listed newest first; runs are listed by session', async () => {
    const ids = [ownSession(newRunId()).id, ownSession(newRunId()).id];
    for (const id of ids) expect(await it().store.createSession({ id, tenant: 'acme', not_after_ms: await it().later() })).toBe('created');
    expect(await it().store.session(ids[0]!)).toEqual({ tenant: 'acme', current: null, last: null });
    const { run_id } = await ask({ id: ids[0]!, mode: 'join', when_busy: 'reject' });
    expect(await it().store.session(ids[0]!)).toEqual({ tenant: 'acme', current: run_id, last: null });
    await end(run_id);
    expect(await it().store.session(ids[0]!)).toEqual({ tenant: 'acme', current: null, last: run_id });
    expect(await it().store.listSessions({ tenant: 'acme', before_id: null, limit: 1 })).toMatchObject({ session_ids: [ids[1]], next_before_id: ids[1] });
    expect((await it().store.listSessions({ tenant: 'acme', before_id: ids[1]!, limit: 9 })).session_ids).toEqual([ids[0]]);
    expect(await it().store.session(ownSession(newRunId()).id)).toBeNull();
    expect((await it().store.list({ tenant: 'acme', status: null, agent: null, tag: null, session_id: ids[0]!, before_id: null, limit: 9 })).run_ids).toEqual([run_id]);
    expect(await it().store.createSession({ id: ownSession(newRunId()).id, tenant: 'acme', not_after_ms: 1 })).toBe('too_late');
  });

  test('a session that is not there, or is somebody else’s, is missing', async () => {
    const first = await it().create();
    expect((await ask(join(newRunId()))).reply).toEqual({ type: 'session_missing' });
    expect((await ask(join(first), { tenant: 'other' })).reply).toEqual({ type: 'session_missing' });
  });
}
