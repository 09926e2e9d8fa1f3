import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { asCommandFailure } from '../server.ts';
import { webhooksCommand } from './webhooks.ts';

const id = 'msg_0193f0c0a0007000800000000000aa01';
const pending = { id, run_id: id.replace('msg', 'run'), url: 'https://a.example/hook', endpoint: null, status: 'pending', attempts: 2, last_attempt_at: '2030-01-01T00:00:00.000Z', last_status: 500, last_error: 'the receiver answered 500', next_attempt_at: '2030-01-01T00:00:30.000Z', created_at: '2030-01-01T00:00:00.000Z' };
let server: Server;
let asked: unknown[];
let printed: string;
let answer: { readonly status: number; readonly body: unknown };
/** Comes before `answer`, by method and address. */
let answers: Record<string, { readonly status: number; readonly body: unknown }>;

beforeEach(async () => {
  asked = [];
  printed = '';
  answers = {};
  answer = { status: 200, body: { data: [pending, { ...pending, url: null, endpoint: 'backend', status: 'delivered', attempts: 1, last_error: null, next_attempt_at: null }], next_cursor: null } };
  server = createServer((request, response) => {
    asked.push([request.method, request.url]);
    const { status, body } = answers[`${request.method} ${request.url}`] ?? answer;
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  vi.stubEnv('TREADLE_URL', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => { printed += String(text); return true; });
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  server.closeAllConnections();
  server.close();
});

test('ls has a line for each delivery, and says how to go on', async () => {
  expect(await webhooksCommand(['ls'])).toBe(0);
  expect(printed).toBe(`${id}  pending    2 attempts  https://a.example/hook  next 2030-01-01T00:00:30.000Z  the receiver answered 500\n${id}  delivered  1 attempts  backend\n`);
  answer = { ...answer, body: { data: [], next_cursor: 'c' } };
  printed = '';
  await webhooksCommand(['ls', '--status', 'dead', '--run', pending.run_id, '--limit', '2', '--cursor', 'b']);
  expect(printed).toBe('more: --cursor c\n');
  expect(asked).toEqual([['GET', '/v1/webhooks/deliveries?limit=50'], ['GET', `/v1/webhooks/deliveries?status=dead&run_id=${pending.run_id}&cursor=b&limit=2`]]);
  printed = '';
  await webhooksCommand(['ls', '--json']);
  expect(JSON.parse(printed)).toEqual(answer.body);
});

test('redeliver asks the API once', async () => {
  answer = { status: 202, body: pending };
  expect(await webhooksCommand(['redeliver', id])).toBe(0);
  expect(asked).toEqual([['POST', `/v1/webhooks/deliveries/${id}/redeliver`]]);
  expect(printed).toBe(`${id} is sent again\n`);
  printed = '';
  await webhooksCommand(['redeliver', id, '--json']);
  expect(JSON.parse(printed)).toEqual(pending);
});

test('redeliver sends all that are dead again, page by page, but what somebody else has sent or deleted meanwhile', async () => {
  const dead = (id: string) => ({ ...pending, id, status: 'dead', next_attempt_at: null });
  const first = 'GET /v1/webhooks/deliveries?status=dead&limit=100';
  answers = {
    [first]: { status: 200, body: { data: [dead('msg_1'), dead('msg_2'), dead('msg_3')], next_cursor: 'c1' } },
    [`${first}&cursor=c1`]: { status: 200, body: { data: [dead('msg_4')], next_cursor: null } },
    'POST /v1/webhooks/deliveries/msg_2/redeliver': { status: 409, body: { code: 'invalid_state', detail: 'It is pending.' } },
    'POST /v1/webhooks/deliveries/msg_3/redeliver': { status: 404, body: { code: 'not_found', detail: 'Gone.' } },
  };
  answer = { status: 202, body: pending };
  expect(await webhooksCommand(['redeliver', '--status', 'dead'])).toBe(0);
  expect(printed).toBe('2 are sent again\n');
  expect(asked).toHaveLength(6);
  printed = '';
  await webhooksCommand(['redeliver', '--status', 'dead', '--json']);
  expect(JSON.parse(printed)).toEqual({ redelivered: 2, ids: ['msg_1', 'msg_4'] });
  answers[first.replace('dead', 'pending')] = { status: 200, body: { data: [pending], next_cursor: null } };
  printed = '';
  await webhooksCommand(['redeliver', '--status', 'pending', '--json']);
  expect(JSON.parse(printed)).toEqual({ redelivered: 1, ids: [id] });
  answer = { status: 503, body: { code: 'unavailable', detail: 'Redis is away.' } };
  await expect(webhooksCommand(['redeliver', '--status', 'dead'])).rejects.toMatchObject({ status: 503 });
});

test.each([[[]], [['redeliver']], [['redeliver', '--status', 'delivered']], [['redeliver', '--status', 'dead', '--run', pending.run_id]], [['ls', 'x']], [['redeliver', id, 'x']], [['ls', '--status', 'gone']], [['ls', '--limit', 'many']], [['redeliver', id, '--status', 'dead']], [['constructor', 'x']]])('%j is bad usage, and nothing is asked', async (args) => {
  await expect(webhooksCommand(args)).rejects.toMatchObject({ exitCode: 2 });
  expect(asked).toEqual([]);
});

test.each([[404, 2], [409, 2], [503, 3]])('what the API refuses with %i is exit code %i', async (status, exitCode) => {
  answer = { status, body: { code: 'some_code', detail: 'Some words.' } };
  const failure: unknown = await webhooksCommand(['redeliver', id]).catch((error: unknown) => asCommandFailure(error));
  expect(failure).toMatchObject({ exitCode, message: 'some_code: Some words.' });
});
