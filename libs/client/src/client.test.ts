import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { ApiError, createClient, ServerUnreachable } from './client.ts';
import { createSseParser } from './sse.ts';

const servers: Server[] = [];
afterEach(() => { for (const server of servers.splice(0)) { server.closeAllConnections(); server.close(); } });

async function serve(handler: Parameters<typeof createServer>[1]): Promise<string> {
  const server = createServer(handler);
  servers.push(server);
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('server-sent events', () => {
  const stream = 'id: 1\r\nevent: a\r\ndata: {"x":"é🌍"}\r\n\r\n: ping\n\nid: 2\ndata: one\ndata: two\n\ndata: no id\r\rdata: last\n\n';
  const whole = createSseParser()(new TextEncoder().encode(stream));

  test('are told apart by empty lines, comments say nothing', () => {
    expect(whole).toEqual([
      { id: '1', event: 'a', data: '{"x":"é🌍"}' }, { id: '2', event: 'message', data: 'one\ntwo' }, { id: null, event: 'message', data: 'no id' },
      { id: null, event: 'message', data: 'last' }]);
  });

  test('C43: come out the same wherever the bytes are cut', () => {
    const bytes = new TextEncoder().encode(stream);
    for (let cut = 1; cut < bytes.length; cut++) {
      const parse = createSseParser();
      expect([...parse(bytes.slice(0, cut)), ...parse(bytes.slice(cut))]).toEqual(whole);
    }
  });
});

describe('the event iterator', () => {
  test('resumes after every break and gives each event once', async () => {
    const url = await serve((request, response) => {
      const after = Number(request.headers['last-event-id']);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      // One event it already has, two new ones, then the connection breaks in the middle of the next.
      for (const seq of [after, after + 1, after + 2].filter((each) => each > 0 && each <= 9)) {
        response.write(`id: ${seq}\ndata: ${JSON.stringify({ seq, type: seq === 9 ? 'run_end' : 'x' })}\n\n`);
      }
      response.write('id: 99\ndata: {"se');
      setImmediate(() => response.destroy());
    });
    const seen: number[] = [];
    for await (const event of createClient({ url, reconnectMs: 1 }).events('run_x')) seen.push(event.seq);
    expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  test('ends with what the server refuses', async () => {
    const url = await serve((_request, response) => {
      response.writeHead(404, { 'content-type': 'application/problem+json' });
      response.end(JSON.stringify({ code: 'not_found', detail: 'no such run' }));
    });
    await expect(createClient({ url }).events('run_x').next()).rejects.toMatchObject({ status: 404, code: 'not_found', message: 'no such run' });
  });
});

test('a refusal carries its code, an absent server its address', async () => {
  const url = await serve((_request, response) => { response.writeHead(503).end('not json'); });
  await expect(createClient({ url }).run('run_x')).rejects.toBeInstanceOf(ApiError);
  await expect(createClient({ url: 'http://127.0.0.1:1' }).run('run_x')).rejects.toBeInstanceOf(ServerUnreachable);
});

test('sends the key, the idempotency key and the body', async () => {
  let seen: unknown;
  const url = await serve((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => { body += chunk.toString(); }).on('end', () => {
      seen = [request.method, request.url, request.headers.authorization, request.headers['idempotency-key'], JSON.parse(body)];
      response.writeHead(202, { 'content-type': 'application/json' }).end('{"id":"run_1"}');
    });
  });
  const run = await createClient({ url, apiKey: 'tk_1' }).createRun({ input: 'hi' }, { idempotencyKey: 'k' });
  expect([run.id, seen]).toEqual(['run_1', ['POST', '/v1/runs', 'Bearer tk_1', 'k', { input: 'hi' }]]);
});

test('commands go where they belong, with their key and with a body only where there is something to say', async () => {
  const seen: unknown[] = [];
  const url = await serve((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => { body += chunk.toString(); }).on('end', () => {
      seen.push([request.method, request.url, request.headers['idempotency-key'] ?? null, body === '' ? null : JSON.parse(body)]);
      response.writeHead(202, { 'content-type': 'application/json' }).end('{"id":"run_1"}');
    });
  });
  const client = createClient({ url });
  await client.cancel('run_1');
  await client.pause('run_1', { idempotencyKey: 'p' });
  await client.resume('run_1');
  await client.resume('run_1', { input: 'In Paris.', idempotencyKey: 'r' });
  await client.steer('run_1', 'be quick');
  await client.update('run_1', { tags: ['a'], limits: { max_cost_usd: null } }, { idempotencyKey: 'u' });
  expect(seen).toEqual([
    ['POST', '/v1/runs/run_1/cancel', null, null], ['POST', '/v1/runs/run_1/pause', 'p', null], ['POST', '/v1/runs/run_1/resume', null, null],
    ['POST', '/v1/runs/run_1/resume', 'r', { input: 'In Paris.' }], ['POST', '/v1/runs/run_1/steer', null, { text: 'be quick' }],
    ['PATCH', '/v1/runs/run_1', 'u', { tags: ['a'], limits: { max_cost_usd: null } }],
  ]);
});

test('a log that was set back is said to be', async () => {
  const url = await serve((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end('id: 7\nevent: x\ndata: {"type":"x","seq":7}\n\nid: 5\nevent: reset\ndata: {"type":"reset","last_seq":5}\n\nid: 6\nevent: x\ndata: {"type":"x","seq":6}\n\n');
  });
  const events = createClient({ url }).events('run_x', { after: 6 });
  expect((await events.next()).value).toMatchObject({ seq: 7 });
  await expect(events.next()).rejects.toMatchObject({ name: 'LogReset', last_seq: 5 });
});
