import { eventTypes, initialState, noUsage, type EventBody, type RunEvent, type RunState } from '@treadle/core';
import { describe, expect, test } from 'vitest';
import { longBuckets, metricDefinitions } from './definitions.ts';
import { createMetrics, watchEventLoop, type Metrics } from './metrics.ts';
import { startAtZero } from './start-at-zero.ts';
import { observeEvent, observeWrite, type EventContext } from './observe-event.ts';

const context: EventContext = { agent: 'assistant', chain: 'default', model: 'small', models: ['small', 'big'], tools: ['files/read'], recorded: ['files/read', 'made_up'], created_at: -90, failed: false };

function event(body: EventBody): RunEvent {
  return { ...body, seq: 1, ts: 0, run_id: 'run_1', turn_number: 1, epoch: 1 };
}

async function counted(...bodies: EventBody[]): Promise<string[]> {
  const metrics = createMetrics();
  for (const body of bodies) observeEvent(metrics, event(body), context);
  return linesOf(metrics);
}

async function linesOf(metrics: Metrics): Promise<string[]> {
  const lines = (await metrics.registry.metrics()).split('\n');
  return lines.filter((line) => !line.startsWith('#') && line !== '' && !line.includes('_bucket') && !line.includes('_sum') && !/ 0$/.test(line));
}

describe('observing events', () => {
  test('counts runs, turns and their ends', async () => {
    expect(await counted(
      { type: 'turn_start', attempt: 1, worker: 'w' }, { type: 'turn_start', attempt: 2, worker: 'w' },
      { type: 'turn_end', duration: 2, usage: noUsage }, { type: 'run_end', status: 'completed', stop_reason: 'answered' },
    )).toEqual([
      'treadle_runs_ended_total{agent="assistant",status="completed",stop_reason="answered"} 1', 'treadle_run_lifetime_seconds_count{status="completed"} 1', 'treadle_turns_total{agent="assistant",outcome="ended"} 1',
      'treadle_turn_duration_seconds_count{agent="assistant"} 1',
      'treadle_tool_calls_total{tool="files/read",outcome="deduplicated"} 1', 'treadle_tool_calls_total{tool="other",outcome="deduplicated"} 1',
      'treadle_tool_deduplicated_total{tool="files/read"} 1', 'treadle_tool_deduplicated_total{tool="other"} 1', 'treadle_turns_redelivered_total 1',
    ]);
  });

  test('counts a sub-agent by the event that starts it', async () => {
    const child = { type: 'child_run', child_run_id: 'run_c', tool_use_id: 'c', agent: 'helper' } as const;
    expect(await counted({ ...child, status: 'queued' }, { ...child, status: 'completed', usage: { ...noUsage, input_tokens: 9 } })).toEqual(['treadle_runs_created_total{agent="helper"} 1']);
  });

  test('a turn that goes on after a pause is no redelivery', async () => {
    const metrics = createMetrics();
    const state: RunState = { ...initialState, agent: 'assistant', calls: [{ tool_name: 'files/read', settled: true } as RunState['calls'][number]] };
    const start = event({ type: 'turn_start', attempt: 2, worker: 'w' });
    observeWrite(metrics, { events: [event({ type: 'state_change', old: 'paused', new: 'running', reason: 'resumed' }), start], before: state, after: state });
    expect(await metrics.registry.metrics()).toContain('treadle_turns_redelivered_total 0');
    observeWrite(metrics, { events: [start], before: state, after: state });
    expect(await metrics.registry.metrics()).toMatch(/treadle_turns_redelivered_total 1\n[^]*treadle_tool_deduplicated_total\{tool="other"\} 1|treadle_tool_deduplicated_total\{tool="other"\} 1[^]*treadle_turns_redelivered_total 1/);
  });

  test('a run lasts from its acceptance to its end', async () => {
    const metrics = createMetrics();
    observeEvent(metrics, { ...event({ type: 'run_end', status: 'expired', stop_reason: 'max_turns' }), ts: 5000 }, { ...context, created_at: 1400.5 });
    expect(await metrics.registry.metrics()).toContain('treadle_run_lifetime_seconds_sum{status="expired"} 3599.5');
  });

  test('a turn that ends with a failed request is timed apart from those that came to something', async () => {
    const metrics = createMetrics();
    const error = event({ type: 'error', error_type: 'timeout', action: 'backoff', site: null, model: 'small', detail: 'x', retry_in: 2, consecutive_errors: 1 });
    const end = event({ type: 'turn_end', duration: 180, usage: noUsage });
    observeWrite(metrics, { events: [error, end], before: initialState, after: { ...initialState, agent: 'assistant' } });
    observeWrite(metrics, { events: [end], before: initialState, after: { ...initialState, agent: 'assistant' } });
    expect((await linesOf(metrics)).filter((line) => line.startsWith('treadle_turn'))).toEqual(['treadle_turns_total{agent="assistant",outcome="ended"} 2', 'treadle_turn_duration_seconds_count{agent="assistant"} 1', 'treadle_turn_failure_seconds_count 1']);
  });

  test('counts a plain retry as a recovery, and an end by a failure as none', async () => {
    const error = { type: 'error', error_type: 'server_error', model: 'small', detail: 'x', consecutive_errors: 1, site: null } as const;
    expect((await counted({ ...error, action: 'backoff', retry_in: 2 }, { ...error, action: 'backoff', retry_in: 4 }, { ...error, action: 'park', retry_in: 3600 }, { ...error, action: 'fail', retry_in: null })).filter((line) => line.includes('recoveries')))
      .toEqual(['treadle_recoveries_total{site="none",action="backoff"} 2', 'treadle_recoveries_total{site="none",action="park"} 1']);
  });

  test('summaries cost what they cost', async () => {
    const usage = { ...noUsage, output_tokens: 3, cost_usd: 0.5 };
    const limit = { type: 'max_iterations', limit: 'max_turns', iterations: 2, last_action_summary: '', state: {}, summary: 's' } as const;
    expect(await counted({ ...limit, usage }, limit)).toEqual([
      'treadle_model_requests_total{chain="default",model="small",outcome="replied",error_type="none"} 1',
      'treadle_model_tokens_total{model="small",direction="output"} 3', 'treadle_model_cost_usd_total{model="small"} 0.5',
    ]);
  });

  test('a validator that makes up words gets a label for the first fifty of them', async () => {
    const lines = await counted(...Array.from({ length: 60 }, (_, index): EventBody => ({ type: 'validation_error', validator_name: 'v', error_type: `word_${index}`, feedback: 'f', retries_left: 1 })));
    expect(lines).toHaveLength(51);
    expect(lines).toContain('treadle_validation_errors_total{validator="v",error_type="other"} 10');
  });

  test('counts a reply once, by the event that carries its usage', async () => {
    const usage = { ...noUsage, input_tokens: 10, output_tokens: 3 };
    const use = { type: 'tool_use', tool_name: 'files/read', tool_input: {}, tool_use_id: 'c', provider_id: null, execution: 'serial' } as const;
    expect(await counted({ type: 'assistant_text', content: 'a', is_final: false, attempt: 1 }, { type: 'assistant_text', content: 'ab', is_final: true, attempt: 1, usage }, use)).toEqual([
      'treadle_model_requests_total{chain="default",model="small",outcome="replied",error_type="none"} 1',
      'treadle_model_tokens_total{model="small",direction="input"} 10', 'treadle_model_tokens_total{model="small",direction="output"} 3',
    ]);
    expect(await counted({ ...use, usage })).toContain('treadle_model_requests_total{chain="default",model="small",outcome="replied",error_type="none"} 1');
  });

  test('counts failures, hops and skipped models', async () => {
    const error = { type: 'error', detail: 'x', retry_in: null, consecutive_errors: 1 } as const;
    expect(await counted(
      { ...error, error_type: 'overloaded', action: 'fallback', site: 'fallback_model', model: 'small', from_model: 'small', to_model: 'big' },
      { ...error, error_type: 'aborted', action: 'fail', site: null, model: 'small' },
      { type: 'model_request', model: 'big', provider: 'p', chain: 'default', position: 1, canary: false, skipped: [{ model: 'small', why: 'open' }], estimated_tokens: 1, message_count: 1 },
    )).toEqual([
      'treadle_model_requests_total{chain="default",model="small",outcome="failed",error_type="overloaded"} 1',
      'treadle_model_requests_total{chain="default",model="small",outcome="skipped",error_type="none"} 1',
      'treadle_model_fallbacks_total{chain="default",from_model="small",to_model="big",error_type="overloaded"} 1',
      'treadle_chain_active_model{chain="default",model="big"} 1',
      'treadle_recoveries_total{site="fallback_model",action="fallback"} 1',
    ]);
  });

  test('counts tool calls by outcome; names that models invent are one label', async () => {
    const result = { type: 'tool_result', tool_use_id: 'c', content: 'x', duration: 0.1 } as const;
    expect(await counted(
      { ...result, tool_name: 'files/read', is_error: false }, { ...result, tool_name: 'files/read', is_error: true, outcome: 'unknown' },
      { ...result, tool_name: 'files/read', is_error: true, outcome: 'not_started' }, { ...result, tool_name: 'files/read', is_error: true, outcome: 'denied' }, { ...result, tool_name: 'made_up_7', is_error: true },
    )).toEqual([
      'treadle_tool_calls_total{tool="files/read",outcome="ok"} 1', 'treadle_tool_calls_total{tool="files/read",outcome="unknown"} 1',
      'treadle_tool_calls_total{tool="files/read",outcome="cancelled"} 1', 'treadle_tool_calls_total{tool="files/read",outcome="denied"} 1', 'treadle_tool_calls_total{tool="other",outcome="error"} 1',
      'treadle_tool_duration_seconds_count{tool="files/read"} 4', 'treadle_tool_duration_seconds_count{tool="other"} 1',
    ]);
  });

  test('has an answer for every type of event', () => {
    const metrics = createMetrics();
    const odd = { ts: 0, skipped: [], duration: 0, attempt: 1, usage: undefined, site: null } as unknown as RunEvent;
    for (const type of eventTypes) expect(() => observeEvent(metrics, { ...odd, type } as RunEvent, context), type).not.toThrow();
    expect(() => observeEvent(metrics, { ...odd, type: 'never_heard_of' } as unknown as RunEvent, context)).toThrow(/INVARIANT_BROKEN/);
  });
});

describe('the definitions', () => {
  test('follow the naming rules: prefix, base unit, _total for counters, each name once', () => {
    const all = Object.values(metricDefinitions);
    expect(new Set(all.map((each) => each.name)).size).toBe(all.length);
    for (const { name, type } of all) {
      expect(name).toMatch(/^treadle_[a-z_]+$/);
      expect(name.endsWith('_total'), name).toBe(type === 'counter');
      if (type === 'histogram') expect(name).toMatch(/_seconds$/);
    }
  });

  test('carry no label that could be a run, session, tenant, user or free text', () => {
    const labels = new Set(Object.values(metricDefinitions).flatMap((each) => [...each.labels]));
    expect([...labels].sort()).toEqual([
      'action', 'agent', 'breaker', 'chain', 'decision', 'direction', 'error_type', 'from_model', 'model', 'outcome', 'position', 'queue', 'result', 'site', 'state', 'status', 'stop_reason', 'to', 'to_model', 'tool', 'validator',
    ]);
  });

  test('have buckets that hold the longest turn', () => {
    expect(longBuckets.at(-1)).toBe(655.36);
  });

  test('two registries of one process do not disturb each other', async () => {
    const [one, other] = [createMetrics(), createMetrics()];
    one.commitsFenced.inc();
    expect(await other.registry.metrics()).toContain('treadle_commits_fenced_total 0');
    watchEventLoop(one)();
  });

  test('a process prints what its role has, and fleet facts come from workers or from both', async () => {
    const names = async (role?: 'api' | 'worker') => new Set((await createMetrics(role).registry.getMetricsAsJSON()).map((each) => each.name));
    const [api, worker, all] = [await names('api'), await names('worker'), await names()];
    expect(all.size).toBe(Object.keys(metricDefinitions).length);
    expect(new Set([...api, ...worker])).toEqual(all);
    expect(api).not.toContain('treadle_queue_depth');
    expect(worker).not.toContain('treadle_sse_clients');
  });

  test('what alerts wait for is there at 0 before it happens', async () => {
    const metrics = createMetrics('worker');
    startAtZero(metrics, ['assistant']);
    const page = await metrics.registry.metrics();
    for (const series of ['runs_ended_total{agent="assistant",status="failed",stop_reason="poisoned"}', 'replay_audits_total{result="different"}', 'archive_segments_total{outcome="failed"}']) expect(page).toContain(`treadle_${series} 0\n`);
  });
});
