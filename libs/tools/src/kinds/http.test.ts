import { createHash } from 'node:crypto';
import http, { type IncomingHttpHeaders, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { createEgress } from '@treadle/egress';
import { testSpec, testTool } from '@treadle/testkit';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { HttpToolSource } from '../sources.ts';
import { callOf } from '../test-call.ts';
import { createToolRunner, type OpenToolRunner } from '../tool-runner.ts';
import type { ToolRunnerOptions } from '../options.ts';

const servers: http.Server[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => new Promise((done) => { server.closeAllConnections(); server.close(done); })));
});

interface Seen { readonly method: string; readonly url: string; readonly headers: IncomingHttpHeaders; readonly body: string; ended: boolean }

async function serve(answer: RequestListener): Promise<{ readonly origin: string; readonly seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = http.createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => { body += text; }).on('end', () => {
      const entry: Seen = { method: request.method!, url: request.url!, headers: request.headers, body, ended: false };
      seen.push(entry);
      response.on('close', () => { entry.ended = true; });
      answer(request, response);
    });
  });
  servers.push(server);
  await new Promise<void>((done) => { server.listen(0, '127.0.0.1', done); });
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

const ok: RequestListener = (_, response) => { response.end('fine'); };

function source(origin: string, over: Partial<HttpToolSource> = {}): HttpToolSource {
  return { method: 'GET', url: `${origin}/items/{id}`, description: 'Looks up.', input_schema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] }, headers: {}, ...over };
}

interface Setup { readonly allow?: readonly string[]; readonly secrets?: readonly string[]; readonly options?: ToolRunnerOptions; readonly blobs?: Map<string, Uint8Array> }

function runnerOf(httpTools: Record<string, HttpToolSource>, { allow = Object.values(httpTools).map(({ url }) => new URL(url.replaceAll(/[{}]/g, '')).origin), secrets = [], options = {}, blobs }: Setup = {}): OpenToolRunner {
  return createToolRunner({
    functions: [], mcpServers: {}, policies: {}, httpTools, fetch: createEgress({ allow }), secrets,
    ...(blobs === undefined ? {} : { blobs: { getBlob: async (run_id, sha256) => blobs.get(`${run_id}/${sha256}`) ?? null } }),
  }, options);
}

const lookup = testTool('lookup', { timeout_ms: 5_000 });

describe('a tool over HTTP', () => {
  test('is offered with the effect that its method has', async () => {
    const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
    const { tools, problems } = await runnerOf(Object.fromEntries(methods.map((method) => [method.toLowerCase(), source('https://x.example', { method })]))).catalogue(testSpec({ tools: ['*'] }));
    expect(problems).toEqual([]);
    expect(Object.fromEntries(tools.map(({ name, effect, parallel }) => [name, `${effect} ${parallel}`]))).toEqual({
      get: 'read parallel', head: 'read parallel', post: 'once serial', put: 'once serial', patch: 'once serial', delete: 'once serial' });
  });

  test('puts arguments into the path, the others into the query, and says whose call it is', async () => {
    const { origin, seen } = await serve(ok);
    const call = callOf(lookup, { id: 'a/b', q: ['x', 'y'] });
    expect(await runnerOf({ lookup: source(origin, { headers: { Authorization: 'Bearer token-1' } }) }).run(call)).toEqual({ content: 'fine', is_error: false, settled: true });
    expect(seen).toMatchObject([{ method: 'GET', url: '/items/a%2Fb?q=x&q=y', body: '', headers: { authorization: 'Bearer token-1', 'idempotency-key': call.idempotency_key } }]);
  });

  test('sends the other arguments of a POST as JSON', async () => {
    const { origin, seen } = await serve((_, response) => { response.writeHead(201, { 'content-type': 'application/json' }).end('{"made":true}'); });
    expect(await runnerOf({ lookup: source(origin, { method: 'POST' }) }).run(callOf(lookup, { id: '1', text: 'grüße', n: 2 }))).toEqual({ content: '{"made":true}', is_error: false, settled: true });
    expect(seen).toMatchObject([{ method: 'POST', url: '/items/1', headers: { 'content-type': 'application/json' } }]);
    expect(JSON.parse(seen[0]!.body)).toEqual({ text: 'grüße', n: 2 });
  });

  test('answers any other status as an error with status and body, and follows no redirect', async () => {
    const { origin, seen } = await serve((request, response) => {
      if (request.url === '/items/moved') response.writeHead(302, { location: '/items/there' }).end();
      else response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"no such item"}');
    });
    const runner = runnerOf({ lookup: source(origin) });
    expect(await runner.run(callOf(lookup, { id: 'x' }))).toEqual({ content: 'HTTP 404 Not Found\n{"error":"no such item"}', is_error: true, settled: true });
    expect(await runner.run(callOf(lookup, { id: 'moved' }))).toEqual({ content: 'HTTP 302 Found\nIt leads to /items/there, and is not followed.', is_error: true, settled: true });
    expect(seen).toHaveLength(2);
  });

  test('says so where there is nothing, and reads no more than its bound, packed or not', async () => {
    const { origin } = await serve((request, response) => {
      if (request.url === '/items/none') response.writeHead(204).end();
      else if (request.url === '/items/packed') response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('x'.repeat(10_000_000)));
      else response.end('y'.repeat(5_000));
    });
    const runner = runnerOf({ lookup: source(origin) }, { options: { maxResponseBytes: 1_000 } });
    expect((await runner.run(callOf(lookup, { id: 'none' }))).content).toBe('(no content, HTTP 204)');
    for (const [id, letter] of [['packed', 'x'], ['long', 'y']] as const) {
      expect(await runner.run(callOf(lookup, { id }))).toEqual({ content: `${letter.repeat(1_000)}\n[The answer is longer than 1000 bytes; the rest was not read.]`, is_error: false, settled: true });
    }
  });

  test('that times out or is aborted is in doubt, and its connection is closed', async () => {
    const { origin, seen } = await serve(() => undefined);
    const runner = runnerOf({ lookup: source(origin, { method: 'POST' }) });
    expect(await runner.run(callOf(testTool('lookup', { timeout_ms: 100 }), { id: '1' }))).toMatchObject({ settled: false, content: expect.stringContaining('timed out after 100 ms') as string });
    const abort = new AbortController();
    const running = runner.run(callOf(lookup, { id: '2' }, abort.signal));
    await vi.waitFor(() => expect(seen).toHaveLength(2));
    abort.abort();
    expect(await running).toMatchObject({ settled: false, is_error: true });
    await vi.waitFor(() => expect(seen.map(({ ended }) => ended)).toEqual([true, true]));
  });

  test('is in doubt only where something was sent', async () => {
    const { origin } = await serve((request) => { request.socket.destroy(); });
    const closed = await serve(ok);
    await new Promise((done) => { servers.pop()!.close(done); });
    const runner = runnerOf({ lookup: source(origin, { method: 'POST' }), gone: source(closed.origin, { method: 'POST' }), odd: source(origin, { headers: { 'x-a': 'line\nbreak' } }) });
    expect(await runner.run(callOf(lookup, { id: '1' }))).toMatchObject({ settled: false, is_error: true, content: expect.stringMatching(/^The request to http:\/\/127.0.0.1:\d+\/items\/1 failed/) as string });
    expect(await runner.run(callOf(testTool('gone'), { id: '1' }))).toMatchObject({ settled: true, is_error: true, content: expect.stringContaining('ECONNREFUSED') as string });
    expect(await runner.run(callOf(testTool('odd'), { id: '1' }))).toMatchObject({ settled: true, is_error: true, content: expect.not.stringContaining('break') as string });
    expect(await runner.run(callOf(lookup, { id: '..' }))).toMatchObject({ settled: true, is_error: true, content: expect.stringContaining('another path') as string });
  });

  test('keeps its secrets although the server echoes them', async () => {
    const secret = 'Bearer hush-hush-token';
    const { origin } = await serve((request, response) => { response.writeHead(401, 'no').end(`you sent ${request.headers.authorization}`); });
    const result = await runnerOf({ lookup: source(origin, { headers: { authorization: secret } }) }, { secrets: [secret] }).run(callOf(lookup, { id: '1' }));
    expect(result).toEqual({ content: 'HTTP 401 no\nyou sent [redacted]', is_error: true, settled: true });
  });

  test('to a private address that is not listed is refused before anything is sent', async () => {
    const { origin, seen } = await serve(ok);
    const result = await runnerOf({ lookup: source(origin) }, { allow: [] }).run(callOf(lookup, { id: '1' }));
    expect(result).toMatchObject({ is_error: true, settled: true, content: expect.stringContaining('not a public address (loopback)') as string });
    expect(seen).toEqual([]);
  });

  test('that gives bytes has them beside its result', async () => {
    const body = Buffer.from('00fffe', 'hex');
    const { origin } = await serve((_, response) => { response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(body); });
    const sha = createHash('sha256').update(body).digest('hex');
    expect(await runnerOf({ lookup: source(origin) }).run(callOf(lookup, { id: '1' }))).toEqual({
      content: `[not text: application/octet-stream, 3 bytes, kept as blob ${sha}]`, is_error: false, settled: true, attachments: [{ media_type: 'application/octet-stream', bytes: body }] });
  });
});

describe('http_get', () => {
  const get = testTool('http_get', { timeout_ms: 5_000 });

  test('is there where it is named, and not for a star alone', async () => {
    const runner = runnerOf({}, { blobs: new Map() });
    const names = async (tools: string[]) => (await runner.catalogue(testSpec({ tools }))).tools.map(({ name }) => name);
    expect(await names(['http_get'])).toEqual(['http_get']);
    expect(await names(['*', 'read_*'])).toEqual(['read_blob']);
    expect(await names(['*'])).toEqual([]);
  });

  test('follows redirects, each of them checked', async () => {
    const inside = await serve(ok);
    const { origin, seen } = await serve((request, response) => {
      if (request.url === '/start') response.writeHead(302, { location: '/end' }).end();
      else if (request.url === '/round') response.writeHead(307, { location: '/round' }).end();
      else if (request.url === '/inside') response.writeHead(301, { location: `${inside.origin}/` }).end();
      else response.end('the end');
    });
    const runner = runnerOf({}, { allow: [origin] });
    expect(await runner.run(callOf(get, { url: `${origin}/start` }))).toEqual({ content: 'the end', is_error: false, settled: true });
    expect(await runner.run(callOf(get, { url: `${origin}/inside` }))).toMatchObject({ is_error: true, content: expect.stringContaining('not a public address') as string });
    expect(inside.seen).toEqual([]);
    seen.length = 0;
    expect(await runner.run(callOf(get, { url: `${origin}/round` }))).toEqual({ content: 'The address was redirected more than 5 times.', is_error: true, settled: true });
    expect(seen).toHaveLength(6);
    expect(await runner.run(callOf(get, { url: 'nonsense' }))).toMatchObject({ is_error: true, settled: true });
  });
});

describe('read_blob', () => {
  const read = testTool('read_blob', { timeout_ms: 5_000 });
  const text = 'aé漢🌍'.repeat(500);
  const [whole, binary] = [Buffer.from(text), Buffer.from('00fffe80', 'hex')];
  const [sha, binarySha] = [whole, binary].map((bytes) => createHash('sha256').update(bytes).digest('hex')) as [string, string];
  const runner = runnerOf({}, { blobs: new Map([[`run_1/${sha}`, whole], [`run_1/${binarySha}`, binary], [`run_2/${'0'.repeat(64)}`, whole]]) });

  test.each([1, 7, 1000, 30_000])('pages through a text of this run, %i bytes at a time, and loses nothing', async (limit) => {
    let joined = '';
    let offset: number | null = 0;
    // Small pages are many: the beginning tells enough.
    for (let page = 0; offset !== null && page < 40; page++) {
      const { content, is_error } = await runner.run(callOf(read, { sha256: sha, offset, limit }));
      expect(is_error).toBe(false);
      const [head = '', ...rest] = content.split('\n');
      joined += rest.join('\n');
      offset = / go on at offset (\d+)\]$/.test(head) ? Number(/ go on at offset (\d+)\]$/.exec(head)![1]) : null;
    }
    expect(offset === null ? joined : text.slice(0, joined.length)).toBe(offset === null ? text : joined);
    expect(joined.length).toBeGreaterThan(30);
  });

  test('gives bytes as base64, and nothing of another run', async () => {
    expect((await runner.run(callOf(read, { sha256: binarySha }))).content).toBe(`[bytes 0 to 4 of 4; the end; base64]\n${binary.toString('base64')}`);
    expect((await runner.run(callOf(read, { sha256: sha, offset: 99_999 }))).content).toBe(`[the blob has ${whole.length} bytes; there is nothing from 99999 on]`);
    for (const sha256 of ['0'.repeat(64), '../x']) expect(await runner.run(callOf(read, { sha256 }))).toMatchObject({ is_error: true, settled: true });
  });
});
