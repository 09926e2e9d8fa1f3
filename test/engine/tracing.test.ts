/** What a tracer is told of a delivery: every span that is begun is ended, whatever becomes of the work, and each is a part of what it belongs to. */
import { defaultLimits, idIn, initialState, noJudgement, noUsage, restoreState, type ModelReply } from '@treadle/core';
import { archiveRun, createRun, executeTurn, HeldRuns, IncrementWriter, StoreAway, WarmRuns, type Span, type SpanContext, type SpanEnd, type Traced, type Tracer, type TurnDeps, type TurnStore } from '@treadle/engine';
import { alwaysThere, createMemoryArchive, createMemoryRunStore, testSpec, testTool } from '@treadle/testkit';
import { expect, test } from 'vitest';

interface Told { readonly id: string; readonly parent: string | null; readonly link: string | null; readonly type: Traced['type']; ends: SpanEnd[] }

/** Its traceparents are numbers, counted up. */
function recorder(): { readonly tracer: Tracer; readonly told: Told[] } {
  const told: Told[] = [];
  const begin = (what: Traced, { parent, link = null }: SpanContext): Span => {
    const one: Told = { id: `00-${'1'.repeat(32)}-${String(told.length + 1).padStart(16, '0')}-01`, parent, link, type: what.type, ends: [] };
    told.push(one);
    return { traceparent: one.id, begin: (part) => begin(part, { parent: one.id }), carriedBy: () => undefined, end: (how) => { one.ends.push(how); } };
  };
  return { tracer: { begin }, told };
}

const clock = { nowMs: () => 1_700_000_000_000, monotonicMs: () => performance.now() };
const random = { uuid: () => crypto.randomUUID(), jitter: () => 0 };
const run_id = idIn('run', 0, '1'.repeat(32));
const reply = (over: Partial<ModelReply>): ModelReply => ({ text: '', thinking: '', provider_data: null, calls: [], finish: 'stop', finish_raw: 'stop', usage: noUsage, ...over });
const calling = reply({ calls: [{ provider_id: 'c', name: 'look', input: {}, problem: null }, { provider_id: 'd', name: 'invented', input: {}, problem: null }] });

interface Parts { readonly wrap?: (store: TurnStore) => TurnStore; readonly tool?: () => Promise<string>; readonly model?: () => Promise<ModelReply>; readonly traced?: boolean; readonly traceparent?: string }

async function world({ wrap = (store) => store, tool = () => Promise.resolve('seen'), model = () => Promise.resolve(calling), traced = true, traceparent }: Parts) {
  const { tracer, told } = recorder();
  const tracing = traced ? { tracer } : {};
  const store = createMemoryRunStore();
  const run = { tenant: 't', spec: testSpec(), agent_version: 'v', limits: defaultLimits, input: 'go', metadata: {}, tags: [], priority: 50, run_at: null, ...(traceparent === undefined ? {} : { traceparent }) };
  await createRun({ store, clock, random, shards: 1, ...tracing }, run, { run_id, not_after_ms: Number.MAX_SAFE_INTEGER });
  const turns = wrap(store);
  const deps: TurnDeps = {
    store: turns, clock, random, warm: new WarmRuns(), worker: 'w', limits: { poison: 3, nudges: 5 }, held: new HeldRuns(store), judge: { judge: () => noJudgement }, history: () => Promise.resolve([]), ...tracing,
    archive: { putBlob: () => Promise.resolve('b'), getBlob: () => Promise.resolve(null), events: () => Promise.resolve([]) }, increments: new IncrementWriter({ store: turns, random }),
    models: { ...alwaysThere, call: async () => ({ type: 'replied', reply: await model() }) },
    tools: {
      catalogue: () => Promise.resolve({ tools: [testTool('look')], problems: [] }), check: () => null, asks: () => false,
      run: async () => ({ content: await tool(), is_error: false, settled: true }),
    },
  };
  const deliver = (n = 1) => executeTurn(deps, { run_id, n }, new AbortController().signal);
  const state = async () => restoreState(initialState, (await store.read(run_id))!.stored);
  return { store, deliver, told, state, tracer, all: () => told.map(({ type, ends }) => [type, ends.map((end) => end.type === 'turn' ? end.how : end.type).join()]) };
}

test('a turn is a part of its run, and what it asks a part of the turn; a tool that there is not is asked for nothing', async () => {
  const { deliver, told, state, all } = await world({});
  expect(await deliver()).toBe('done');
  expect(all()).toEqual([['run_creation', 'run_creation'], ['turn', 'done'], ['model_call', 'model_call'], ['tool_call', 'tool_call']]);
  const [creation, turn, model, tool] = told;
  expect([creation!.parent, turn!.parent, model!.parent, tool!.parent]).toEqual([null, creation!.id, turn!.id, turn!.id]);
  expect((await state()).traceparent).toBe(creation!.id);
});

test.each<[string, Parts, [string, string]]>([
  ['a commit that is fenced', { wrap: (store) => ({ ...store, commit: () => Promise.resolve({ type: 'fenced' }) }) }, ['turn', 'fenced']],
  ['a store that is away', { wrap: (store) => ({ ...store, commit: () => Promise.reject(new StoreAway('away')) }) }, ['turn', 'unclear']],
  ['a tool that breaks its promise', { tool: () => Promise.reject(new Error('broken')) }, ['tool_call', 'threw']],
  ['a model that breaks its promise', { model: () => Promise.reject(new Error('broken')) }, ['model_call', 'model_call']],
])('%s: each span has ended, once', async (_, parts, there) => {
  const { deliver, told, all } = await world(parts);
  await deliver().catch(() => undefined);
  expect(told.map(({ ends }) => ends.length)).toEqual(told.map(() => 1));
  expect(all()).toContainEqual(there);
});

test('who does not trace keeps what its caller says of a trace, and says nothing of its own', async () => {
  const said = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  expect((await (await world({ traced: false, traceparent: said })).state()).traceparent).toBe(said);
  const without = await world({ traced: false });
  expect((await without.state()).traceparent).toBeNull();
  expect((await without.store.events(run_id, 0, 1))!.events[0]).not.toContain('traceparent');
});

test('what is written to the archive is a part of the run, also when its first event is long gone', async () => {
  const { deliver, store, told, tracer } = await world({});
  const archiving = { store, archive: createMemoryArchive(), options: { segment_events: 2, keep_events: 0, retention_ms: 0 }, tracer };
  await archiveRun(archiving, run_id);
  await deliver();
  await archiveRun(archiving, run_id);
  const [creation] = told;
  const writes = told.filter(({ type }) => type === 'archive_write');
  expect(writes.length).toBeGreaterThan(2);
  expect(new Set(writes.map(({ parent }) => parent))).toEqual(new Set([creation!.id]));
  expect(writes.every(({ ends }) => ends.length === 1)).toBe(true);
});
