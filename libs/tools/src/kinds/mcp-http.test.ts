import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { createEgress } from '@treadle/egress';
import type { ToolDefinition } from '@treadle/core';
import { startHttpMcpServer, testSpec, testTool, type HttpMcpOptions, type HttpMcpServer } from '@treadle/testkit';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { ToolRunnerOptions } from '../options.ts';
import { callOf } from '../test-call.ts';
import { createToolRunner, type OpenToolRunner } from '../tool-runner.ts';

const servers: HttpMcpServer[] = [];
const runners: OpenToolRunner[] = [];
afterEach(async () => {
  await Promise.all(runners.splice(0).map((runner) => runner.close()));
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});

async function served(options: HttpMcpOptions = {}): Promise<HttpMcpServer> {
  const server = await startHttpMcpServer(options);
  servers.push(server);
  return server;
}

interface Setup { readonly allow?: readonly string[]; readonly headers?: Readonly<Record<string, string>>; readonly secrets?: readonly string[]; readonly options?: ToolRunnerOptions }

function runnerFor(url: string, { allow = [new URL(url).origin], headers = {}, secrets = [], options = {} }: Setup = {}): OpenToolRunner {
  const runner = createToolRunner({ functions: [], policies: {}, mcpServers: { web: { url, headers, trusted: true, concurrency: 8 } }, fetch: createEgress({ allow }), secrets }, options);
  runners.push(runner);
  return runner;
}

function tool(name: string, over: Partial<ToolDefinition> = {}): ToolDefinition {
  return testTool(`web/${name}`, { timeout_ms: 10_000, ...over });
}

const sum = { content: '3', is_error: false, settled: true };

describe.each([['streams', false], ['JSON', true]])('an MCP server elsewhere that answers in %s', (_name, json) => {
  test('lists its tools page by page, and carries calls out', async () => {
    const server = await served({ json, pageSize: 2 });
    const runner = runnerFor(server.url, { headers: { authorization: 'Bearer hush-hush' } });
    const { tools, problems } = await runner.catalogue(testSpec({ tools: ['web/*'] }));
    expect(problems).toEqual([]);
    expect(tools.map(({ name, effect }) => [name, effect])).toEqual([['web/add', 'read'], ['web/hangs_up', 'once'], ['web/slow', 'once'], ['web/ticking', 'once'], ['web/who', 'once']]);
    const call = callOf(tool('who'), {});
    expect(JSON.parse((await runner.run(call)).content)).toMatchObject({ 'treadle/idempotency_key': call.idempotency_key, 'treadle/run_id': 'run_1', 'treadle/epoch': 7 });
    expect(await runner.run(callOf(tool('add'), { a: 1, b: 2 }))).toEqual(sum);
    expect(server.sessions()).toBe(1);
    expect(new Set(server.seen.map(({ headers }) => headers.authorization))).toEqual(new Set(['Bearer hush-hush']));
    expect(await runner.probe('web')).toEqual({ type: 'ok', tools: 5 });
  });

  test('and has forgotten the session gets a new one, and each call once', async () => {
    const server = await served({ json });
    const runner = runnerFor(server.url);
    expect(await runner.run(callOf(tool('add'), { a: 1, b: 2 }))).toEqual(sum);
    server.forget();
    const results = await Promise.all([1, 2, 3].map(() => runner.run(callOf(tool('slow', { effect: 'once' }), { ms: 1 }))));
    expect(results).toEqual([1, 2, 3].map(() => ({ content: 'slow is done', is_error: false, settled: true })));
    expect(server.started).toEqual(['add', 'slow', 'slow', 'slow']);
    expect(server.sessions()).toBe(2);
    server.forget();
    expect((await runner.catalogue(testSpec({ tools: ['web/*'] }))).tools).toHaveLength(5);
  });

  test('hears of a call that is aborted, or takes too long', async () => {
    const server = await served({ json });
    const runner = runnerFor(server.url);
    const abort = new AbortController();
    const running = runner.run(callOf(tool('slow'), { ms: 60_000 }, abort.signal));
    await vi.waitFor(() => expect(server.started).toEqual(['slow']));
    abort.abort();
    expect(await running).toMatchObject({ is_error: true, settled: false });
    await vi.waitFor(() => expect(server.cancelled).toEqual(['slow']));
    expect(await runner.run(callOf(tool('slow', { timeout_ms: 100 }), { ms: 60_000 }))).toEqual({ content: 'The tool timed out after 100 ms. Whether it had an effect is not known.', is_error: true, settled: false });
    await vi.waitFor(() => expect(server.cancelled).toEqual(['slow', 'slow']));
    expect(await runner.run(callOf(tool('add'), { a: 1, b: 2 }))).toEqual(sum);
  });

  test('and breaks off has left a call in doubt, which is repeated only where that does no harm', async () => {
    const server = await served({ json });
    const runner = runnerFor(server.url);
    expect(await runner.run(callOf(tool('hangs_up', { effect: 'once' }), {}))).toMatchObject({ is_error: true, settled: false, content: expect.stringContaining('did not answer') as string });
    expect(server.started).toEqual(['hangs_up']);
    expect(await runner.run(callOf(tool('hangs_up', { effect: 'read' }), {}))).toMatchObject({ is_error: true, settled: false });
    expect(server.started).toEqual(['hangs_up', 'hangs_up', 'hangs_up']);
    expect(await runner.run(callOf(tool('add'), { a: 1, b: 2 }))).toEqual(sum);
  });
});

describe('progress', () => {
  test('puts the time-out off', async () => {
    const server = await served();
    const result = await runnerFor(server.url).run(callOf(tool('ticking', { timeout_ms: 1_000, max_total_ms: 60_000 }), { ms: 250, times: 8 }));
    expect(result).toEqual({ content: 'ticking is done', is_error: false, settled: true });
  });

  test('that stops, or has no end, does not', async () => {
    const server = await served();
    const runner = runnerFor(server.url);
    expect((await runner.run(callOf(tool('ticking', { timeout_ms: 400, max_total_ms: 60_000 }), { ms: 60_000, times: 2 }))).content).toMatch(/^The tool timed out after 400 ms\./);
    expect(await runner.run(callOf(tool('ticking', { timeout_ms: 300, max_total_ms: 600 }), { ms: 50, times: 1_000 }))).toMatchObject({
      settled: false, content: 'The tool timed out after 600 ms in all. Whether it had an effect is not known.' });
    await vi.waitFor(() => expect(server.cancelled).toEqual(['ticking', 'ticking']));
  });
});

test('a server that says its tools have changed is asked for them again', async () => {
  const server = await served();
  const runner = runnerFor(server.url);
  const names = async () => (await runner.catalogue(testSpec({ tools: ['web/*'] }))).tools.map(({ name }) => name);
  expect(await names()).not.toContain('web/new');
  // Told over a stream of the server's own, which is opened behind the greeting.
  await vi.waitFor(() => expect(server.seen.some(({ method }) => method === 'GET')).toBe(true));
  await server.addTool('new');
  await vi.waitFor(async () => expect(await names()).toContain('web/new'));
  expect(server.sessions()).toBe(1);
});

test('a server that is slow to say what has changed holds no turn up; what it says is seen by a later one', async () => {
  const server = await served();
  const runner = runnerFor(server.url, { options: { changesWaitMs: 20 } });
  const spec = testSpec({ tools: ['web/*'] });
  const { tools } = await runner.catalogue(spec);
  await vi.waitFor(() => expect(server.seen.some(({ method }) => method === 'GET')).toBe(true));
  server.listSlowly(1000);
  await server.addTool('new');
  await vi.waitFor(async () => {
    expect(await runner.changes!(spec, tools, { kept: {}, instructions: {}, gone: [], problems: [], times: {} })).toBeNull();
    expect(server.lists()).toBe(2);
  });
  await vi.waitFor(async () => expect((await runner.changes!(spec, tools, { kept: {}, instructions: {}, gone: [], problems: [], times: {} }))?.tools.map(({ name }) => name)).toContain('web/new'), { timeout: 5000 });
  expect(server.lists()).toBe(2);
});

test('a list that never comes to its end is given up as a whole, however fast its pages come', async () => {
  const server = await served({ pageSize: 1 });
  server.listSlowly(150);
  const runner = runnerFor(server.url, { options: { connectTimeoutMs: 400 } });
  expect((await runner.catalogue(testSpec({ tools: ['web/*'] }))).problems).toEqual([expect.stringMatching(/^MCP server web does not list its tools: /)]);
});

describe('a server elsewhere that cannot be used', () => {
  test('because it is private and not listed is never reached', async () => {
    const server = await served();
    const runner = runnerFor(server.url, { allow: [] });
    const { tools, problems } = await runner.catalogue(testSpec({ tools: ['web/*'] }));
    expect(tools).toEqual([]);
    expect(problems).toEqual([expect.stringMatching(/^MCP server web cannot be reached: .*not a public address \(loopback\)/)]);
    expect(await runner.run(callOf(tool('add'), {}))).toMatchObject({ is_error: true, settled: true });
    expect(server.seen).toEqual([]);
  });

  test('because it redirects elsewhere is not followed', async () => {
    const server = await served();
    const way = http.createServer((_, response) => { response.writeHead(307, { location: server.url }).end(); }).listen(0, '127.0.0.1');
    await once(way, 'listening');
    const { port } = way.address() as AddressInfo;
    const result = await runnerFor(`http://127.0.0.1:${port}/mcp`, { allow: [`http://127.0.0.1:${port}`, server.origin] }).run(callOf(tool('add'), {}));
    expect(result).toMatchObject({ is_error: true, settled: true });
    expect(server.seen).toEqual([]);
    way.closeAllConnections();
    way.close();
  });

  test('because it refuses the credentials says so, without showing them', async () => {
    const guard = http.createServer((request, response) => { response.writeHead(401).end(`not ${request.headers.authorization}`); }).listen(0, '127.0.0.1');
    await once(guard, 'listening');
    const { port } = guard.address() as AddressInfo;
    const runner = runnerFor(`http://127.0.0.1:${port}/mcp`, { headers: { authorization: 'Bearer hush-hush' }, secrets: ['Bearer hush-hush'] });
    const { problems } = await runner.catalogue(testSpec({ tools: ['web/*'] }));
    expect(problems).toEqual([expect.stringMatching(/^MCP server web cannot be reached: HTTP 401: .*not \[redacted\]/)]);
    guard.closeAllConnections();
    guard.close();
  });

  test('because it is away is not started, waits out its rest, and is found again when it is back', async () => {
    const server = await served();
    const runner = runnerFor(server.url, { options: { backoffMs: 50 } });
    expect(await runner.run(callOf(tool('add'), { a: 1, b: 2 }))).toEqual(sum);
    await servers.pop()!.stop();
    for (let time = 0; time < 3; time++) expect(await runner.run(callOf(tool('slow'), {}))).toMatchObject({ is_error: true, settled: true, content: expect.stringContaining('ECONNREFUSED') as string });
    const back = await served({ port: server.port });
    expect(await runner.run(callOf(tool('add'), { a: 1, b: 2 }))).toEqual(sum);
    expect(back.started).toEqual(['add']);
  });

  test('because its messages are too long ends the call, and only that', async () => {
    const server = await served();
    const runner = runnerFor(server.url, { options: { maxMessageBytes: 2_000 } });
    expect(await runner.run(callOf(tool('who', { effect: 'once' }), {}))).toMatchObject({ is_error: false });
    const long = callOf({ ...tool('who', { effect: 'once' }) }, {});
    expect(await runner.run({ ...long, run_id: 'r'.repeat(3_000) })).toMatchObject({ is_error: true, settled: false });
    expect(await runner.run(callOf(tool('add'), { a: 1, b: 2 }))).toEqual(sum);
  });
});

test('a runner that is closed says goodbye to the server', async () => {
  const server = await served();
  const runner = runnerFor(server.url);
  await runner.run(callOf(tool('add'), { a: 1, b: 2 }));
  await runner.close();
  expect(server.seen.at(-1)).toMatchObject({ method: 'DELETE' });
  expect(await runner.run(callOf(tool('add'), {}))).toEqual({ content: 'MCP server web has been shut down.', is_error: true, settled: true });
});

test('a server that refuses a call by its status is not asked again', async () => {
  const server = await served();
  const runner = runnerFor(server.url);
  expect(await runner.run(callOf(tool('add'), { a: 1, b: 2 }))).toEqual(sum);
  server.refuse(429);
  const before = server.seen.length;
  expect(await runner.run(callOf(tool('slow', { effect: 'once' }), {}))).toMatchObject({ is_error: true, settled: true, content: expect.stringContaining('did not take the call: HTTP 429') as string });
  expect([server.seen.length - before, server.sessions()]).toEqual([1, 1]);
  server.refuse(503);
  expect(await runner.run(callOf(tool('slow', { effect: 'once' }), {}))).toMatchObject({ is_error: true, settled: false });
});

test.each(['application/json', 'text/event-stream'])('a server whose answers are not JSON-RPC to the letter is understood, as %s', async (type) => {
  const server = http.createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => { body += chunk.toString(); }).on('end', () => {
      if (request.method !== 'POST') return response.writeHead(405).end();
      const { id, method, params } = JSON.parse(body) as { id?: number; method: string; params: { protocolVersion: string } };
      if (id === undefined) return response.writeHead(202).end();
      const result = method === 'initialize' ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'loose', version: '1' } }
        : method === 'tools/list' ? { tools: [{ name: 'look', inputSchema: { type: 'object' } }], nextCursor: null } : { content: [{ type: 'text', text: 'seen' }], isError: null };
      const message = JSON.stringify({ jsonrpc: '2.0', id, result, error: null, took_ms: 3 });
      return response.writeHead(200, { 'content-type': type }).end(type === 'application/json' ? message : `event: message\r\ndata: ${message}\r\n\r\n`);
    });
  });
  await new Promise<void>((done) => { server.listen(0, '127.0.0.1', done); });
  const runner = runnerFor(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
  try {
    const { tools, problems } = await runner.catalogue(testSpec({ tools: ['web/*'] }));
    expect([tools.map(({ name }) => name), problems]).toEqual([['web/look'], []]);
    expect(await runner.run(callOf(tools[0]!, {}))).toEqual({ content: 'seen', is_error: false, settled: true });
  } finally {
    await runner.close();
    await new Promise((done) => { server.closeAllConnections(); server.close(done); });
  }
});
