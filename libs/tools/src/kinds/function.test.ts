import { getEventListeners } from 'node:events';
import { readLedger, ledgerTools, testSpec, testTool } from '@treadle/testkit';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { FunctionToolContext, FunctionToolSource } from '../sources.ts';
import { callOf } from '../test-call.ts';
import { createToolRunner, type OpenToolRunner } from '../tool-runner.ts';

function source(run: FunctionToolSource['run'], name = 'tool'): FunctionToolSource {
  return { name, description: 'Does it.', input_schema: { type: 'object' }, effect: 'once', parallel: 'serial', timeout_ms: null, run };
}

function runnerOf(functions: readonly FunctionToolSource[]): OpenToolRunner {
  return createToolRunner({ functions, mcpServers: {}, policies: {} }, { graceMs: 60 });
}

function runTool(run: FunctionToolSource['run'], { signal = new AbortController().signal, timeout_ms = 5_000 } = {}) {
  return runnerOf([source(run)]).run(callOf(testTool('tool', { timeout_ms }), { a: 1 }, signal));
}

describe('a function tool', () => {
  test.each<[string, unknown, string]>([
    ['a string', 'as it is', 'as it is'], ['an object', { a: [1] }, '{"a":[1]}'], ['a number', 3, '3'], ['null', null, 'null'], ['nothing', undefined, '(no result)'],
    ['half a character', 'x\ud83dy', 'x\ufffdy'],
  ])('answers %s as text', async (_name, value, content) => {
    expect(await runTool(() => value)).toEqual({ content, is_error: false, settled: true });
    expect(await runTool(async () => value)).toEqual({ content, is_error: false, settled: true });
  });

  test.each<[string, unknown, string]>([
    ['bytes', new TextEncoder().encode('bytes'), 'bytes'], ['an ArrayBuffer', new TextEncoder().encode('buffer').buffer, 'buffer'], ['a view of one', new DataView(new TextEncoder().encode('a view').buffer, 2), 'view'],
  ])('reads %s as what they are', async (_name, value, content) => {
    expect(await runTool(() => value)).toEqual({ content, attachments: [], is_error: false, settled: true });
  });

  const unreadable = { get message() { throw new Error('no'); }, toJSON() { throw new Error('no'); } };
  test.each<[string, unknown, string]>([
    ['an error', new Error('out of ink'), 'out of ink'], ['an error without words', new TypeError(), 'TypeError'], ['null', null, 'null'],
    ['undefined', undefined, 'undefined'], ['an object', { code: 4 }, '{"code":4}'], ['what resists being read', unreadable, 'an error that cannot be read'], ['what has no JSON', { toJSON: () => undefined }, 'an error without words'],
  ])('that throws %s gives an error the model can read', async (_name, thrown, content) => {
    expect(await runTool(() => { throw thrown; })).toEqual({ content, is_error: true, settled: true });
    expect(await runTool(() => Promise.reject(thrown as Error))).toEqual({ content, is_error: true, settled: true });
  });

  test('whose result cannot be written did run', async () => {
    const loop: Record<string, unknown> = {};
    loop.self = loop;
    expect(await runTool(() => loop)).toMatchObject({ is_error: true, settled: true, content: expect.stringContaining('The tool ran') as string });
    expect(await runTool(() => 10n)).toMatchObject({ is_error: true, settled: true });
  });

  test('is told key, epoch and ids, and gets a copy of its arguments', async () => {
    const seen: FunctionToolContext[] = [];
    const tool = source((input, context) => {
      seen.push(context);
      (input as Record<string, unknown>).a = 'changed';
    });
    const call = callOf(testTool('tool'), { a: 1 });
    await runnerOf([tool]).run(call);
    expect(seen[0]).toMatchObject({ idempotency_key: call.idempotency_key, epoch: 7, run_id: 'run_1', tool_use_id: call.tool_use_id });
    expect(call.input).toEqual({ a: 1 });
  });

  test('that heeds its time-out ends with it, outcome unknown', async () => {
    const result = await runTool((_input, { signal }) => new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    }), { timeout_ms: 20 });
    expect(result).toEqual({ content: 'The tool timed out after 20 ms. Whether it had an effect is not known.', is_error: true, settled: false });
  });

  test('that ignores its signal is left behind after the grace, and what it throws later harms nobody', async () => {
    const stray: unknown[] = [];
    const note = (reason: unknown) => stray.push(reason);
    process.on('unhandledRejection', note);
    const { promise, reject } = Promise.withResolvers<never>();
    const abort = new AbortController();
    const running = runTool(() => promise, { signal: abort.signal });
    abort.abort();
    expect(await running).toEqual({ content: 'The call was interrupted. Whether it had an effect is not known.', is_error: true, settled: false });
    reject(new Error('too late'));
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', note);
    expect(stray).toEqual([]);
  });

  test('is not begun where the caller has aborted before', async () => {
    let begun = false;
    const result = await runTool(() => { begun = true; }, { signal: AbortSignal.abort() });
    expect(result).toEqual({ content: 'The call was interrupted before it began.', is_error: true, settled: true, never_begun: true });
    expect(begun).toBe(false);
  });

  test('leaves no listener on the caller\'s signal', async () => {
    const { signal } = new AbortController();
    await runTool(() => 'x', { signal });
    await runTool(() => { throw new Error('x'); }, { signal });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('that this worker does not have is an error, and not in doubt', async () => {
    expect(await runnerOf([]).run(callOf(testTool('gone'), {}))).toEqual({ content: 'This worker has no tool named gone.', is_error: true, settled: true });
    expect(await runnerOf([]).run(callOf(testTool('server/gone'), {}))).toMatchObject({ is_error: true, settled: true });
  });
});

describe('a function tool that tells of its progress', () => {
  beforeEach(() => { vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }); });
  afterEach(() => { vi.useRealTimers(); });

  const sleep = (ms: number) => new Promise<void>((resolve) => { setTimeout(resolve, ms); });
  const tool = (over: object = {}) => testTool('tool', { timeout_ms: 100, max_total_ms: 350, ...over });
  /** Tells of it every 90 ms, `times` times. */
  const working = (times: number): FunctionToolSource['run'] => async (_input, { progress, signal }) => {
    for (let done = 1; done <= times; done++) {
      await sleep(90);
      signal.throwIfAborted();
      progress(done, times, `part ${done}`);
    }
    return 'done';
  };

  test.each([
    ['goes on beyond its time-out', working(3), {}, { content: 'done', is_error: false, settled: true }],
    ['is not put off beyond its time in all', working(9), {}, { content: 'The tool timed out after 350 ms in all. Whether it had an effect is not known.', is_error: true, settled: false }],
    ['has four times its time-out where nobody says more', working(5), { max_total_ms: undefined }, { content: 'The tool timed out after 400 ms in all. Whether it had an effect is not known.', is_error: true, settled: false }],
    ['ends when it falls silent', async (input, context) => { await working(2)(input, context); await sleep(500); }, {}, { content: 'The tool timed out: there was no progress for 100 ms. Whether it had an effect is not known.', is_error: true, settled: false }],
  ] satisfies [string, FunctionToolSource['run'], object, object][])('%s', async (_name, run, over, expected) => {
    const running = runnerOf([source(run)]).run(callOf(tool(over), {}));
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await running).toEqual(expected);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('never fails for it, whatever it says and however often, and is not heard any more once it has ended', async () => {
    let kept: FunctionToolContext['progress'] = () => undefined;
    const odd = [NaN, -1, Infinity, null, 'half', {}, { get message() { throw new Error('no'); } }] as unknown as number[];
    const run: FunctionToolSource['run'] = (_input, { progress }) => {
      kept = progress;
      for (let time = 0; time < 10_000; time++) progress(odd[time % odd.length], odd[0], 'x'.repeat(1_000));
      expect(vi.getTimerCount()).toBe(1);
      return 'done';
    };
    expect(await runnerOf([source(run)]).run(callOf(tool(), {}))).toEqual({ content: 'done', is_error: false, settled: true });
    kept(1);
    expect(vi.getTimerCount()).toBe(0);
  });
});

test('the test tools as functions record their start and end', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'treadle-tools-'));
  const file = join(folder, 'ledger.jsonl');
  const runner = runnerOf(ledgerTools(file));
  const { tools, problems } = await runner.catalogue(testSpec());
  expect(problems).toEqual([]);
  const touch = tools.find((tool) => tool.name === 'touch')!;
  expect(touch).toMatchObject({ effect: 'once', parallel: 'serial', timeout_ms: 30_000 });
  const call = callOf(touch, { name: 'n' });
  expect(await runner.run(call)).toEqual({ content: 'touched n', is_error: false, settled: true });
  expect(readLedger(file)).toMatchObject(['start', 'end'].map((phase) => ({
    phase, tool: 'touch', run_id: 'run_1', tool_use_id: call.tool_use_id, idempotency_key: call.idempotency_key, epoch: 7, input: { name: 'n' },
  })));
  await rm(folder, { recursive: true });
});
