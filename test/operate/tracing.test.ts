/**
 * Traces of the real processes, as a collector receives them: one trace for a run, its turns on whatever worker, its sub-agents and its
 * archive; nothing of what was said unless it is asked for.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { reply, startOtlpReceiver, text, type ChatBody, type OtlpReceiver, type ReceivedSpan, type ScriptedReply } from '@treadle/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startStage, until, type Role, type Stage } from '../e2e/processes.ts';

let collector: OtlpReceiver;
let stage: Stage | null = null;
beforeEach(async () => { collector = await startOtlpReceiver(); });
afterEach(async () => {
  await stage?.stop();
  stage = null;
  await collector.close();
});

const secret = 'sk-planted-model-key-77';
const caller = { trace: '4bf92f3577b34da6a3ce929d0e0e4736', span: '00f067aa0ba902b7' };
/** Stands in everything that people, models and tools say. */
const said = 'Rumpelstiltskin';

/** By how many results have come: a tool, a sub-agent, an answer. What is slow is slow enough for a worker to be killed in it. */
function script(body: ChatBody): ScriptedReply {
  const messages = body.messages ?? [];
  const results = messages.filter((message) => message.role === 'tool').length;
  const asked = String(messages.findLast((message) => message.role === 'user')?.content);
  if (asked.startsWith('help')) return text(`${said} was helped`);
  if (results === 0) return reply({ text: `${said} says the model`, calls: [{ id: null, name: 'test__append_row', args: { v: said } }] });
  if (results === 1) return reply({ calls: [{ id: null, name: 'spawn_agent', args: { agent: 'helper', input: `help ${said}` } }] }, { delayMs: asked.includes('slowly') ? 2500 : 0 });
  return text(`${said} is answered`);
}

function settings(over: Readonly<Record<string, string>> = {}): Record<string, string> {
  return { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_BSP_SCHEDULE_DELAY: '50', ...over };
}

async function begin(env: Readonly<Record<string, string>>): Promise<Stage> {
  const agent = { instructions: `You know ${said}.`, chain: 'default' };
  stage = await startStage({
    model: { script }, env: { PLANTED: secret, ...env },
    config: (url) => ({
      models: { small: { provider: 'ollama', model: 'fake', base_url: url, context_window: 32_768, max_output_tokens: 1024, credentials: ['env:PLANTED'] } },
      agents: { boss: { ...agent, tools: ['test/*', 'spawn_agent'], subagents: ['helper'] }, helper: { ...agent, tools: ['test/add'] } },
    }),
  });
  return stage;
}

async function post(path: string, body: object, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const answer = await fetch(stage!.api.url + path, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) });
  expect(answer.status).toBe(202);
  return (await answer.json() as { id: string }).id;
}

const named = (name: string): ReceivedSpan[] => collector.spans.filter((span) => span.name === name);
const ofRun = (id: string, name: string): ReceivedSpan[] => named(name).filter((span) => span.attributes['treadle.run.id'] === id);

/** The whole of a run is there: the end of a span is sent some time after it happened. */
const whole = (id: string) => until('the last turn and the archived end are there', () => ofRun(id, 'invoke_agent boss').some((span) => span.attributes['treadle.run.status'] === 'completed') && archivedTo(id));

async function archivedTo(id: string): Promise<boolean> {
  const { last_seq } = await stage!.client.run(id);
  return ofRun(id, 'archive_write').some((span) => span.attributes['treadle.archive.last_seq'] === last_seq);
}

function linesOf(role: Role): unknown[] {
  return role.output().split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as unknown);
}

function onlyIn(spans: readonly ReceivedSpan[]): ReceivedSpan {
  expect(spans).toHaveLength(1);
  return spans[0]!;
}

test('a run over a killed worker, with a tool and a sub-agent, is one trace of its caller, with the conventions\' names and nothing of what was said', async () => {
  await begin(settings({ LOG_LEVEL: 'trace' }));
  const first = await stage!.startWorker();
  const id = await post('/v1/runs', { agent: 'boss', input: `go slowly, ${said}` }, { traceparent: `00-${caller.trace}-${caller.span}-01` });
  await until('the first turn is there, and the second under way', () => ofRun(id, 'invoke_agent boss').length === 1 && stage!.model.requests.length === 2);
  first.kill();
  await first.exited;
  const second = await stage!.startWorker();
  expect(await stage!.client.wait(id, 60_000)).toMatchObject({ status: 'completed' });
  await whole(id);

  expect(new Set(collector.spans.map((span) => span.trace_id))).toEqual(new Set([caller.trace]));
  const created = onlyIn(ofRun(id, 'create_run boss'));
  expect(created).toMatchObject({ parent_id: caller.span, kind: 'internal', failed: false, attributes: { 'gen_ai.agent.name': 'boss', 'treadle.run.creation': 'created', 'treadle.tenant': 'default' }, resource: { 'service.name': 'treadle-api' } });

  const turns = ofRun(id, 'invoke_agent boss');
  expect(turns.every((span) => span.parent_id === created.span_id && !span.failed && span.attributes['gen_ai.operation.name'] === 'invoke_agent')).toBe(true);
  // The second turn's first delivery died with its worker, and its span with it.
  expect(turns.map(({ attributes }) => [attributes['treadle.turn.number'], attributes['treadle.turn.attempt']])).toEqual(expect.arrayContaining([[1, 1], [2, 2], [3, 1]]));
  const epochs = turns.map(({ attributes }) => Number(attributes['treadle.epoch']));
  expect(new Set(epochs).size).toBe(epochs.length);
  expect(new Set(turns.map(({ resource }) => resource['service.instance.id'])).size).toBe(2);
  expect(new Set(turns.map(({ resource }) => resource['service.name']))).toEqual(new Set(['treadle-worker']));

  const inTurn = new Set(turns.map((span) => span.span_id));
  const chats = ofRun(id, 'chat fake');
  // One of the four was the dead worker's.
  expect(chats).toHaveLength(3);
  for (const chat of chats) {
    expect(inTurn).toContain(chat.parent_id);
    expect(chat).toMatchObject({ kind: 'client', failed: false, attributes: {
      'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'ollama', 'gen_ai.request.model': 'fake', 'gen_ai.response.model': 'fake', 'gen_ai.response.finish_reasons': ['stop'], 'treadle.model': 'small',
      'gen_ai.usage.input_tokens': expect.any(Number) as number, 'gen_ai.usage.output_tokens': expect.any(Number) as number, 'gen_ai.conversation.id': expect.stringMatching(/^ses_/) as string,
    } });
  }
  const written = onlyIn(ofRun(id, 'execute_tool test/append_row'));
  expect(inTurn).toContain(written.parent_id);
  expect(written).toMatchObject({ kind: 'internal', failed: false, attributes: {
    'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'test/append_row', 'gen_ai.tool.type': 'function', 'gen_ai.tool.call.id': expect.any(String) as string, 'treadle.tool.outcome': 'ok',
    'mcp.method.name': 'tools/call', 'network.transport': 'pipe',
  } });

  const spawned = onlyIn(ofRun(id, 'execute_tool spawn_agent'));
  const child = onlyIn(named('create_run helper'));
  expect(child.parent_id).toBe(spawned.span_id);
  for (const turn of named('invoke_agent helper')) expect([turn.parent_id, turn.attributes['treadle.run.id']]).toEqual([child.span_id, child.attributes['treadle.run.id']]);
  expect(named('invoke_agent helper').length).toBeGreaterThan(0);

  for (const write of named('archive_write')) expect([created.span_id, child.span_id]).toContain(write.parent_id);
  for (const body of collector.bodies) expect(body).not.toContain(said);
  expect(JSON.stringify(stage!.model.requests.map((request) => request.headers))).not.toContain('traceparent');

  // What the logs say of it is found by run, tenant and trace, and says nothing of what was said either.
  const run = { run_id: id, tenant: 'default', trace_id: caller.trace };
  expect(linesOf(stage!.api)).toContainEqual(expect.objectContaining({ ...run, msg: 'run accepted' }));
  expect(linesOf(second)).toContainEqual(expect.objectContaining({ ...run, msg: 'turn taken over', turn: 2, attempt: 2, epoch: expect.any(Number) as number }));
  expect(linesOf(second)).toContainEqual(expect.objectContaining({ ...run, msg: 'run ended', status: 'completed' }));
  for (const process of [stage!.api, first, second]) expect(process.output()).not.toContain(said);
}, 90_000);

test('content that was asked for is there, without known secrets and within bounds', async () => {
  await begin(settings({ OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: 'true' }));
  await stage!.startWorker();
  const id = await post('/v1/runs', { agent: 'boss', input: `my key is ${secret}, ${said}, ${'word '.repeat(20_000)}` });
  expect(await stage!.client.wait(id, 60_000)).toMatchObject({ status: 'completed' });
  await whole(id);
  const [first] = ofRun(id, 'chat fake').map(({ attributes }) => attributes);
  expect(JSON.parse(String(first!['gen_ai.input.messages']))).toEqual([{ role: 'user', parts: [{ type: 'text', content: expect.stringMatching(/^my key is \[redacted\], Rumpelstiltskin, [^]* bytes left out /) as string }] }]);
  expect(JSON.parse(String(first!['gen_ai.system_instructions']))).toEqual([{ type: 'text', content: `You know ${said}.` }]);
  expect(JSON.parse(String(first!['gen_ai.output.messages']))).toEqual([{
    role: 'assistant', finish_reason: 'tool_calls', parts: [{ type: 'text', content: `${said} says the model` }, { type: 'tool_call', id: expect.any(String) as string, name: 'test__append_row', arguments: JSON.stringify({ v: said }) }],
  }]);
  expect(onlyIn(ofRun(id, 'execute_tool test/append_row')).attributes).toMatchObject({ 'gen_ai.tool.call.arguments': JSON.stringify({ v: said }), 'gen_ai.tool.call.result': expect.stringContaining(`appended ${said}`) as string });
  for (const body of collector.bodies) expect(body).not.toContain(secret);
  const longest = Math.max(...collector.spans.flatMap(({ attributes }) => Object.values(attributes).map((value) => String(value).length)));
  expect(longest).toBeLessThanOrEqual(32_768);
}, 60_000);

test('a fork begins a trace of its own and names the run it comes from; without a caller\'s trace a run begins one', async () => {
  await begin(settings());
  await stage!.startWorker();
  const id = await post('/v1/runs', { agent: 'boss', input: 'go' }, { traceparent: '00-not-a-trace-01' });
  const { last_seq } = await stage!.client.wait(id, 60_000);
  const fork = await post(`/v1/runs/${id}/fork`, { after_seq: last_seq, input: 'again' });
  await stage!.client.wait(fork, 60_000);
  const [old, own] = await until('both creations are there', () => named('create_run boss').length === 2 && named('create_run boss'));
  expect([old!.parent_id, own!.parent_id, old!.links]).toEqual(['', '', []]);
  expect(own!.trace_id).not.toBe(old!.trace_id);
  expect(own!.links).toEqual([{ trace_id: old!.trace_id, span_id: old!.span_id }]);
}, 60_000);

test('what the sampler leaves out is sent nowhere, and neither is anything while the SDK is disabled', async () => {
  await begin(settings({ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' }));
  await stage!.startWorker();
  const unsampled = await post('/v1/runs', { agent: 'boss', input: 'go' });
  const sampled = await post('/v1/runs', { agent: 'boss', input: 'go' }, { traceparent: `00-${caller.trace}-${caller.span}-01` });
  for (const id of [unsampled, sampled]) await stage!.client.wait(id, 60_000);
  await whole(sampled);
  expect(new Set(collector.spans.map((span) => span.trace_id))).toEqual(new Set([caller.trace]));
  await stage!.stop();

  const before = collector.bodies.length;
  await begin(settings({ OTEL_SDK_DISABLED: 'true' }));
  await stage!.startWorker();
  await stage!.client.wait(await post('/v1/runs', { agent: 'boss', input: 'go' }), 60_000);
  await stage!.stop();
  stage = null;
  expect(collector.bodies).toHaveLength(before);
}, 90_000);

test('protobuf is what is sent where nothing else is said, under the name that is set, with the headers that are set', async () => {
  await begin(settings({ OTEL_EXPORTER_OTLP_PROTOCOL: '', OTEL_SERVICE_NAME: 'looms', OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20for-the-collector' }));
  await stage!.startWorker();
  await stage!.client.wait(await post('/v1/runs', { agent: 'boss', input: 'go' }), 60_000);
  await until('a turn is there', () => collector.bodies.some((body) => body.includes('invoke_agent boss')));
  expect(new Set(collector.headers.map((headers) => [headers['content-type'], headers.authorization].join(' ')))).toEqual(new Set(['application/x-protobuf Bearer for-the-collector']));
  expect(collector.bodies.every((body) => body.includes('looms'))).toBe(true);
}, 60_000);

const sdk = /@opentelemetry\/(?:sdk-|otlp-|exporter-|resources|core|semantic)/;

async function modulesOf(env: Readonly<Record<string, string>>): Promise<string[]> {
  const dir = mkdtempSync(join(tmpdir(), 'treadle-modules-'));
  const file = join(dir, 'loaded');
  const started = await begin({ NODE_OPTIONS: `--import=${join(import.meta.dirname, 'fixtures/loaded-modules.ts')}`, LOADED_MODULES: file, ...env });
  await started.startWorker();
  const id = await post('/v1/runs', { agent: 'boss', input: 'go' });
  await started.client.wait(id, 60_000);
  const log = await (await fetch(`${started.api.url}/v1/runs/${id}/events`, { headers: { accept: 'application/x-ndjson' } })).text();
  expect(log.includes('"traceparent"')).toBe(env.OTEL_EXPORTER_OTLP_ENDPOINT !== undefined);
  const loaded = readFileSync(file, 'utf8').split('\n');
  rmSync(dir, { recursive: true });
  await started.stop();
  stage = null;
  return loaded;
}

test('without tracing nothing of OpenTelemetry\'s SDK is loaded, and no run says anything of a trace', async () => {
  const without = await modulesOf({});
  for (const process of ['apps/worker/src/worker.ts', 'apps/api/src/start-api.ts']) expect(without.some((url) => url.endsWith(process))).toBe(true);
  expect(without.filter((url) => sdk.test(url))).toEqual([]);
  const asked = await modulesOf(settings());
  expect(asked.filter((url) => sdk.test(url)).length).toBeGreaterThan(10);
}, 90_000);

test('a collector that is away costs a warning: runs end, and processes stop in their time', async () => {
  const { url } = collector;
  await collector.close();
  await begin(settings({ OTEL_EXPORTER_OTLP_ENDPOINT: url, TREADLE_DRAIN_TIMEOUT_MS: '2000' }));
  const worker: Role = await stage!.startWorker();
  for (let index = 0; index < 5; index++) {
    const run = await stage!.client.wait(await post('/v1/runs', { agent: 'boss', input: `go ${said}` }), 60_000);
    expect(run.status).toBe('completed');
  }
  await until('it is said', () => worker.output().includes('traces cannot be sent'));
  worker.kill('SIGTERM');
  expect(await worker.exited).toBe(0);
  for (const process of [worker, stage!.api]) expect(process.output()).not.toContain(said);
  collector = await startOtlpReceiver();
}, 60_000);
