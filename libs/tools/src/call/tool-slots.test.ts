/** How many calls of one tool run at once, whatever kind of tool it is. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readLedger, testMcpServer, testTool } from '@treadle/testkit';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { FunctionToolSource, ToolPolicySource } from '../sources.ts';
import { callOf } from '../test-call.ts';
import { createToolRunner } from '../tool-runner.ts';
import { createToolSlots } from './tool-slots.ts';

/** A function whose calls end when the test says so. */
function gated(name: string, concurrency?: number) {
  const open: (() => void)[] = [];
  let width = 0;
  let widest = 0;
  let calls = 0;
  const source: FunctionToolSource = {
    name, description: '', input_schema: { type: 'object' }, effect: 'once', parallel: 'parallel', timeout_ms: null, ...(concurrency === undefined ? {} : { concurrency }),
    run: async () => {
      calls += 1;
      widest = Math.max(widest, ++width);
      await new Promise<void>((resolve) => { open.push(resolve); });
      width -= 1;
      return 'done';
    },
  };
  return { source, open, seen: () => ({ calls, width, widest }) };
}

const turn = () => new Promise((resolve) => { setImmediate(resolve); });

describe('the bound on a tool\'s calls', () => {
  const sized = async (functions: readonly object[], httpTools: Readonly<Record<string, object>>, policies: Readonly<Record<string, ToolPolicySource>>, name: string): Promise<number | null> => {
    const slots = createToolSlots({ functions: functions as FunctionToolSource[], httpTools: httpTools as never, policies })(name);
    if (slots === null) return null;
    let size = 0;
    for (const { signal } = new AbortController(); size < 20; size++) if (await Promise.race([slots.take(signal), turn().then(() => null)]) === null) return size;
    return size;
  };
  test.each<[string, readonly object[], Readonly<Record<string, object>>, Readonly<Record<string, ToolPolicySource>>, string, number | null]>([
    ['is none where nobody says one', [{ name: 'f' }, { name: 'g', concurrency: null }], { h: {} }, { '*': { effect: 'read' } }, 'g', null],
    ['is a function\'s own', [{ name: 'f', concurrency: 2 }], {}, {}, 'f', 2],
    ['is an HTTP tool\'s own', [], { h: { concurrency: 3 } }, {}, 'h', 3],
    ['is what `tools` says of a server\'s tool', [], {}, { 's/a': { concurrency: 4 } }, 's/a', 4],
    ['is the more exact word', [], {}, { 's/*': { concurrency: 4 }, 's/a*': { concurrency: 1 } }, 's/ab', 1],
    ['is `tools`\' rather than the tool\'s own', [{ name: 'f', concurrency: 2 }], {}, { f: { concurrency: 5 } }, 'f', 5],
    ['is no other tool\'s', [{ name: 'f', concurrency: 2 }], {}, { 's/a': { concurrency: 1 } }, 's/b', null],
  ])('%s', async (_, functions, httpTools, policies, name, size) => {
    expect(await sized(functions, httpTools, policies, name)).toBe(size);
  });

  test('is shared by all calls of one tool, and by no two tools', () => {
    const slotsOf = createToolSlots({ functions: [], policies: { 's/*': { concurrency: 1 } } });
    expect(slotsOf('s/a')).toBe(slotsOf('s/a'));
    expect(slotsOf('s/a')).not.toBe(slotsOf('s/b'));
  });
});

describe('a function with a bound', () => {
  const tool = testTool('one', { timeout_ms: 60_000 });
  const runner = (source: FunctionToolSource, graceMs = 10) => createToolRunner({ functions: [source], mcpServers: {}, policies: {} }, { graceMs });

  test('runs so many calls at once, of whichever runs, and the others in the order in which they came', async () => {
    const { source, open, seen } = gated('one', 2);
    const run = runner(source);
    const calls = Array.from({ length: 5 }, () => run.run(callOf(tool, {})));
    await turn();
    expect(seen()).toEqual({ calls: 2, width: 2, widest: 2 });
    for (let done = 0; done < 5; done++) {
      await vi.waitFor(() => { expect(open.length).toBeGreaterThan(0); });
      open.shift()!();
      await turn();
    }
    expect((await Promise.all(calls)).every(({ content }) => content === 'done')).toBe(true);
    expect(seen()).toEqual({ calls: 5, width: 0, widest: 2 });
  });

  test('one that is cancelled while it waits was never begun, and takes nobody\'s place', async () => {
    const { source, open, seen } = gated('one', 1);
    const run = runner(source);
    const abort = new AbortController();
    const first = run.run(callOf(tool, {}));
    const cancelled = run.run(callOf(tool, {}, abort.signal));
    const next = run.run(callOf(tool, {}));
    await turn();
    abort.abort();
    expect(await cancelled).toEqual({ content: 'The call was interrupted before it began.', is_error: true, settled: true, never_begun: true });
    open.shift()!();
    expect(await first).toMatchObject({ content: 'done' });
    await vi.waitFor(() => { expect(open).toHaveLength(1); });
    open.shift()!();
    expect(await next).toMatchObject({ content: 'done' });
    expect(seen()).toMatchObject({ calls: 2, widest: 1 });
  });

  test('asks when it has its slot whether it may still be sent; one whose run is gone meanwhile was not started', async () => {
    const { source, open, seen } = gated('one', 1);
    const run = runner(source);
    const abort = new AbortController();
    const asked: string[] = [];
    const first = run.run({ ...callOf(tool, {}), confirm: async () => { asked.push('first'); } });
    await turn();
    const late = run.run({ ...callOf(tool, {}, abort.signal), confirm: async () => { asked.push('late'); abort.abort('fenced'); } });
    const away = run.run({ ...callOf(tool, {}), confirm: () => Promise.reject(new Error('the store is away')) });
    await turn();
    expect(asked).toEqual(['first']);
    open.shift()!();
    expect(await late).toEqual({ content: 'The call was interrupted before it began.', is_error: true, settled: true, never_begun: true });
    expect(await away).toEqual({ content: 'The call was not started: the store is away', is_error: true, settled: true });
    expect([(await first).content, asked, seen().calls]).toEqual(['done', ['first', 'late'], 1]);
    // Both have given their places back.
    const after = run.run(callOf(tool, {}));
    await vi.waitFor(() => { expect(open).toHaveLength(1); });
    open.shift()!();
    expect(await after).toMatchObject({ content: 'done' });
  });

  test('the time in line is not the tool\'s', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    try {
      const { source, open } = gated('one', 1);
      const run = runner(source);
      const first = run.run(callOf(testTool('one', { timeout_ms: 100_000 }), {}));
      const second = run.run(callOf(testTool('one', { timeout_ms: 50 }), {}));
      await vi.advanceTimersByTimeAsync(10_000);
      open.shift()!();
      await vi.advanceTimersByTimeAsync(49);
      open.shift()!();
      expect([(await first).content, (await second).content]).toEqual(['done', 'done']);
    } finally {
      vi.useRealTimers();
    }
  });

  test('one that is left behind keeps its place until it has truly ended', async () => {
    const { source, open, seen } = gated('one', 1);
    const run = runner(source);
    const abort = new AbortController();
    const deaf = run.run(callOf(tool, {}, abort.signal));
    await turn();
    abort.abort();
    expect(await deaf).toMatchObject({ settled: false });
    const next = run.run(callOf(tool, {}));
    await turn();
    expect(seen().calls).toBe(1);
    open.shift()!();
    await vi.waitFor(() => { expect(seen().calls).toBe(2); });
    open.shift()!();
    expect(await next).toMatchObject({ content: 'done' });
  });

  test('one that throws gives its place back', async () => {
    const source: FunctionToolSource = { ...gated('one', 1).source, run: () => { throw new Error('no ink'); } };
    const run = runner(source);
    expect((await Promise.all([1, 2, 3].map(() => run.run(callOf(tool, {}))))).map(({ content }) => content)).toEqual(['no ink', 'no ink', 'no ink']);
  });
});

describe('tools of other kinds', () => {
  let folder: string;
  beforeEach(async () => { folder = await mkdtemp(join(tmpdir(), 'treadle-slots-')); });
  afterEach(async () => { await rm(folder, { recursive: true }); });

  test('an HTTP tool sends so many requests at once', async () => {
    let width = 0;
    let widest = 0;
    const fetch = async (): Promise<Response> => {
      widest = Math.max(widest, ++width);
      await turn();
      width -= 1;
      return new Response('ok');
    };
    const http = { method: 'GET' as const, url: 'https://a.example/', description: '', input_schema: { type: 'object' }, headers: {}, concurrency: 2 };
    const run = createToolRunner({ functions: [], mcpServers: {}, policies: {}, httpTools: { page: http }, fetch: fetch as typeof globalThis.fetch });
    const results = await Promise.all(Array.from({ length: 6 }, () => run.run(callOf(testTool('page'), {}))));
    expect([results.map(({ content }) => content), widest]).toEqual([Array.from({ length: 6 }, () => 'ok'), 2]);
  });

  test('one tool of a server waits for itself, the others of that server do not wait for it', async () => {
    const ledger = join(folder, 'ledger.jsonl');
    const run = createToolRunner({ functions: [], mcpServers: { test: testMcpServer({ ledgerFile: ledger }) }, policies: { 'test/slow_lookup': { concurrency: 1 } } });
    try {
      const abort = new AbortController();
      const slow = testTool('test/slow_lookup', { timeout_ms: 100_000 });
      const first = run.run(callOf(slow, { ms: 100_000 }, abort.signal));
      await vi.waitFor(() => { expect(readLedger(ledger)).toHaveLength(1); }, { timeout: 10_000 });
      const second = run.run(callOf(slow, { ms: 1 }));
      expect(await run.run(callOf(testTool('test/add', { timeout_ms: 10_000 }), { a: 1, b: 2 }))).toMatchObject({ content: '3' });
      expect(readLedger(ledger).filter(({ tool, phase }) => tool === 'slow_lookup' && phase === 'start')).toHaveLength(1);
      abort.abort();
      expect(await first).toMatchObject({ settled: false });
      expect(await second).toMatchObject({ is_error: false });
    } finally {
      await run.close();
    }
  });
});
