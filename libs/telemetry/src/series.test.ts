/** However many runs there are, and whatever models invent, the number of series is that of the configuration. */
import { errorTypes, eventTypes, initialState, noUsage, recoveryActions, recoverySites, runStatuses, statusOfStopReason, type EndStatus, type ErrorType, type EventBody, type RunEvent, type RunState, type StopReason } from '@treadle/core';
import { expect, test } from 'vitest';
import { createMetrics } from './metrics.ts';
import { observeWrite } from './observe-event.ts';

const tools = Array.from({ length: 12 }, (_, index) => `files/tool_${index}`);
const models = Array.from({ length: 20 }, (_, index) => `model_${index}`);
const agents = ['assistant', 'researcher', 'clerk'];

/** All reasons, all errors, 300 names that are no tools: each run does something else. */
function eventsOf(run: number): EventBody[] {
  const pick = <T>(list: readonly T[]): T => list[run % list.length]!;
  const [stop_reason, status] = pick(Object.entries(statusOfStopReason)) as [StopReason, EndStatus];
  const model = pick(models);
  const usage = { ...noUsage, input_tokens: run, output_tokens: 1, cached_tokens: 1, wasted_tokens: 1, cost_usd: 0.01 };
  const result = { type: 'tool_result', content: `run ${run}`, is_error: run % 2 === 0, duration: run % 600, tool_use_id: `call_${run}` } as const;
  return [
    { type: 'turn_start', attempt: 1 + (run % 3), worker: `worker-${run}` },
    { type: 'model_request', model, provider: 'p', chain: 'default', position: 0, canary: false, skipped: models.map((each) => ({ model: each, why: 'open' })), estimated_tokens: run, message_count: 1 },
    { type: 'assistant_text', content: `${run}`, is_final: true, attempt: 1, usage },
    { ...result, tool_name: pick(tools) }, { ...result, tool_name: `invented_${run % 300}` }, { ...result, tool_name: pick(tools), outcome: pick(['unknown', 'not_started', 'cancelled'] as const) },
    { type: 'error', error_type: pick(errorTypes) as ErrorType, action: pick(recoveryActions), site: pick([...recoverySites, null]), model, from_model: model, to_model: models[(run + 1) % models.length]!, detail: `${run}`, retry_in: run, consecutive_errors: 1, usage },
    { type: 'validation_error', validator_name: pick(['shape', 'tone']), error_type: `said_${run}`, feedback: `${run}`, retries_left: 1 },
    { type: 'turn_end', duration: run % 600, usage }, { type: 'run_end', status, stop_reason },
  ];
}

test('C70: 5,000 runs of 200 tenants, with 300 invented tool names and 20 models, make fewer than 2,000 series and less than 1 MB', async () => {
  const metrics = createMetrics('worker');
  for (let run = 0; run < 5000; run++) {
    const state = {
      ...initialState, run_id: `run_${run}`, tenant: `tenant-${run % 200}`, session_id: `ses_${run}`, agent: agents[run % agents.length]!, model: models[run % models.length]!, spec: { chain: { name: 'default', models: models.map((name) => ({ name })) } }, tools: tools.map((name) => ({ name })),
      calls: [{ tool_name: `invented_${run % 300}`, settled: true }],
    } as unknown as RunState;
    const events = eventsOf(run).map((body) => ({ ...body, seq: 1, ts: 0, run_id: `run_${run}`, turn_number: 1, epoch: 1 }) as RunEvent);
    observeWrite(metrics, { events, before: state, after: state });
  }
  // What a worker measures beside the events, by model.
  for (const model of models) for (const histogram of [metrics.modelDuration, metrics.modelFirstToken]) histogram.observe({ model }, 1);
  const page = await metrics.registry.metrics();
  expect(Buffer.byteLength(page)).toBeLessThan(1_000_000);
  const lines = page.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  expect(lines.filter((line) => /invented|run_\d|ses_\d|tenant-|call_\d|worker-\d/.test(line))).toEqual([]);
  expect(lines.length).toBeLessThan(2000);
  // The load is what it says it is.
  expect(lines.filter((line) => line.startsWith('treadle_runs_ended_total'))).toHaveLength(Object.keys(statusOfStopReason).length * agents.length);
  expect(lines).toContain('treadle_tool_deduplicated_total{tool="other"} 3333');
  expect(eventTypes.length).toBeGreaterThan(20);
  expect(runStatuses.length).toBe(7);
});

test('C70: a server that offers other tools to each run makes no series without end', async () => {
  const metrics = createMetrics('worker');
  for (let run = 0; run < 1000; run++) {
    const tool_name = `shifting/tool_${run}`;
    const state = { ...initialState, run_id: `run_${run}`, agent: 'assistant', model: 'm', tools: [{ name: tool_name }], calls: [{ tool_name, settled: true }] } as unknown as RunState;
    const bodies: EventBody[] = [{ type: 'turn_start', attempt: 2, worker: 'w' }, { type: 'tool_result', content: 'x', is_error: false, duration: 1, tool_use_id: 'c', tool_name }];
    observeWrite(metrics, { events: bodies.map((body) => ({ ...body, seq: 1, ts: 0, run_id: `run_${run}`, turn_number: 1, epoch: 1 }) as RunEvent), before: state, after: state });
  }
  const lines = (await metrics.registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  expect(lines.length).toBeLessThan(2000);
  expect(lines).toContain('treadle_tool_calls_total{tool="shifting/tool_0",outcome="ok"} 1');
  expect(lines.find((line) => line.startsWith('treadle_tool_calls_total{tool="other",outcome="ok"}'))).toBe('treadle_tool_calls_total{tool="other",outcome="ok"} 936');
});
