import { once } from 'node:events';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { asked, createdRun, createTestApi, keysOf, type TestApi } from '../fixtures/test-api.ts';
import { problemTitles } from '../problem.ts';

let api: TestApi;
let base: string;
beforeAll(async () => {
  api = createTestApi();
  base = await api.app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(() => api.close());

describe('what is not there', () => {
  test.each(['/v1', '/v1/nothing', '/v1/runs/', '/v2/runs', '/%zz', '/v1/runs/%zz', '/v1/runs//events'])('%s is a 404 problem', async (url) => {
    const answer = await api.app.inject({ url, ...asked(keysOf.alpha) });
    expect([answer.statusCode, answer.headers['content-type'], answer.json().code]).toEqual([404, 'application/problem+json', 'not_found']);
  });

  test.each([['PUT', '/v1/runs', 'GET, HEAD, POST'], ['POST', '/healthz', 'GET, HEAD'], ['DELETE', '/v1/runs/run_1/cancel', 'POST'], ['HEAD', '/v1/runs/run_1/cancel', 'POST'], ['POST', '/', 'GET, HEAD']] as const)(
    '%s %s is a 405 problem that says what is allowed', async (method, url, allow) => {
      const answer = await api.app.inject({ method, url, ...asked(keysOf.alpha) });
      expect([answer.statusCode, answer.headers.allow, answer.headers['content-type']]).toEqual([405, allow, 'application/problem+json']);
    });

  test('what is not HTTP is answered with a problem too', async () => {
    const socket = connect((api.app.server.address() as AddressInfo).port, '127.0.0.1');
    socket.write('NOT HTTP AT ALL\r\n\r\n');
    let text = '';
    socket.on('data', (chunk: Buffer) => { text += chunk.toString(); });
    await once(socket, 'close');
    expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(JSON.parse(text.split('\r\n\r\n')[1]!)).toMatchObject({ status: 400, code: 'invalid_request' });
  });
});

test('a client that sends 20 MB is told 413, and not cut off', async () => {
  const headers = { authorization: `Bearer ${keysOf.alpha}`, 'content-type': 'application/json' };
  const sized = await fetch(`${base}/v1/runs`, { method: 'POST', headers, body: JSON.stringify({ input: 'x'.repeat(20_000_000) }) });
  expect([sized.status, (await sized.json() as { code: string }).code]).toEqual([413, 'body_too_large']);
  const chunks = new ReadableStream({
    start(controller) {
      for (let n = 0; n < 30; n++) controller.enqueue(new Uint8Array(100_000).fill(0x20));
      controller.close();
    },
  });
  const streamed = await fetch(`${base}/v1/runs`, { method: 'POST', headers, body: chunks, duplex: 'half' } as RequestInit);
  expect(streamed.status).toBe(413);
});

describe('health', () => {
  test('alive is 200 whatever is away, ready says what is', async () => {
    const sick = createTestApi({ deps: { health: () => Promise.resolve({ ok: false, problems: ['Redis is away'] }) } });
    expect((await sick.app.inject('/healthz')).json()).toEqual({ status: 'ok' });
    const answer = await sick.app.inject('/readyz');
    expect([answer.statusCode, answer.json().errors]).toEqual([503, [{ path: '', problem: 'Redis is away' }]]);
    await sick.close();
    expect((await api.app.inject('/readyz')).statusCode).toBe(200);
    expect((await api.app.inject({ method: 'HEAD', url: '/readyz' })).statusCode).toBe(200);
  });

  test('a check that throws is a problem, without its words', async () => {
    const broken = createTestApi({ deps: { health: () => Promise.reject(new Error('redis://user:secret@host')) } });
    const answer = await broken.app.inject('/readyz');
    expect(answer.statusCode).toBe(503);
    expect(answer.body).not.toContain('secret');
    await broken.close();
  });

  test('metrics are there when they are given', async () => {
    const measured = createTestApi({ deps: { metrics: () => Promise.resolve('treadle_up 1\n') } });
    const answer = await measured.app.inject('/metrics');
    expect([answer.body, answer.headers['content-type']]).toEqual(['treadle_up 1\n', 'text/plain; version=0.0.4; charset=utf-8']);
    await measured.close();
    expect((await api.app.inject('/metrics')).statusCode).toBe(404);
  });
});

describe('the OpenAPI file', () => {
  interface Operation { operationId: string; responses: Record<string, { content?: Record<string, unknown> }>; security?: unknown[] }
  const file = async () => (await api.app.inject('/openapi.json')).json<{ openapi: string; paths: Record<string, Record<string, Operation>>; security: unknown }>();

  test('is version 3.1 and names every route that is built, with its problems', async () => {
    const { openapi, paths } = await file();
    expect(openapi).toMatch(/^3\.1\./);
    expect(Object.keys(paths).sort()).toEqual(['/healthz', '/readyz', '/v1/agents', '/v1/breakers', '/v1/breakers/{id}', '/v1/chains', '/v1/chains/{name}/canary', '/v1/keys', '/v1/keys/{key_id}', '/v1/models', '/v1/runs', '/v1/runs/batch', '/v1/runs/cancel', '/v1/runs/{run_id}',
      '/v1/runs/{run_id}/approvals/{tool_use_id}', '/v1/runs/{run_id}/cancel', '/v1/runs/{run_id}/events', '/v1/runs/{run_id}/fork', '/v1/runs/{run_id}/ledger', '/v1/runs/{run_id}/ledger/{tool_use_id}', '/v1/runs/{run_id}/messages', '/v1/runs/{run_id}/pause',
      '/v1/runs/{run_id}/replay', '/v1/runs/{run_id}/resume', '/v1/runs/{run_id}/steer', '/v1/runs/{run_id}/tree', '/v1/runs/{run_id}/wait',
      '/v1/schedules', '/v1/schedules/{schedule_id}', '/v1/sessions', '/v1/sessions/{session_id}', '/v1/sessions/{session_id}/events', '/v1/usage', '/v1/webhooks/deliveries', '/v1/webhooks/deliveries/{id}/redeliver', '/v1/workers']);
    for (const [path, methods] of Object.entries(paths).filter(([each]) => each.startsWith('/v1'))) {
      for (const operation of Object.values(methods)) {
        const statuses = Object.keys(operation.responses);
        expect([path, statuses]).toEqual([path, expect.arrayContaining(['401', '403', '500', '503'])]);
        for (const status of statuses.filter((each) => Number(each) >= 400)) {
          expect(Object.keys(operation.responses[status]!.content!)).toEqual(['application/problem+json']);
        }
      }
    }
  });

  test('says what a new run may be', async () => {
    const { paths } = await file();
    const { requestBody, parameters } = paths['/v1/runs']!.post as unknown as
      { requestBody: { content: Record<string, { schema: { properties: object; required: string[] } }> }; parameters: { name: string; in: string }[] };
    const { schema } = requestBody.content['application/json']!;
    expect([Object.keys(schema.properties), schema.required]).toEqual([['agent', 'input', 'limits', 'metadata', 'tags', 'priority', 'run_at', 'session_id', 'webhook', 'on_busy', 'chain'], ['input']]);
    expect(parameters.map((parameter) => parameter.name)).toEqual(['idempotency-key', 'traceparent']);
    const { parameters: filters } = paths['/v1/runs']!.get as unknown as { parameters: { name: string; schema: object }[] };
    expect(filters.find((filter) => filter.name === 'limit')!.schema).toEqual({ type: 'integer', minimum: 1, maximum: 200 });
    expect(paths['/v1/runs/{run_id}/cancel']!.post).not.toHaveProperty('requestBody');
  });

  test('has an interface that needs no other host', async () => {
    const page = await fetch(`${base}/docs/`);
    const html = await page.text();
    expect([page.status, html.includes('swagger-ui')]).toEqual([200, true]);
    expect(html).not.toMatch(/(src|href)="(https?:)?\/\//);
    for (const [, path] of html.matchAll(/(?:src|href)="([^"]+\.(?:js|css))"/g)) {
      const part = await fetch(new URL(path!, `${base}/docs/`));
      expect([path, part.status]).toEqual([path, 200]);
      await part.arrayBuffer();
    }
    expect(page.headers.get('content-security-policy')).toMatch(/default-src 'self'/);
    expect(page.headers.get('content-security-policy')).not.toContain('upgrade-insecure-requests');
  });
});

test('every code has a title, and answers carry no fields but those of RFC 9457 and ours', async () => {
  const answer = await api.app.inject({ url: '/v1/runs?x=1', ...asked(keysOf.alpha) });
  expect(Object.keys(answer.json())).toEqual(['type', 'title', 'status', 'detail', 'code', 'errors']);
  expect(answer.json().title).toBe(problemTitles.invalid_request);
  expect(answer.headers['x-content-type-options']).toBe('nosniff');
});

test('closing answers waits with what there is and refuses what comes after', async () => {
  const own = createTestApi();
  const url = await own.app.listen({ host: '127.0.0.1', port: 0 });
  const id = await createdRun(own);
  const headers = { authorization: `Bearer ${keysOf.alpha}` };
  const waiting = fetch(`${url}/v1/runs/${id}/wait?timeout_ms=60000`, { headers });
  await expect.poll(() => own.followers.size).toBe(1);
  const closed = own.close();
  const answer = await waiting;
  expect([answer.status, (await answer.json() as { status: string }).status]).toEqual([200, 'queued']);
  await closed;
  await expect(fetch(`${url}/healthz`)).rejects.toThrow();
});
