/**
 * One delivery under bad timing: slow appends, a cancel or a pause while a batch is half done, a store that does not answer.
 */
import { defaultLimits, idIn, noJudgement, noUsage, type Command, type ModelReply, type RunEvent, type ToolDefinition } from '@treadle/core';
import { createRun, executeTurn, HeldRuns, IncrementWriter, StoreAway, WarmRuns, type ModelCall, type ToolRun, type TurnDeps, type TurnStore } from '@treadle/engine';
import { alwaysThere, createMemoryRunStore, testSpec, testTool } from '@treadle/testkit';
import { createToolRunner } from '@treadle/tools';
import { expect, test } from 'vitest';

const clock = { nowMs: () => 1_700_000_000_000, monotonicMs: () => performance.now() };
const random = { uuid: () => crypto.randomUUID(), jitter: () => 0 };
const run_id = idIn('run', 0, '1'.repeat(32));
const reply = (over: Partial<ModelReply>): ModelReply => ({ text: '', thinking: '', provider_data: null, calls: [], finish: 'stop', finish_raw: 'stop', usage: noUsage, ...over });
const calls = (...names: string[]) => names.map((name, index) => ({ provider_id: `c${index}`, name, input: {}, problem: null }));
const after = (ms: number) => new Promise<void>((resolve) => { setTimeout(resolve, ms); });

interface Parts { readonly model: (call: ModelCall) => Promise<ModelReply>; readonly tool?: (run: ToolRun) => Promise<string>; readonly tools?: ToolDefinition[]; readonly wrap?: (store: TurnStore) => TurnStore }

async function world(parts: Parts) {
  const store = createMemoryRunStore();
  const run = { tenant: 't', spec: testSpec(), agent_version: 'v', limits: defaultLimits, input: 'go', metadata: {}, tags: [], priority: 50, run_at: null };
  await createRun({ store, clock, random, shards: 1 }, run, { run_id, not_after_ms: Number.MAX_SAFE_INTEGER });
  const turns = parts.wrap?.(store) ?? store;
  const held = new HeldRuns(store);
  const deps: TurnDeps = {
    store: turns, clock, random, warm: new WarmRuns(), worker: 'w', limits: { poison: 3, nudges: 5 }, held, judge: { judge: () => noJudgement }, history: () => Promise.resolve([]),
    archive: { putBlob: () => Promise.resolve('b'), getBlob: () => Promise.resolve(null), events: () => Promise.resolve([]) }, increments: new IncrementWriter({ store: turns, random }, { firstMs: 5, maxMs: 10 }),
    models: { ...alwaysThere, call: async (call) => ({ type: 'replied', reply: await parts.model(call) }) },
    tools: {
      catalogue: () => Promise.resolve({ tools: parts.tools ?? [testTool('slow', { effect: 'once' }), testTool('quick', { effect: 'once' })], problems: [] }),
      check: () => null, asks: () => false,
      run: async (tool) => ({ content: await parts.tool?.(tool) ?? 'ok', is_error: false, settled: !tool.signal.aborted }),
    },
  };
  const deliver = async (n = 1) => executeTurn(deps, { run_id, n }, new AbortController().signal);
  const log = async () => (await store.events(run_id, 0, 1000))!.events.map((text) => JSON.parse(text) as RunEvent);
  const send = async (command: Command) => { await store.command({ run_id, command_id: crypto.randomUUID(), command, not_after_ms: Number.MAX_SAFE_INTEGER }); await held.watch(); };
  return { store, deps, deliver, log, send };
}

test('appends that take longer than several ticks neither fence the run nor double its text', async () => {
  const words = Array.from({ length: 40 }, (_, index) => `word${index} `);
  const { deliver, log } = await world({
    model: async (call) => {
      for (const word of words) { call.onText(word); await after(4); }
      return reply({ text: words.join('') });
    },
    wrap: (store) => ({ ...store, appendMany: async (appends) => { await after(45); return store.appendMany(appends); } }),
  });
  expect(await deliver()).toBe('done');
  const events = await log();
  const increments = events.flatMap((event) => event.type === 'assistant_text' && !event.is_final ? [event.content] : []);
  expect(increments.length).toBeGreaterThan(2);
  expect(increments.join('')).toBe(words.join(''));
  expect(events.at(-1)).toMatchObject({ type: 'run_end', stop_reason: 'answered' });
});

test('an append whose answer is unclear ends the delivery, and the run is not blamed for it', async () => {
  const { deliver, store } = await world({
    model: async (call) => { call.onText('some text'); await after(60); return reply({ text: 'some text' }); },
    wrap: (real) => ({ ...real, appendMany: () => Promise.reject(new StoreAway('away')) }),
  });
  expect(await deliver()).toBe('left');
  expect(await store.claim({ run_id, n: 1, claim_id: 'next', held: null })).toMatchObject({ type: 'claimed', deliveries: 1 });
});

test.each([
  ['a store that is away', new StoreAway('away'), 1], ['a fault of our own', new TypeError('oops'), 2],
])('a commit that throws because of %s counts as it should', async (_name, error, deliveries) => {
  const { deliver, store } = await world({ model: () => Promise.resolve(reply({ text: 'x' })), wrap: (real) => ({ ...real, commit: () => Promise.reject(error) }) });
  await expect(deliver()).rejects.toBe(error);
  expect(await store.claim({ run_id, n: 1, claim_id: 'next', held: null })).toMatchObject({ type: 'claimed', deliveries });
});

test('a cancel while one call is done and another runs: the running one is told as unknown, never as not started', async () => {
  const w: Awaited<ReturnType<typeof world>> = await world({
    model: () => Promise.resolve(reply({ calls: calls('quick', 'slow') })),
    tool: async (run) => {
      if (run.tool.name === 'quick') { setTimeout(() => { void w.send({ type: 'cancel' }); }, 5); return 'done'; }
      await new Promise<void>((resolve) => { run.signal.addEventListener('abort', () => { resolve(); }); });
      return 'aborted';
    },
  });
  expect(await w.deliver()).toBe('done');
  const results = (await w.log()).flatMap((event) => event.type === 'tool_result' ? [[event.tool_name, event.outcome]] : []);
  expect(Object.fromEntries(results)).toEqual({ quick: undefined, slow: 'unknown' });
  expect((await w.store.ledger(run_id))!.find((entry) => entry.tool_name === 'slow')).toMatchObject({ status: 'settled', outcome: 'unknown' });
});

test('a cancel that meets a takeover says of a call begun earlier that its outcome is unknown', async () => {
  const first = await world({ model: () => Promise.resolve(reply({ calls: calls('slow') })), tool: () => new Promise(() => undefined) });
  void first.deliver().catch(() => undefined);
  await expect.poll(async () => (await first.store.ledger(run_id))?.length).toBe(1);
  // The next worker takes over; the cancel comes with the answer to its first commit.
  const second: TurnDeps = { ...first.deps, held: new HeldRuns(first.store), store: { ...first.store, commit: async (commit) => {
    if (commit.events.some((event) => event.includes('"turn_start"'))) await first.store.command({ run_id, command_id: 'c', command: { type: 'cancel' }, not_after_ms: Number.MAX_SAFE_INTEGER });
    return first.store.commit(commit);
  } } };
  expect(await executeTurn(second, { run_id, n: 1 }, new AbortController().signal)).toBe('done');
  const log = await first.log();
  expect(log.find((event) => event.type === 'tool_result')).toMatchObject({ outcome: 'unknown' });
  expect(log.at(-1)).toMatchObject({ status: 'cancelled' });
});

test.each(['read', 'idempotent', 'once'] as const)('a %s call whose result is recorded is not run again by the worker that takes over', async (effect) => {
  const started: string[] = [];
  const slow = [new Promise<string>(() => undefined), Promise.resolve('slow result')];
  const w = await world({
    model: () => Promise.resolve(reply({ calls: calls('quick', 'slow') })),
    tools: [testTool('quick', { effect }), testTool('slow', { effect: 'read' })],
    tool: (run) => { started.push(run.tool.name); return run.tool.name === 'quick' ? Promise.resolve('quick result') : slow.shift()!; },
  });
  void w.deliver().catch(() => undefined);
  await expect.poll(async () => (await w.log()).some((event) => event.type === 'tool_result')).toBe(true);
  const second: TurnDeps = { ...w.deps, held: new HeldRuns(w.store), warm: new WarmRuns() };
  expect(await executeTurn(second, { run_id, n: 1 }, new AbortController().signal)).toBe('done');
  expect(started).toEqual(['quick', 'slow', 'slow']);
  expect((await w.log()).flatMap((event) => event.type === 'tool_result' ? [event.content] : [])).toEqual(['quick result', 'slow result']);
});

test('a tool is aborted when its worker hears that the run has a newer claim, and what it answers is not written', async () => {
  const heard: unknown[] = [];
  const w: Awaited<ReturnType<typeof world>> = await world({
    model: () => Promise.resolve(reply({ calls: calls('slow') })),
    tool: async (run) => {
      await w.store.claim({ run_id, n: 1, claim_id: 'newer', held: null });
      await w.deps.held.watch();
      heard.push(run.signal.reason);
      return 'late';
    },
  });
  expect(await w.deliver()).toBe('left');
  expect(heard).toEqual(['fenced']);
  expect((await w.log()).some((event) => event.type === 'tool_result')).toBe(false);
});

test('a pause while a batch is half done waits for the calls that run, and loses no result', async () => {
  const w: Awaited<ReturnType<typeof world>> = await world({
    model: () => Promise.resolve(reply({ calls: calls('quick', 'slow') })),
    tool: async (run) => {
      if (run.tool.name === 'quick') { setTimeout(() => { void w.send({ type: 'pause' }); }, 5); return 'quick result'; }
      await after(120);
      return 'slow result';
    },
  });
  expect(await w.deliver()).toBe('done');
  const log = await w.log();
  expect(log.flatMap((event) => event.type === 'tool_result' ? [event.content] : []).toSorted()).toEqual(['quick result', 'slow result']);
  expect(log.at(-1)).toMatchObject({ type: 'state_change', new: 'paused' });
});

test.each([['a pause', { type: 'pause' }, 'paused'], ['a cancel', { type: 'cancel' }, 'cancelled']] as const)('after %s was accepted no further call begins, heard of or not', async (_name, command, status) => {
  const started: string[] = [];
  const w: Awaited<ReturnType<typeof world>> = await world({
    model: () => Promise.resolve(reply({ calls: calls('quick', 'slow') })),
    tools: [testTool('quick', { effect: 'once', parallel: 'serial' }), testTool('slow', { effect: 'once', parallel: 'serial' })],
    tool: async (run) => {
      started.push(run.tool.name);
      // Nobody watches: only the write that would begin the next call can tell.
      await w.store.command({ run_id, command_id: 'c', command, not_after_ms: Number.MAX_SAFE_INTEGER });
      return 'done';
    },
  });
  expect(await w.deliver()).toBe('done');
  expect(started).toEqual(['quick']);
  expect((await w.store.read(run_id))?.status).toBe(status);
});

test('a cancel while one call runs and another waits for its place: the first is in doubt, the other was not started, and the ledger says so', async () => {
  const begun: string[] = [];
  const w: Awaited<ReturnType<typeof world>> = await world({ model: () => Promise.resolve(reply({ calls: calls('one', 'one') })) });
  const one = {
    name: 'one', description: '', input_schema: { type: 'object' }, effect: 'once', parallel: 'parallel', timeout_ms: 60_000, concurrency: 1,
    run: async (_input: unknown, { tool_use_id, signal }: { tool_use_id: string; signal: AbortSignal }) => {
      begun.push(tool_use_id);
      await after(5);
      await w.send({ type: 'cancel' });
      await new Promise((_, reject) => { signal.addEventListener('abort', () => { reject(signal.reason as Error); }); if (signal.aborted) reject(signal.reason as Error); });
    },
  } as const;
  Object.assign(w.deps.tools, createToolRunner({ functions: [one], mcpServers: {}, policies: {} }));
  expect(await w.deliver()).toBe('done');
  expect(begun).toHaveLength(1);
  const results = (await w.log()).flatMap((event) => event.type === 'tool_result' ? [event] : []);
  expect(results.map(({ tool_use_id, outcome }) => [tool_use_id === begun[0], outcome])).toEqual([[true, 'unknown'], [false, 'not_started']]);
  expect((await w.log()).at(-1)).toMatchObject({ type: 'run_end', status: 'cancelled' });
  const ledger = await w.store.ledger(run_id);
  expect(ledger?.map(({ status, outcome }) => [status, outcome])).toEqual([['settled', 'unknown'], ['settled', 'not_started']]);
});

test('what is told to drain takes no further turn, also one that is claimed just then', async () => {
  const { deps, deliver, store } = await world({ model: () => Promise.resolve(reply({ text: 'x' })) });
  deps.held.drain();
  expect(await deliver()).toBe('left');
  expect(await store.claim({ run_id, n: 1, claim_id: 'next', held: null })).toMatchObject({ type: 'claimed', deliveries: 1 });
});

test('at a limit the model is asked once more, without tools, and its summary is what the run says', async () => {
  const asked: ModelCall[] = [];
  const { store, deps, log } = await world({ model: (call) => { asked.push(call); return Promise.resolve(call.request.tools.length > 0 ? reply({ calls: calls('quick') }) : reply({ text: 'Half of it is done.' })); } });
  await store.command({ run_id, command_id: 'u', command: { type: 'update', limits: { max_turns: 2 }, by: 'test' }, not_after_ms: Number.MAX_SAFE_INTEGER });
  for (let n = 1; n <= 3; n++) await executeTurn(deps, { run_id, n }, new AbortController().signal);
  expect((await log()).at(-1)).toMatchObject({ type: 'run_end', status: 'expired', stop_reason: 'max_turns' });
  expect((await log()).find((event) => event.type === 'max_iterations')).toMatchObject({ iterations: 2, summary: 'Half of it is done.' });
  expect(asked.at(-1)!.request).toMatchObject({ tools: [], model: { max_output_tokens: 512 } });
});

test.each<[string, (w: Awaited<ReturnType<typeof world>>, lease: AbortController) => Promise<unknown> | void, string, string]>([
  ['a cancel', (w) => w.send({ type: 'cancel' }), 'done', 'cancelled'], ['a lost lease', (_, lease) => { lease.abort(); }, 'left', 'queued'],
])('%s does not wait for servers that are slow to say what tools they have', async (_name, happens, outcome, status) => {
  const w = await world({ model: () => Promise.reject(new Error('is not asked')) });
  const lease = new AbortController();
  const never = Promise.withResolvers<never>();
  Object.assign(w.deps.tools, { catalogue: () => { setTimeout(() => { void happens(w, lease); }, 5); return never.promise; } });
  expect(await executeTurn(w.deps, { run_id, n: 1 }, lease.signal)).toBe(outcome);
  expect((await w.store.read(run_id))!.status).toBe(status);
});
