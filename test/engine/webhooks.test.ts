/** What is told of an ended run, and how the dispatcher goes through the outbox: over the store in memory, with a receiver that the test plays. */
import { defaultLimits, encodeEvent, evolve, idIn, initialState, stamp, utf8Length, type EventBody, type RunState, type WebhookAnswer } from '@treadle/core';
import { archiveRun, createRun, deliveryOf, finishRun, maxWebhookBytes, restoreRuns, runView, webhookBody, WebhookDispatcher, type DispatchDeps, type WebhookSending } from '@treadle/engine';
import { createMemoryArchive, createMemoryRunStore, testSpec } from '@treadle/testkit';
import { expect, test } from 'vitest';

const clock = { nowMs: () => 1_700_000_000_000, monotonicMs: () => performance.now() };
const random = { uuid: () => crypto.randomUUID(), jitter: () => 0 };
const ok: WebhookAnswer = { type: 'answered', status: 200, retry_after_ms: null };
const broke: WebhookAnswer = { type: 'failed', why: 'the connection broke' };

let made = 0;

function world(over: Partial<DispatchDeps> & { readonly timeout_ms?: number } = {}) {
  const store = createMemoryRunStore();
  const sent: (WebhookSending & { readonly answer: (answer: WebhookAnswer) => void })[] = [];
  const outcomes: string[] = [];
  const failures: unknown[] = [];
  const { timeout_ms = 60_000, ...deps } = over;
  const dispatcher = new WebhookDispatcher({
    outbox: store, jitter: () => 0.5, onOutcome: (outcome, { why }) => { outcomes.push(why === null ? outcome : `${outcome}: ${why}`); }, onFailure: (error) => { failures.push(error); },
    sender: { send: (sending) => new Promise((resolve) => {
      sent.push({ ...sending, answer: resolve });
      sending.signal.addEventListener('abort', () => { resolve({ type: 'failed', why: 'no answer in time' }); });
    }) },
    ...deps,
  }, { shards: [0], concurrency: 4, per_tenant: 4, per_lane: 2, timeout_ms, first_wait_ms: 1000 });
  /** A run that has ended, and its duties done. */
  async function ended(host = 'a.example'): Promise<string> {
    const run_id = idIn('run', 0, `018bcfe56800${(++made).toString(16).padStart(18, '0')}00`);
    const run = { tenant: 't', spec: testSpec(), agent_version: 'v', limits: defaultLimits, input: 'go', metadata: {}, tags: [], priority: 50, run_at: null, webhook: { url: `https://${host}/hook` } };
    const { state } = await createRun({ store, clock, random, shards: 1 }, run, { run_id, not_after_ms: Number.MAX_SAFE_INTEGER });
    const claimed = await store.claim({ run_id, n: 1, claim_id: 'c', held: null });
    if (claimed.type !== 'claimed') throw new Error(claimed.type);
    const { events, fields, after } = endOf(state, claimed.epoch);
    await store.commit({ claim: { run_id, n: 1, epoch: claimed.epoch, claim_id: 'c' }, expected_seq: state.last_seq, commit_id: 'e', status: 'cancelled', events, last_ts: after.last_ts, changes: { fields, generation: 1, replaces: false, messages: [] }, ledger: [], open_calls: [], pending: [], inbox_seen: 0, applies_inbox: false, next: { type: 'end' } });
    await finishRun({ store }, run_id);
    return run_id;
  }
  const settle = async (): Promise<void> => { for (let n = 0; n < 20; n++) await Promise.resolve(); await new Promise((resolve) => { setTimeout(resolve, 0); }); };
  const round = async (): Promise<void> => { await dispatcher.round(); await settle(); };
  return { store, sent, outcomes, failures, dispatcher, ended, settle, round, hosts: () => sent.map(({ target }) => 'url' in target ? new URL(target.url).host : '') };
}

function endOf(state: RunState, epoch: number): { events: string[]; fields: Record<string, string>; after: RunState } {
  const bodies: EventBody[] = [{ type: 'state_change', old: 'queued', new: 'cancelled', reason: 'interrupted' }, { type: 'run_end', status: 'cancelled', stop_reason: 'interrupted' }];
  let after = state;
  const events = bodies.map((body) => {
    const event = stamp(after, body, 1_700_000_001, epoch);
    after = evolve(after, event);
    return encodeEvent(event);
  });
  const changed = Object.entries(after).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(state[name as keyof RunState]));
  return { events, fields: Object.fromEntries(changed.filter(([name]) => !['last_seq', 'last_ts', 'epoch', 'transcript'].includes(name)).map(([name, value]) => [name, JSON.stringify(value)])), after };
}

test('an ended run is told once, with the same id and body at each attempt until it is delivered', async () => {
  const w = world();
  const run_id = await w.ended();
  await finishRun({ store: w.store }, run_id);
  await w.round();
  w.sent[0]!.answer(broke);
  await w.round();
  expect(w.sent).toHaveLength(1);
  w.store.passTime(1000);
  await w.round();
  expect(w.sent).toHaveLength(2);
  w.sent[1]!.answer({ type: 'answered', status: 503, retry_after_ms: 20_000 });
  await w.settle();
  w.store.passTime(6000);
  await w.round();
  expect(w.sent).toHaveLength(2);
  w.store.passTime(14_000);
  await w.round();
  w.sent[2]!.answer(ok);
  await w.round();
  expect(w.sent.map(({ id, body }) => [id, body])).toEqual(Array.from({ length: 3 }, () => [run_id.replace('run_', 'msg_'), w.sent[0]!.body]));
  expect(JSON.parse(w.sent[0]!.body)).toMatchObject({ type: 'run.cancelled', timestamp: '2023-11-14T22:13:21.000Z', data: { id: run_id, status: 'cancelled', stop_reason: 'interrupted' } });
  expect(w.outcomes).toEqual(['failed: the connection broke', 'failed: the receiver answered 503', 'delivered']);
  w.store.passTime(1e9);
  await w.round();
  expect(w.sent).toHaveLength(3);
});

test('a receiver that never takes it is asked for a day, then it is dead; one that says 410 is dead at once', async () => {
  const w = world();
  const [run_id] = [await w.ended()];
  for (let n = 0; n < 12; n++) {
    await w.round();
    w.sent.at(-1)!.answer(broke);
    await w.settle();
    w.store.passTime(8_000_000);
  }
  expect(w.sent).toHaveLength(11);
  expect(w.outcomes.at(-1)).toBe('dead: the connection broke');
  expect(await w.store.delivery(run_id, 't')).toMatchObject({ state: 'dead', attempts: 11 });
  const gone = await w.ended('b.example');
  await w.round();
  w.sent.at(-1)!.answer({ type: 'answered', status: 410, retry_after_ms: null });
  await w.settle();
  expect(await w.store.delivery(gone, 't')).toMatchObject({ state: 'dead', attempts: 1, last_status: 410 });
});

test('receivers that do not answer hold back their own alone, and never more than so many are under way', async () => {
  const w = world();
  for (let n = 0; n < 6; n++) await w.ended('dead.example');
  for (let n = 0; n < 5; n++) await w.ended(`host-${n % 2}.example`);
  await w.round();
  expect(w.sent).toHaveLength(4);
  expect(w.hosts().filter((host) => host === 'dead.example')).toHaveLength(2);
  // Those that answer make room for each other without a tick.
  for (let done = 0; done < w.sent.length && w.sent.length < 11; done++) {
    if (w.hosts()[done] !== 'dead.example') w.sent[done]!.answer(ok);
    await w.settle();
  }
  expect(w.hosts().filter((host) => host.startsWith('host-'))).toHaveLength(5);
  expect(w.hosts().filter((host) => host === 'dead.example')).toHaveLength(2);
});

test('an attempt is cut at its time-out', async () => {
  const w = world({ timeout_ms: 20 });
  await w.ended();
  await w.round();
  await new Promise((resolve) => { setTimeout(resolve, 40); });
  expect(w.outcomes).toEqual(['failed: no answer in time']);
});

test('what cannot be written down is reported, and sent again when its lease is over', async () => {
  const w = world();
  let away = true;
  const other = world({ outbox: { takeDeliveries: (shard, take) => w.store.takeDeliveries(shard, take), settleDelivery: (taken, how) => away ? Promise.reject(new Error('away')) : w.store.settleDelivery(taken, how) } });
  await w.ended();
  await other.round();
  other.sent[0]!.answer(ok);
  await other.round();
  expect([other.failures, other.outcomes, other.sent.length]).toMatchObject([[{ message: 'away' }], [], 1]);
  away = false;
  w.store.passTime(100_000);
  await other.round();
  other.sent[1]!.answer(ok);
  await other.settle();
  expect(other.outcomes).toEqual(['delivered']);
});

test('a process that ends lets attempts end for a while, breaks off the rest, and takes nothing more', async () => {
  const w = world();
  const [, second] = [await w.ended('a.example'), await w.ended('b.example')];
  await w.round();
  await w.ended('c.example');
  const closing = w.dispatcher.close(30);
  await w.settle();
  w.sent[0]!.answer(ok);
  await closing;
  await w.round();
  expect([w.sent.length, w.outcomes]).toEqual([2, ['delivered']]);
  // Nobody is blamed, and the next worker sends it at once.
  expect(await w.store.delivery(second, 't')).toMatchObject({ state: 'pending', attempts: 0 });
  expect((await w.store.takeDeliveries(0, { limit: 9, per_tenant: 9, per_lane: 9, busy: {}, lease_ms: 1 })).map(({ run_id }) => run_id)).toContain(second);
});

test('nobody is told of what nobody may see yet', async () => {
  let archived = false;
  const w = world({ mayTell: () => Promise.resolve(archived) });
  const run_id = await w.ended();
  await w.round();
  expect([w.sent, (await w.store.delivery(run_id, 't'))?.attempts]).toEqual([[], 0]);
  archived = true;
  w.store.passTime(1000);
  await w.round();
  expect(w.sent).toHaveLength(1);
});

const view = (over: Record<string, unknown>) => ({ ...runView({ ...initialState, run_id: 'run_1', spec: testSpec(), status: 'completed', ended_at: 1 }, 3), ...over });

test.each([
  ['a long answer', { answer: 'x'.repeat(400_000) }], ['one of quotes', { answer: '"'.repeat(400_000) }], ['one of control characters', { answer: '\u0001'.repeat(400_000) }], ['one of emoji', { answer: '🧵'.repeat(200_000) }],
  ['a large output beside it', { answer: 'short', output: { all: 'x'.repeat(400_000) } }], ['no answer and a large state', { answer: null, partial: { state: 'x'.repeat(400_000) } }], ['both large', { answer: 'ü'.repeat(300_000), output: 'y'.repeat(300_000) }],
])('%s is cut, and says so', (_name, over) => {
  const body = webhookBody(view(over));
  expect(utf8Length(body)).toBeLessThanOrEqual(maxWebhookBytes);
  const { type, truncated, data } = JSON.parse(body) as { type: string; truncated: boolean; data: Record<string, unknown> };
  expect([type, truncated, data['id'], data['status'], Object.keys(data).sort()]).toEqual(['run.completed', true, 'run_1', 'completed', Object.keys(view({})).sort()]);
  const answer = (over as { answer: string | null }).answer;
  if (answer !== null) {
    expect(answer.startsWith(data['answer'] as string)).toBe(true);
    expect((data['answer'] as string).isWellFormed()).toBe(true);
    if (answer.length > 10) expect(utf8Length(body)).toBeGreaterThan(maxWebhookBytes / 2);
    else expect(data['answer']).toBe(answer);
  }
});

test('what fits is sent whole, and a run that tells nobody, or has not ended, has no delivery', () => {
  const run = view({ answer: 'grüße', output: { a: 1 } });
  expect(JSON.parse(webhookBody(run))).toEqual({ type: 'run.completed', timestamp: '1970-01-01T00:00:01.000Z', data: run });
  const state: RunState = { ...initialState, run_id: 'run_1', spec: testSpec(), status: 'completed', ended_at: 1, webhook: { endpoint: 'backend' } };
  expect(deliveryOf(state, 0)).toMatchObject({ target: { endpoint: 'backend' }, lane: 'endpoint backend' });
  expect(deliveryOf({ ...state, webhook: { url: 'https://a.example:8443/x?y' } }, 0)).toMatchObject({ lane: 'https://a.example:8443' });
  expect(deliveryOf({ ...state, ended_at: null }, 0)).toBeNull();
  const { webhook: _, ...silent } = state;
  expect(deliveryOf(silent, 0)).toBeNull();
});

test('with Redis lost, ends of the last day are told, perhaps again, under the old id; older ones are not', async () => {
  const w = world();
  const archive = createMemoryArchive();
  const [run_id, document] = [await w.ended(), { segment_events: 100, keep_events: 0, retention_ms: 1e9 }];
  await archiveRun({ store: w.store, archive, options: document }, run_id);
  const before = (await w.store.takeDeliveries(0, { limit: 1, per_tenant: 1, per_lane: 1, busy: {}, lease_ms: 1 }))[0]!;
  const restoredAt = async (hours: number, shards = 1) => {
    const store = createMemoryRunStore();
    const deps = { store, archive, clock: { nowMs: () => 1_700_000_001_000 + hours * 3_600_000 } };
    const options = { accept_repeats: false, strict: false, shards };
    const counts = [await restoreRuns(deps, options), await restoreRuns(deps, options)].map(({ ended, webhooks, failed }) => [ended, webhooks, ...failed.map(({ problem }) => problem)]);
    return { counts, taken: await store.takeDeliveries(0, { limit: 9, per_tenant: 9, per_lane: 9, busy: {}, lease_ms: 1 }) };
  };
  const young = await restoredAt(23);
  expect(young.counts).toEqual([[1, 1], [1, 0]]);
  expect(young.taken).toMatchObject([{ run_id, target: before.target, lane: before.lane }]);
  const [told, first] = [young.taken[0]!, before].map(({ body }) => JSON.parse(body) as { data: Record<string, unknown> });
  expect({ ...told, data: { ...told!.data, archived_seq: 0 } }).toEqual(first);
  const old = await restoredAt(25);
  expect([old.counts, old.taken]).toEqual([[[1, 0], [1, 0]], []]);
  const lost = [1, 0, 'its end is not told: its shard has no worker: TREADLE_SHARDS is 0'];
  expect(await restoredAt(23, 0)).toEqual({ counts: [lost, lost], taken: [] });
});

test('a shard with much to tell takes no room from the others: each round begins with another one', async () => {
  const asked: number[] = [];
  const dispatcher = new WebhookDispatcher({
    outbox: { takeDeliveries: async (shard) => { asked.push(shard); return []; }, settleDelivery: async () => 'settled' }, jitter: () => 0, sender: { send: async () => ok },
  }, { shards: [0, 1, 2], concurrency: 4, per_tenant: 4, per_lane: 2, timeout_ms: 1000, first_wait_ms: 1000 });
  for (let round = 0; round < 4; round++) await dispatcher.round();
  expect(asked).toEqual([0, 1, 2, 1, 2, 0, 2, 0, 1, 0, 1, 2]);
});
