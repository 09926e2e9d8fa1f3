/** Spans of each kind and each way of ending, as an exporter would get them. */
import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider, type ReadableSpan } from '@opentelemetry/sdk-trace';
import { initialState, noUsage, type ModelReply, type ModelRequest, type OpenCall, type RunState, type ToolDefinition } from '@treadle/core';
import { traced, type SpanEnd, type Traced } from '@treadle/engine';
import { beforeEach, expect, test } from 'vitest';
import { mostContentBytes, mostTextBytes } from './content.ts';
import { createTracer } from './tracer.ts';

const secret = 'sk-secret-of-a-model';
const mask = (text: string): string => text.replaceAll(secret, '[redacted]');
const parent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

let exporter: InMemorySpanExporter;
beforeEach(() => { exporter = new InMemorySpanExporter(); });

function tracerThat({ capture = false } = {}) {
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
  return createTracer(provider.getTracer('test'), { mask, capture });
}

const state: RunState = { ...initialState, run_id: 'run_1', session_id: 'ses_1', agent: 'tester', agent_version: 'sha256:1', tenant: 'acme', turn_number: 2, turn_open: true, attempt: 1 };
const model = { name: 'small', provider: 'ollama', model: 'qwen', context_window: 1000, max_output_tokens: 100, supports_tools: true, supports_images: false };
const request: ModelRequest = { model, system: 'Be kind.', messages: [{ role: 'user', content: `hello ${secret}` }], tools: [] };
const tool: ToolDefinition = { name: 'files/read', wire_name: 'files__read', description: '', input_schema: {}, effect: 'read', parallel: 'parallel', timeout_ms: 1, hash: '' };
const call: OpenCall = { tool_use_id: 't1.0', tool_name: 'files/read', tool_input: { path: `/a?key=${secret}` }, execution: 'parallel', invalid: null, settled: false, waiting_result: null };
const reply: ModelReply = { text: `yes ${secret}`, thinking: '', provider_data: null, calls: [], finish: 'stop', finish_raw: 'end_turn', usage: { ...noUsage, input_tokens: 3, output_tokens: 2, cached_tokens: 1, cost_usd: 0.5 }, served_as: 'qwen:4b' };

const kinds: Record<Traced['type'], Traced> = {
  run_creation: { type: 'run_creation', run_id: 'run_1', session_id: 'ses_1', tenant: 'acme', agent: 'tester', agent_version: 'sha256:1' },
  turn: { type: 'turn', state, claimed: { epoch: 7, deliveries: 2 }, job_n: 4, worker: 'w1' },
  model_call: { type: 'model_call', state, request, purpose: 'reply' },
  tool_call: { type: 'tool_call', state, tool, call },
  archive_write: { type: 'archive_write', range: { run_id: 'run_1', first_seq: 3, last_seq: 9, ended: false } },
};

function made(what: Traced, how: SpanEnd, options: { readonly capture?: boolean } = {}): ReadableSpan {
  tracerThat(options).begin(what, { parent }).end(how);
  const [span, ...more] = exporter.getFinishedSpans();
  expect(more).toEqual([]);
  return span!;
}

test.each<[Traced['type'], SpanEnd, string, object]>([
  ['run_creation', { type: 'run_creation', reply: 'created' }, 'create_run tester', { 'gen_ai.agent.name': 'tester', 'treadle.run.creation': 'created', 'treadle.tenant': 'acme' }],
  ['turn', { type: 'turn', how: 'done', state: { ...state, status: 'completed', stop_reason: 'answered' } }, 'invoke_agent tester', {
    'gen_ai.operation.name': 'invoke_agent', 'gen_ai.conversation.id': 'ses_1', 'treadle.turn.number': 2, 'treadle.turn.attempt': 2, 'treadle.epoch': 7, 'treadle.deliveries': 2, 'treadle.job.number': 4,
    'treadle.turn.outcome': 'done', 'treadle.run.status': 'completed', 'treadle.run.stop_reason': 'answered',
  }],
  ['model_call', { type: 'model_call', outcome: { type: 'replied', reply } }, 'chat qwen', {
    'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'ollama', 'gen_ai.request.model': 'qwen', 'gen_ai.response.model': 'qwen:4b', 'gen_ai.response.finish_reasons': ['end_turn'],
    'gen_ai.usage.input_tokens': 3, 'gen_ai.usage.output_tokens': 2, 'gen_ai.usage.cache_read.input_tokens': 1, 'treadle.model': 'small', 'treadle.model.cost_usd': 0.5, 'treadle.model.purpose': 'reply',
  }],
  ['tool_call', { type: 'tool_call', result: { content: 'x', is_error: false } }, 'execute_tool files/read', {
    'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'files/read', 'gen_ai.tool.call.id': 't1.0', 'treadle.tool.outcome': 'ok', 'treadle.tool.effect': 'read',
  }],
  ['archive_write', { type: 'archive_write' }, 'archive_write', { 'treadle.run.id': 'run_1', 'treadle.archive.first_seq': 3, 'treadle.archive.last_seq': 9 }],
])('%s', (type, how, name, attributes) => {
  const span = made(kinds[type], how);
  expect(span).toMatchObject({ name, status: { code: SpanStatusCode.UNSET }, attributes });
  expect(span.kind).toBe(type === 'model_call' || type === 'archive_write' ? SpanKind.CLIENT : SpanKind.INTERNAL);
  expect([span.spanContext().traceId, span.parentSpanContext?.spanId]).toEqual(['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']);
  // Nothing that was said.
  expect(JSON.stringify(span.attributes)).not.toMatch(/hello|yes|kind|\/a/);
});

const failure = { error_type: 'rate_limited', detail: 'said by the provider: hello', retry_after_s: null, partial_text: '', usage: null } as const;

test.each<[Traced['type'], SpanEnd, string]>([
  ['run_creation', { type: 'run_creation', reply: 'session_busy' }, 'session_busy'],
  ['turn', { type: 'turn', how: 'fenced', state }, 'fenced'],
  ['turn', { type: 'turn', how: 'threw', state }, 'threw'],
  ['turn', { type: 'turn', how: 'done', state: { ...state, status: 'failed', stop_reason: 'refused' } }, 'refused'],
  ['model_call', { type: 'model_call', outcome: { type: 'failed', failure } }, 'rate_limited'],
  ['tool_call', { type: 'tool_call', result: { content: 'hello', is_error: true } }, 'tool_error'],
  ['tool_call', { type: 'tool_call', result: { content: 'hello', is_error: true, outcome: 'unknown' } }, 'unknown'],
  ['archive_write', { type: 'threw', error: Object.assign(new Error('hello'), { code: 'ECONNREFUSED' }) }, 'ECONNREFUSED'],
  ['archive_write', { type: 'threw', error: new TypeError('hello') }, 'TypeError'],
  ['archive_write', { type: 'threw', error: 'hello' }, '_OTHER'],
])('%s that goes wrong: %j', (type, how, error) => {
  const span = made(kinds[type], how);
  expect(span.attributes['error.type']).toBe(error);
  expect(span.status).toEqual({ code: SpanStatusCode.ERROR });
  expect(JSON.stringify([span.attributes, span.status])).not.toContain('hello');
});

test('a drained turn and one that goes on are no failures', () => {
  for (const how of ['drain', 'done'] as const) tracerThat().begin(kinds.turn, { parent: null }).end({ type: 'turn', how, state });
  expect(exporter.getFinishedSpans().map((span) => span.status.code)).toEqual([SpanStatusCode.UNSET, SpanStatusCode.UNSET]);
});

test('captured content is masked before it is cut: no piece of a secret is left at the edge, wherever that is', () => {
  for (let before = mostTextBytes / 2; before < mostTextBytes; before += 5) {
    const messages = [{ role: 'user' as const, content: `${'x'.repeat(before)}${secret}${'y'.repeat(9000)}` }];
    tracerThat({ capture: true }).begin({ ...kinds.model_call, request: { ...request, messages } } as Traced, { parent: null }).end({ type: 'threw', error: null });
  }
  const inputs = exporter.getFinishedSpans().map((span) => String(span.attributes['gen_ai.input.messages']));
  expect(inputs.every((input) => input.includes('bytes left out'))).toBe(true);
  expect(inputs.filter((input) => input.includes('sk-s') || input.includes('odel'))).toEqual([]);
});

test('captured content is cut, message by message and as a whole', () => {
  const long = { ...request, messages: Array.from({ length: 50 }, (_, index) => ({ role: 'user' as const, content: `${index} ${'x'.repeat(mostTextBytes - 10)}${secret}${'y'.repeat(9000)}` })) };
  const span = made({ ...kinds.model_call, request: long } as Traced, { type: 'model_call', outcome: { type: 'replied', reply: { ...reply, text: `${'\u0000'.repeat(9000)}${secret}`, calls: Array.from({ length: 40 }, () => ({ provider_id: 'c', name: 'n', input: { text: 'z'.repeat(5000) }, problem: null })) } } }, { capture: true });
  for (const name of ['gen_ai.input.messages', 'gen_ai.output.messages']) expect(Buffer.byteLength(String(span.attributes[name])), name).toBeLessThanOrEqual(mostContentBytes);
  const kept = JSON.parse(String(span.attributes['gen_ai.input.messages'])) as { parts: { content: string }[] }[];
  // The newest stay, in their order.
  expect(kept.at(-1)!.parts[0]!.content.startsWith('49 ')).toBe(true);
  expect(kept.length).toBeGreaterThan(3);
  expect(JSON.stringify(span.attributes)).not.toMatch(/sk-sec|of-a-model/);
});

test('nothing is said twice: a span ends once, and the first word counts', () => {
  const span = tracerThat().begin(kinds.tool_call, { parent });
  span.end({ type: 'tool_call', result: { content: '', is_error: false } });
  span.end({ type: 'threw', error: new Error('late') });
  expect(exporter.getFinishedSpans().map((each) => each.attributes['treadle.tool.outcome'])).toEqual(['ok']);
});

test('values are bounded and secrets are taken out of them, whoever said them', () => {
  const span = tracerThat().begin({ ...kinds.tool_call, tool: { ...tool, name: `n${secret}` }, call: { ...call, tool_use_id: 'i'.repeat(9000) } } as Traced, { parent: null });
  span.end({ type: 'tool_call', result: { content: '', is_error: false } });
  const [made] = exporter.getFinishedSpans();
  expect([made!.name, String(made!.attributes['gen_ai.tool.call.id']).length]).toEqual(['execute_tool n[redacted]', 512]);
});

test('what cannot be read as a span never hurts the work', async () => {
  const span = tracerThat().begin({ type: 'model_call', state, purpose: 'reply', request: undefined as unknown as ModelRequest }, { parent });
  expect(span.traceparent).toBeNull();
  expect(await traced(span, async () => 'done', () => ({ type: 'archive_write' }))).toBe('done');
  const ending = tracerThat().begin(kinds.model_call, { parent });
  ending.end({ type: 'model_call', outcome: undefined as never });
  expect(exporter.getFinishedSpans().map((each) => each.name)).toEqual(['chat qwen']);
});

test('whoever throws ends the span, and is heard', async () => {
  const span = tracerThat().begin(kinds.archive_write, { parent });
  await expect(traced(span, () => Promise.reject(new RangeError('no')), () => ({ type: 'archive_write' }))).rejects.toThrow('no');
  expect(exporter.getFinishedSpans()[0]!.attributes['error.type']).toBe('RangeError');
});

test('the parts of a part are in one trace, each under its own', () => {
  const turn = tracerThat().begin(kinds.turn, { parent });
  const tool = turn.begin(kinds.tool_call);
  tool.carriedBy({ protocol: 'mcp', transport: 'tcp' });
  tool.begin(kinds.run_creation).end({ type: 'run_creation', reply: 'created' });
  tool.end({ type: 'tool_call', result: { content: '', is_error: false } });
  turn.end({ type: 'turn', how: 'done', state });
  const [creation, called, whole] = exporter.getFinishedSpans();
  expect([creation!.parentSpanContext?.spanId, called!.parentSpanContext?.spanId]).toEqual([called!.spanContext().spanId, whole!.spanContext().spanId]);
  expect(called!.attributes).toMatchObject({ 'mcp.method.name': 'tools/call', 'network.transport': 'tcp' });
  expect(turn.traceparent).toBe(`00-4bf92f3577b34da6a3ce929d0e0e4736-${whole!.spanContext().spanId}-01`);
});
