/** What real clients and proxies send at the edge of HTTP, over a real socket. */
import { once } from 'node:events';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { asked, begins, createdRun, createTestApi, keysOf, type TestApi } from '../fixtures/test-api.ts';

const logged: { readonly level: string; readonly fields: Readonly<Record<string, unknown>> }[] = [];
const logger = {
  debug: () => undefined, info: () => undefined,
  warn: (fields: Readonly<Record<string, unknown>>) => { logged.push({ level: 'warn', fields }); },
  error: (fields: Readonly<Record<string, unknown>>) => { logged.push({ level: 'error', fields }); },
};
let api: TestApi;
let id: string;
beforeAll(async () => {
  api = createTestApi({ deps: { logger, metrics: () => Promise.resolve('up 1\n') }, options: { requestTimeoutMs: 1000 } });
  await api.app.listen({ host: '127.0.0.1', port: 0 });
  id = await createdRun(api);
});
beforeEach(() => { logged.length = 0; });
afterAll(() => api.close());

const port = () => (api.app.server.address() as AddressInfo).port;
const json = { 'content-type': 'application/json' };

/** Sends these bytes and answers all that comes until the server closes. */
async function spoken(text: string): Promise<{ head: string; problem: Record<string, unknown> }> {
  const socket = connect(port(), '127.0.0.1');
  socket.write(text);
  let received = '';
  socket.on('data', (chunk: Buffer) => { received += chunk.toString(); }).on('error', () => undefined);
  await once(socket, 'close');
  const [head = '', body = ''] = received.split('\r\n\r\n');
  return { head, problem: JSON.parse(body) as Record<string, unknown> };
}

describe('the head of a request', () => {
  test('without Host is refused with a problem', async () => {
    const { head, problem } = await spoken('GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n');
    expect(head).toMatch(/^HTTP\/1\.1 400 .*content-type: application\/problem\+json/s);
    expect(problem).toMatchObject({ status: 400, code: 'invalid_request', detail: 'The Host header is missing.' });
    expect((await spokenHead('GET /healthz HTTP/1.0\r\n\r\n'))).toMatch(/^HTTP\/1\.1 200/);
  });

  test('that expects what cannot be met is refused with a problem', async () => {
    const { head, problem } = await spoken(`POST /v1/runs HTTP/1.1\r\nHost: x\r\nExpect: bogus\r\nContent-Length: 2\r\n\r\n{}`);
    expect(head).toMatch(/^HTTP\/1\.1 417 Expectation Failed/);
    expect(problem).toMatchObject({ status: 417, code: 'invalid_request' });
  });

  test.each(['GET /healthz HTTP/1.1\r\nHost: x\r\nSlow', `POST /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${keysOf.alpha}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"inp`])(
    'or a body that does not arrive is given up with a problem, and is no fault of ours: %j', async (text) => {
      const startMs = performance.now();
      const { head, problem } = await spoken(text);
      expect(head).toMatch(/^HTTP\/1\.1 408 Request Timeout.*content-type: application\/problem\+json/s);
      expect(problem).toMatchObject({ status: 408, code: 'invalid_request', detail: 'The request did not arrive in time.' });
      expect(performance.now() - startMs).toBeLessThan(6000);
      expect(logged).toEqual([]);
    });
});

async function spokenHead(text: string): Promise<string> {
  const socket = connect(port(), '127.0.0.1');
  socket.write(text);
  const [chunk] = await once(socket, 'data') as [Buffer];
  socket.destroy();
  return chunk.toString();
}

describe('a body', () => {
  test.each(['gzip', 'br', 'identity, gzip', 'nonsense'])('in the content-encoding %s is refused', async (encoding) => {
    const answer = await api.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, undefined, { ...json, 'content-encoding': encoding }), payload: '{"input":"x"}' });
    expect([answer.statusCode, answer.json().code]).toEqual([415, 'unsupported_media_type']);
  });

  test.each([['latin1', 415], ['"utf-16"', 415], ['', 415], ['UTF-8', 202], ['"utf-8"', 202]])('in the charset %s: %i', async (charset, status) => {
    const answer = await api.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, undefined, { 'content-type': `application/json; charset=${charset}` }), payload: '{"input":"x"}' });
    expect(answer.statusCode).toBe(status);
  });

  test('may say that it is encoded as it is', async () => {
    const answer = await api.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, undefined, { ...json, 'content-encoding': 'identity' }), payload: '{"input":"x"}' });
    expect(answer.statusCode).toBe(202);
  });

  test('that its client breaks off is no outage', async () => {
    const ended = once(api.app.server, 'connection').then(([socket]) => once(socket as Socket, 'close'));
    const socket = connect(port(), '127.0.0.1');
    const arrived = once(api.app.server, 'request');
    socket.write(`POST /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${keysOf.alpha}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"inp`);
    await arrived;
    socket.destroy();
    await ended;
    await new Promise((resolve) => { setImmediate(resolve); });
    expect(logged).toEqual([]);
  });
});

test('what is not built, and what a client did wrong, is not logged', async () => {
  for (const url of ['/v1/usage', '/v1/nothing', '/v1/runs?colour=red']) await api.app.inject({ url, ...asked(keysOf.alpha) });
  expect(logged).toEqual([]);
});

test('an answer that is unknown is logged with what the store said', async () => {
  const own = createTestApi({ deps: { logger }, store: (store) => ({ ...store, create: () => Promise.reject(new Error('Command timed out')) }) });
  await own.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, { input: 'x' }) });
  const { err } = logged[0]!.fields as { err: Error & { cause: Error & { cause: Error } } };
  expect([logged.length, logged[0]!.level, err.cause.cause.message]).toEqual([1, 'warn', 'Command timed out']);
  await own.close();
});

describe('HEAD', () => {
  test.each(['/', '/healthz', '/metrics', '/openapi.json', '/v1/runs', '/v1/agents', '/v1/models'])('%s answers as GET does, without a body', async (url) => {
    const [get, head] = [await api.app.inject({ url, ...asked(keysOf.alpha) }), await api.app.inject({ method: 'HEAD', url, ...asked(keysOf.alpha) })];
    expect([head.statusCode, head.headers['content-type'], head.headers['content-length'], head.body]).toEqual([200, get.headers['content-type'], get.headers['content-length'], '']);
  });

  test.each(['text/event-stream', 'application/x-ndjson', 'application/json'])('of events as %s does not stay open', async (accept) => {
    const answer = await fetch(`http://127.0.0.1:${port()}/v1/runs/${id}/events`, { method: 'HEAD', headers: { accept, authorization: `Bearer ${keysOf.alpha}` } });
    expect([answer.status, answer.headers.get('content-type')?.split(';')[0]]).toEqual([200, accept]);
  });

  test('of what is not there is a problem, without a body', async () => {
    const answer = await api.app.inject({ method: 'HEAD', url: '/v1/runs/run_1', ...asked(keysOf.alpha) });
    expect([answer.statusCode, answer.headers['content-type'], answer.body]).toEqual([404, 'application/problem+json', '']);
  });
});

test('nothing of a run is kept by caches', async () => {
  await api.work(id, begins);
  for (const path of ['', '/events', '/messages', '/ledger', '/wait?timeout_ms=0']) {
    expect([path, (await api.app.inject({ url: `/v1/runs/${id}${path}`, ...asked(keysOf.alpha) })).headers['cache-control']]).toEqual([path, 'no-store']);
  }
  expect((await api.app.inject({ url: '/v1/runs', ...asked(keysOf.alpha) })).headers['cache-control']).toBe('no-store');
});

test('the first page says what this is, links to more, and shows nothing of anybody', async () => {
  const answer = await api.app.inject('/');
  expect([answer.statusCode, answer.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
  expect([...answer.body.matchAll(/href="([^"]+)"/g)].map((match) => match[1])).toEqual(['/docs', '/openapi.json', '/metrics']);
  expect(answer.headers['content-security-policy']).toContain("default-src 'none'");
  expect(answer.body).not.toContain('run_');
});

describe('a server that closes', () => {
  test('does not wait for connections on which nothing was asked, or not to the end', async () => {
    const own = createTestApi({ options: { requestBudgetMs: 100 } });
    await own.app.listen({ host: '127.0.0.1', port: 0 });
    const at = (own.app.server.address() as AddressInfo).port;
    const sockets = ['', 'GET /healthz HTTP/1.1\r\nHost: x\r\nSlow', `POST /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${keysOf.alpha}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"inp`].map((text) => {
      const socket = connect(at, '127.0.0.1').on('error', () => undefined);
      if (text !== '') socket.write(text);
      return new Promise((resolve) => { socket.once('close', resolve); });
    });
    while (await new Promise<number>((resolve, reject) => { own.app.server.getConnections((error, count) => { if (error === null) resolve(count); else reject(error); }); }) < 3) await new Promise(setImmediate);
    await own.close();
    await Promise.all(sockets);
  });
});

test('a query that a route does not look at is refused, and nothing is done', async () => {
  const seqNow = async () => (await api.app.inject({ url: `/v1/runs/${id}`, ...asked(keysOf.alpha) })).json<{ last_seq: number }>().last_seq;
  const seq = await seqNow();
  const jobs = api.memory.jobs().length;
  const { paths } = (await api.app.inject({ url: '/openapi.json' })).json<{ paths: Record<string, Record<string, unknown>> }>();
  const routes = Object.entries(paths).filter(([path]) => path.startsWith('/v1/')).flatMap(([path, methods]) => Object.keys(methods).map((method) => [method, path] as const));
  expect(routes.length).toBeGreaterThan(20);
  for (const [method, path] of routes) {
    const url = `${path.replaceAll(/\{[^}]+\}/g, id)}?nonsense=1`;
    const answer = await api.app.inject({ method: method.toUpperCase() as 'GET', url, ...asked(keysOf.alpha) });
    expect([method, path, answer.statusCode, answer.json<{ code: string }>().code]).toEqual([method, path, 422, 'invalid_request']);
  }
  expect([await seqNow(), api.memory.jobs().length]).toEqual([seq, jobs]);
});
