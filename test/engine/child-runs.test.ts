/** Starting sub-agents: once, under the claim of the run that asks, and never one that is over already. */
import { defaultLimits, initialState, isId, type OpenCall, type RunState } from '@treadle/core';
import { archivedDocument, childRunId, createChildRuns, createRun, StoreAway, type Claim } from '@treadle/engine';
import { createMemoryArchive, createMemoryRunStore, testSpec, type MemoryArchive } from '@treadle/testkit';
import { beforeEach, describe, expect, test } from 'vitest';

const parentId = `run_${'5'.repeat(30)}00`;
const call: OpenCall = { tool_use_id: 'c', tool_name: 'spawn_agent', tool_input: { agent: 'helper', input: 'do it' }, execution: 'parallel', invalid: null, settled: false, waiting_result: null };
const child = { child_run_id: childRunId(parentId, 'c', 1_700_000_000_000), tool_use_id: 'c', agent: 'helper', status: 'queued' as const, limits: { tool_budget: 3, max_total_tokens: 500, max_cost_usd: null, max_depth: 1 } };

let store: ReturnType<typeof createMemoryRunStore>;
let archive: MemoryArchive;
let claim: Claim;
let parent: RunState;
let known: string[];
let made = 0;
const deps = () => ({ store, clock: { nowMs: () => 1_700_000_000_000, monotonicMs: () => 0 }, random: { uuid: () => `${(++made).toString(16).padStart(30, '0')}00`, jitter: () => 0 }, shards: 1 });
const children = () => createChildRuns({ ...deps(), archive, agent: (name) => known.includes(name) ? { spec: testSpec({ name }), version: 'v2' } : null });
const start = (over: Partial<RunState> = {}) => children().start({ ...parent, ...over }, claim, { call, traceparent: null });
const newRun = { tenant: 'acme', spec: testSpec(), agent_version: 'v', limits: defaultLimits, input: 'go', metadata: {}, tags: [], priority: 7, run_at: null };

beforeEach(async () => {
  store = createMemoryRunStore();
  archive = createMemoryArchive();
  known = ['helper'];
  const { state } = await createRun(deps(), newRun, { run_id: parentId, not_after_ms: Number.MAX_SAFE_INTEGER });
  const claimed = await store.claim({ run_id: parentId, n: 1, claim_id: 'claim', held: null });
  if (claimed.type !== 'claimed') throw new Error(claimed.type);
  claim = { run_id: parentId, n: 1, epoch: claimed.epoch, claim_id: 'claim' };
  parent = { ...state, attempt: 1, calls: [call], children: [child] };
});

describe('an id', () => {
  test('is the same for the same call, another for another, a run\'s, in the parent\'s shard, and sorts by time', () => {
    const other = parentId.replace(/00$/, '07');
    const ids = [childRunId(parentId, 'c', 1), childRunId(parentId, 'd', 1), childRunId(other, 'c', 1), childRunId(parentId, 'c', 2 ** 41)];
    expect(childRunId(parentId, 'c', 1)).toBe(ids[0]);
    expect(new Set(ids).size).toBe(4);
    for (const id of ids) expect([isId('run', id), /^run_.{12}7.{3}[89ab]/.test(id)]).toEqual([true, true]);
    expect(ids.map((id) => id.slice(-2))).toEqual(['00', '00', '07', '00']);
    expect(ids[0]! < ids[3]!).toBe(true);
  });

  test('is offered for an agent that is known here, with its limits', () => {
    expect(children().offer(parentId, { tool_use_id: 'c', agent: 'helper' })).toEqual({ child_run_id: child.child_run_id, limits: defaultLimits });
    for (const agent of ['nobody', 3, undefined]) expect(children().offer(parentId, { tool_use_id: 'c', agent })).toBeNull();
  });
});

describe('a start', () => {
  test('makes a run of the agent, with what was reserved for it, for its parent', async () => {
    expect(await start()).toEqual({ type: 'under_way' });
    const fields = (await store.read(child.child_run_id))!.stored.fields;
    expect([fields['parent_run_id'], fields['tenant'], fields['agent'], fields['priority']].map((text) => JSON.parse(text!) as unknown)).toEqual([parentId, 'acme', 'helper', 7]);
    expect(JSON.parse(fields['limits']!)).toEqual({ ...defaultLimits, ...child.limits });
  });

  test('again finds what there is', async () => {
    await start();
    const { writes } = store;
    expect(await start({ attempt: 2 })).toEqual({ type: 'under_way' });
    expect(store.writes).toBe(writes);
  });

  test('of one that has ended is its end', async () => {
    await start();
    const job = store.jobs().find((each) => each.run_id === child.child_run_id)!;
    await store.claim({ run_id: child.child_run_id, n: job.n, claim_id: 'x', held: null });
    await store.commit({
      claim: { run_id: child.child_run_id, n: job.n, epoch: 1, claim_id: 'x' }, expected_seq: 2, commit_id: 'k', status: 'completed', events: ['{}'], last_ts: 1_700_000_001, ledger: [], open_calls: [],
      pending: [], inbox_seen: 0, applies_inbox: true, next: { type: 'end' },
      changes: { fields: { status: '"completed"', stop_reason: '"answered"', answer: '"yes"' }, generation: 1, replaces: false, messages: [] },
    });
    expect(await start({ attempt: 2 })).toMatchObject({ type: 'ended', end: { child_run_id: child.child_run_id, status: 'completed', text: 'yes' } });
  });

  test('of one that only the archive knows to its end does not run it again', async () => {
    const ended: RunState = { ...initialState, run_id: child.child_run_id, parent_run_id: parentId, spec: testSpec(), status: 'failed', stop_reason: 'refused', ended_at: 1, tool_calls: 4 };
    await archive.putRun({ run_id: child.child_run_id, tenant: 'acme', document: archivedDocument(ended, 9, 'acme') });
    expect(await start({ attempt: 2 })).toMatchObject({ type: 'ended', end: { status: 'failed', stop_reason: 'refused', tool_calls: 4 } });
    expect(await store.read(child.child_run_id)).toBeNull();
  });

  test('is put off where the archive does not say', async () => {
    archive.failNext(1);
    await expect(start({ attempt: 2 })).rejects.toBeInstanceOf(StoreAway);
    expect(await store.read(child.child_run_id)).toBeNull();
    // Nobody can have started it before.
    archive.failNext(1);
    expect(await start()).toEqual({ type: 'under_way' });
  });

  test('is fenced without the claim', async () => {
    await store.handBack(claim);
    expect(await start()).toEqual({ type: 'fenced' });
    expect(await store.read(child.child_run_id)).toBeNull();
  });

  test('is refused for an agent that is gone, an id that is taken, a run that was deleted, a call that was not planned', async () => {
    known = [];
    expect(await start()).toMatchObject({ type: 'refused', why: 'There is no agent named "helper" here.' });
    known = ['helper'];
    expect(await start({ children: [] })).toMatchObject({ type: 'refused' });
    await createRun(deps(), newRun, { run_id: child.child_run_id, not_after_ms: Number.MAX_SAFE_INTEGER });
    expect(await start()).toMatchObject({ type: 'refused', why: 'Its id is taken by another run.' });
    const job = store.jobs().find((each) => each.run_id === child.child_run_id)!;
    await store.claim({ run_id: child.child_run_id, n: job.n, claim_id: 'x', held: null });
    await store.commit({
      claim: { run_id: child.child_run_id, n: job.n, epoch: 1, claim_id: 'x' }, expected_seq: 2, commit_id: 'k', status: 'cancelled', events: [], last_ts: 1, ledger: [], open_calls: [],
      pending: [], inbox_seen: 0, applies_inbox: true, next: { type: 'end' }, changes: { fields: {}, generation: 1, replaces: false, messages: [] } });
    await store.remove({ run_id: child.child_run_id, tenant: 'acme', not_after_ms: Number.MAX_SAFE_INTEGER });
    expect(await start()).toMatchObject({ type: 'refused', why: 'Its run was deleted.' });
  });
});
