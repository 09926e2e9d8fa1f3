import { expect, test } from 'vitest';
import { answeringApi } from '../fixtures/answering-api.ts';
import { asCommandFailure } from '../server.ts';
import { webhooksCommand } from './webhooks.ts';

const id = 'msg_0193f0c0a0007000800000000000aa01';
const pending = { id, run_id: id.replace('msg', 'run'), url: 'https://a.example/hook', endpoint: null, status: 'pending', attempts: 2, last_attempt_at: '2030-01-01T00:00:00.000Z', last_status: 500, last_error: 'the receiver answered 500', next_attempt_at: '2030-01-01T00:00:30.000Z', created_at: '2030-01-01T00:00:00.000Z' };
const api = answeringApi({ status: 200, body: { data: [pending, { ...pending, url: null, endpoint: 'backend', status: 'delivered', attempts: 1, last_error: null, next_attempt_at: null }], next_cursor: null } });

test('ls has a line for each delivery, and says how to go on', async () => {
  expect(await webhooksCommand(['ls'])).toBe(0);
  expect(api.printed).toBe(`${id}  pending    2 attempts  https://a.example/hook  next 2030-01-01T00:00:30.000Z  the receiver answered 500\n${id}  delivered  1 attempts  backend\n`);
  api.answer = { ...api.answer, body: { data: [], next_cursor: 'c' } };
  api.printed = '';
  await webhooksCommand(['ls', '--status', 'dead', '--run', pending.run_id, '--limit', '2', '--cursor', 'b']);
  expect(api.printed).toBe('more: --cursor c\n');
  expect(api.asked).toEqual([{ method: 'GET', url: '/v1/webhooks/deliveries?limit=50' }, { method: 'GET', url: `/v1/webhooks/deliveries?status=dead&run_id=${pending.run_id}&cursor=b&limit=2` }]);
  api.printed = '';
  await webhooksCommand(['ls', '--json']);
  expect(JSON.parse(api.printed)).toEqual(api.answer.body);
});

test('redeliver asks the API once', async () => {
  api.answer = { status: 202, body: pending };
  expect(await webhooksCommand(['redeliver', id])).toBe(0);
  expect(api.asked).toEqual([{ method: 'POST', url: `/v1/webhooks/deliveries/${id}/redeliver` }]);
  expect(api.printed).toBe(`${id} is sent again\n`);
  api.printed = '';
  await webhooksCommand(['redeliver', id, '--json']);
  expect(JSON.parse(api.printed)).toEqual(pending);
});

test('redeliver sends all that are dead again, page by page, but what somebody else has sent or deleted meanwhile', async () => {
  const dead = (id: string) => ({ ...pending, id, status: 'dead', next_attempt_at: null });
  const first = 'GET /v1/webhooks/deliveries?status=dead&limit=100';
  api.answers = {
    [first]: { status: 200, body: { data: [dead('msg_1'), dead('msg_2'), dead('msg_3')], next_cursor: 'c1' } },
    [`${first}&cursor=c1`]: { status: 200, body: { data: [dead('msg_4')], next_cursor: null } },
    'POST /v1/webhooks/deliveries/msg_2/redeliver': { status: 409, body: { code: 'invalid_state', detail: 'It is pending.' } },
    'POST /v1/webhooks/deliveries/msg_3/redeliver': { status: 404, body: { code: 'not_found', detail: 'Gone.' } },
  };
  api.answer = { status: 202, body: pending };
  expect(await webhooksCommand(['redeliver', '--status', 'dead'])).toBe(0);
  expect(api.printed).toBe('2 are sent again\n');
  expect(api.asked).toHaveLength(6);
  api.printed = '';
  await webhooksCommand(['redeliver', '--status', 'dead', '--json']);
  expect(JSON.parse(api.printed)).toEqual({ redelivered: 2, ids: ['msg_1', 'msg_4'] });
  api.answers[first.replace('dead', 'pending')] = { status: 200, body: { data: [pending], next_cursor: null } };
  api.printed = '';
  await webhooksCommand(['redeliver', '--status', 'pending', '--json']);
  expect(JSON.parse(api.printed)).toEqual({ redelivered: 1, ids: [id] });
  api.answer = { status: 503, body: { code: 'unavailable', detail: 'Redis is away.' } };
  await expect(webhooksCommand(['redeliver', '--status', 'dead'])).rejects.toMatchObject({ status: 503 });
});

test.each([[[]], [['redeliver']], [['redeliver', '--status', 'delivered']], [['redeliver', '--status', 'dead', '--run', pending.run_id]], [['ls', 'x']], [['redeliver', id, 'x']], [['ls', '--status', 'gone']], [['ls', '--limit', 'many']], [['redeliver', id, '--status', 'dead']], [['constructor', 'x']]])('%j is bad usage, and nothing is asked', async (args) => {
  await expect(webhooksCommand(args)).rejects.toMatchObject({ exitCode: 2 });
  expect(api.asked).toEqual([]);
});

test.each([[404, 2], [409, 2], [503, 3]])('what the API refuses with %i is exit code %i', async (status, exitCode) => {
  api.answer = { status, body: { code: 'some_code', detail: 'Some words.' } };
  const failure: unknown = await webhooksCommand(['redeliver', id]).catch((error: unknown) => asCommandFailure(error));
  expect(failure).toMatchObject({ exitCode, message: 'some_code: Some words.' });
});
