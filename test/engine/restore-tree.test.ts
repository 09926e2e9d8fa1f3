/** A tree put back from an archive that has more of some runs than of others: children first, and parents hear what they missed. */
import { defaultLimits, encodeEvent, evolve, initialState, stamp, type EventBody, type RunState } from '@treadle/core';
import { archivedDocument, restoreRuns } from '@treadle/engine';
import { createMemoryArchive, createMemoryRunStore, testSpec, testTool, type MemoryArchive } from '@treadle/testkit';
import { beforeEach, expect, test } from 'vitest';

/** The parent's id sorts before and behind its children's: the archive lists by name. */
const id = (digit: string): string => `run_${digit.repeat(30)}00`;
const parent = id('5');
const limits = { tool_budget: 1, max_total_tokens: null, max_cost_usd: null, max_depth: 0 };
const usage = { input_tokens: 7, output_tokens: 1, cached_tokens: 0, wasted_tokens: 0, cost_usd: 0 };

let archive: MemoryArchive;
let store: ReturnType<typeof createMemoryRunStore>;
beforeEach(() => { archive = createMemoryArchive(); store = createMemoryRunStore(); });

const created = (run_id: string, parent_run_id: string | null): EventBody[] => [
  {
    type: 'run_created', agent: 'a', agent_version: 'v', agent_spec: testSpec(), session_id: run_id.replace('run', 'ses'), parent_run_id, forked_from: null, tenant: 'acme',
    limits: defaultLimits, chain: 'c', tools: ['*'], metadata: {}, tags: [], priority: 50, run_at: null,
  },
  { type: 'user_message', content: 'go' }, { type: 'state_change', old: 'queued', new: 'running', reason: 'claimed' },
];
const over: EventBody[] = [
  { type: 'turn_start', attempt: 1, worker: 'w' }, { type: 'assistant_text', content: 'found', is_final: true, attempt: 1, usage }, { type: 'final_response', text: 'found' },
  { type: 'turn_end', duration: 1, usage }, { type: 'state_change', old: 'running', new: 'completed', reason: 'answered' }, { type: 'run_end', status: 'completed', stop_reason: 'answered' }];
const starts = (children: Readonly<Record<string, boolean>>): EventBody[] => [
  { type: 'tools_changed', tools: [testTool('spawn_agent', { builtin: 'spawn_agent', effect: 'idempotent' })], problems: [], done: 'pinned' }, { type: 'turn_start', attempt: 1, worker: 'w' },
  ...Object.entries(children).map(([digit, wait]): EventBody => ({
    type: 'tool_use', tool_name: 'spawn_agent', tool_input: { agent: 'a', input: 'x', wait }, tool_use_id: `c${digit}`, provider_id: null, execution: 'parallel' })),
  ...Object.keys(children).map((digit): EventBody => ({ type: 'child_run', child_run_id: id(digit), tool_use_id: `c${digit}`, agent: 'a', status: 'queued', limits })),
  ...Object.entries(children).flatMap(([digit, wait]): EventBody[] => wait ? [] : [
    { type: 'tool_result', tool_use_id: `c${digit}`, tool_name: 'spawn_agent', content: id(digit), is_error: false, duration: 0 }])];
const waits = (...digits: string[]): EventBody => ({
  type: 'state_change', old: 'running', new: 'paused', reason: 'children', pending: digits.map((digit) => ({
    kind: 'child_run', tool_use_id: `c${digit}`, tool_name: 'spawn_agent', tool_input: {}, expires_at: null, child_run_id: id(digit) })) });

async function archived(run_id: string, bodies: readonly EventBody[]): Promise<void> {
  let state: RunState = { ...initialState, run_id };
  const events = bodies.map((body) => {
    const event = stamp(state, body, 1_700_000_000, 1);
    state = evolve(state, event);
    return encodeEvent(event);
  });
  await archive.putSegment({ run_id, first_seq: 1, last_seq: events.length, events });
  if (state.ended_at !== null) await archive.putRun({ run_id, tenant: 'acme', document: archivedDocument(state, state.last_seq, 'acme') });
}

const restore = () => restoreRuns({ store, archive, clock: { nowMs: () => 1_700_000_000_000 } }, { accept_repeats: true, strict: false, shards: 1 });

/** What the run finds in its inbox, `nothing` where it has no job. */
async function told(run_id: string): Promise<string[]> {
  const job = store.jobs().find((each) => each.run_id === run_id && each.type === 'turn');
  if (job === undefined) return ['nothing'];
  const claimed = await store.claim({ run_id, n: job.n, claim_id: 'x', held: null });
  if (claimed.type !== 'claimed') throw new Error(claimed.type);
  return claimed.inbox.map(({ command }) => command.type === 'child_ended' ? `${command.child_run_id.slice(4, 5)} ${command.status} ${command.text}` : command.type);
}

test('a run that waits looks for its children again, and hears of one that had ended', async () => {
  await archived(parent, [...created(parent, null), ...starts({ 1: true, 9: true }), waits('1', '9')]);
  await archived(id('1'), [...created(id('1'), parent), ...over]);
  await archived(id('9'), created(id('9'), parent));
  expect(await restore()).toMatchObject({ found: 3, restored: 2, ended: 1, failed: [] });
  expect(await told(parent)).toEqual(['1 completed found', 'resume']);
  expect((await store.read(id('9')))?.status).toBe('running');
  expect(await restore()).toMatchObject({ restored: 0, present: 2 });
  expect((await told(parent)).length).toBe(2);
});

test('a run that does not wait hears what it missed; of one that was lost it hears no more', async () => {
  await archived(parent, [...created(parent, null), ...starts({ 1: false, 8: false, 9: false }), { type: 'turn_end', duration: 1, usage }]);
  await archived(id('1'), [...created(id('1'), parent), ...over]);
  await archived(id('9'), created(id('9'), parent));
  await restore();
  expect(await told(parent)).toEqual(['1 completed found', '8 failed ']);
});

test('a child is back before the run that has started it, at any depth, and whatever the order of their names', async () => {
  const order: string[] = [];
  const real = store.restore.bind(store);
  store.restore = (run) => { order.push(run.run_id.slice(4, 5)); return real(run); };
  await archived(parent, [...created(parent, null), ...starts({ 1: true, 9: true })]);
  await archived(id('9'), [...created(id('9'), parent), ...starts({ 3: true })]);
  for (const digit of ['1', '3']) await archived(id(digit), created(id(digit), digit === '1' ? parent : id('9')));
  expect(await restore()).toMatchObject({ restored: 4, failed: [] });
  expect([order.indexOf('1') < order.indexOf('5'), order.indexOf('9') < order.indexOf('5'), order.indexOf('3') < order.indexOf('9')]).toEqual([true, true, true]);
});

test('a run that the store still has is not resumed by it', async () => {
  await archived(parent, [...created(parent, null), ...starts({ 1: true }), waits('1')]);
  await archived(id('1'), created(id('1'), parent));
  await restore();
  const writes = store.writes;
  await restore();
  expect(store.writes).toBe(writes);
});
