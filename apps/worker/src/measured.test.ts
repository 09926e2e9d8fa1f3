import { noUsage, type ModelRequest } from '@treadle/core';
import type { ModelGateway, ToolRunner, TurnStore } from '@treadle/engine';
import { createMemoryRunStore, testModel, testTool } from '@treadle/testkit';
import { createMetrics, type Metrics } from '@treadle/telemetry';
import { alwaysThere } from '@treadle/testkit';
import { expect, test } from 'vitest';
import { measuredModels, measuredStore, measuredTools, measuredTurn } from './measured.ts';

const after = (ms: number) => new Promise<void>((resolve) => { setTimeout(resolve, ms); });
const request: ModelRequest = { model: testModel('small'), messages: [], tools: [], system: '' } as unknown as ModelRequest;
const reply = { text: 'ab', thinking: '', provider_data: null, calls: [], finish: 'stop', finish_raw: 'stop', usage: noUsage } as const;
const gateway: ModelGateway = {
  ...alwaysThere,
  async call({ onText }) {
    await after(30);
    onText('a');
    await after(30);
    onText('b');
    return { type: 'replied', reply };
  },
};
const tools: ToolRunner = { catalogue: () => Promise.reject(new Error('unused')), check: () => null, asks: () => false, run: async () => { await after(60); return { content: '', is_error: false, settled: true }; } };

async function sumOf(metrics: Metrics, name: 'modelDuration' | 'modelFailure' | 'modelFirstToken' | 'turnOverhead' | 'turnDelay' | 'eventAppend') {
  const { values } = await metrics[name].get();
  const of = (ending: string) => values.find((value) => (value as { metricName?: string }).metricName?.endsWith(ending))?.value ?? 0;
  return { count: of('_count'), sum: of('_sum') };
}

test('a turn\'s own time is what neither its model nor its tools took, and tools side by side count once', async () => {
  const metrics = createMetrics();
  const models = measuredModels(metrics, gateway);
  const runner = measuredTools(tools);
  const startMs = performance.now();
  await measuredTurn(metrics, async () => {
    await models.call({ request, signal: AbortSignal.any([]), onText: () => undefined });
    await after(20);
    const run = { tool: testTool('t'), input: {}, signal: AbortSignal.any([]) } as unknown as Parameters<ToolRunner['run']>[0];
    await Promise.all([runner.run(run), runner.run(run), runner.run(run)]);
  });
  const whole = (performance.now() - startMs) / 1000;
  const [overhead, model, first] = [await sumOf(metrics, 'turnOverhead'), await sumOf(metrics, 'modelDuration'), await sumOf(metrics, 'modelFirstToken')];
  expect([overhead.count, model.count, first.count]).toEqual([1, 1, 1]);
  expect(first.sum).toBeLessThan(model.sum);
  expect(overhead.sum).toBeGreaterThan(0);
  // Three tools one after the other would have taken away more than there was.
  expect(overhead.sum + model.sum).toBeLessThan(whole);
});

test('a model call that fails or throws is timed apart from replies, and outside a turn nothing is kept', async () => {
  const metrics = createMetrics();
  const broken = measuredModels(metrics, { ...alwaysThere, call: () => Promise.reject(new Error('oops')) });
  await expect(broken.call({ request, signal: AbortSignal.any([]), onText: () => undefined })).rejects.toThrow('oops');
  const failing = measuredModels(metrics, { ...alwaysThere, call: () => Promise.resolve({ type: 'failed', failure: { error_type: 'overloaded', detail: '', retry_after_s: null, partial_text: '', usage: null } }) });
  await failing.call({ request, signal: AbortSignal.any([]), onText: () => undefined });
  expect([(await sumOf(metrics, 'modelFailure')).count, (await sumOf(metrics, 'modelDuration')).count]).toEqual([2, 0]);
  expect((await sumOf(metrics, 'turnOverhead')).count).toBe(0);
});

test('a write is timed when it is durable, and one that failed is not', async () => {
  const metrics = createMetrics();
  const memory = createMemoryRunStore();
  const store = measuredStore(metrics, memory);
  await store.appendMany([]);
  expect((await sumOf(metrics, 'eventAppend')).count).toBe(1);
  const away: TurnStore = { ...memory, appendMany: () => Promise.reject(new Error('away')) };
  await expect(measuredStore(metrics, away).appendMany([])).rejects.toThrow('away');
  expect((await sumOf(metrics, 'eventAppend')).count).toBe(1);
});

test('writes that are refused to an old claim are counted, each of a batch', async () => {
  const metrics = createMetrics();
  const refusing = { ...createMemoryRunStore(), commit: () => Promise.resolve({ type: 'fenced' }), appendMany: () => Promise.resolve([{ type: 'fenced' }, { type: 'committed', inbox: [] }, { type: 'fenced' }]) } as unknown as TurnStore;
  const store = measuredStore(metrics, refusing);
  await store.commit({ next: { type: 'keep' }, pending: [] } as unknown as Parameters<TurnStore['commit']>[0]);
  await store.appendMany([]);
  expect(await metrics.registry.metrics()).toContain('treadle_commits_fenced_total 3');
});

test('how long a turn was put off is kept once it is certain, and a wait for a person is none', async () => {
  const metrics = createMetrics();
  const answering = (type: string) => measuredStore(metrics, { ...createMemoryRunStore(), commit: () => Promise.resolve({ type, inbox: [] }) } as unknown as TurnStore);
  const commit = (next: object, pending: string[] = []) => ({ next, pending }) as unknown as Parameters<TurnStore['commit']>[0];
  await answering('committed').commit(commit({ type: 'wait', delay_ms: 2500 }));
  await answering('committed').commit(commit({ type: 'wait', delay_ms: 3_600_000 }, ['call_1']));
  await answering('committed').commit(commit({ type: 'job' }));
  await answering('inbox_changed').commit(commit({ type: 'wait', delay_ms: 2500 }));
  expect(await sumOf(metrics, 'turnDelay')).toEqual({ count: 1, sum: 2.5 });
});
