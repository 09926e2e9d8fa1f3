import { createHash } from 'node:crypto';
import type { EventBody } from '@treadle/core';
import type { SendCommand } from '@treadle/engine';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createKeyTable } from '../auth/keys.ts';
import { asked, begins, createdRun, createTestApi, ends, keysOf, testKeys, type TestApi } from '../fixtures/test-api.ts';

let api: TestApi;
let sent: SendCommand[] = [];
beforeAll(() => {
  const named = { key_sha256: createHash('sha256').update('tk_named').digest('hex'), tenant: 'alpha', scopes: ['write' as const], expires_at_ms: null, name: 'ops' };
  api = createTestApi({
    store: (store) => ({ ...store, command: (command) => { sent.push(command); return store.command(command); } }),
    deps: { keys: createKeyTable([...testKeys, named]) },
  });
});
beforeEach(() => { sent = []; });
afterAll(() => api.close());

const ask = (method: 'POST' | 'PATCH', url: string, options: { body?: unknown; key?: string; token?: string } = {}) => api.app.inject({
  method, url, ...asked(options.token ?? keysOf.alpha, options.body, options.key === undefined ? {} : { 'idempotency-key': options.key }) });
const post = (url: string, body?: unknown, key?: string) => ask('POST', url, { body, ...(key === undefined ? {} : { key }) });
const patch = (id: string, body?: unknown) => ask('PATCH', `/v1/runs/${id}`, { body });

const pauses: readonly EventBody[] = [{ type: 'state_change', old: 'running', new: 'paused', reason: 'requested' }];

async function pausedRun(body?: object): Promise<string> {
  const id = await createdRun(api, body);
  await api.work(id, [...begins, ...pauses]);
  return id;
}

async function endedRun(): Promise<string> {
  const id = await createdRun(api);
  await api.work(id, [...begins, ...ends]);
  return id;
}

describe('every command', () => {
  const commands: [string, 'POST' | 'PATCH', string, unknown][] = [
    ['cancel', 'POST', '/cancel', undefined], ['pause', 'POST', '/pause', undefined], ['resume', 'POST', '/resume', undefined], ['steer', 'POST', '/steer', { text: 'x' }],
    ['update', 'PATCH', '', { tags: ['x'] }],
  ];

  test.each(commands)('%s is answered 202 with the run, and sent as one command', async (type, method, path, body) => {
    const id = await pausedRun();
    const answer = await ask(method, `/v1/runs/${id}${path}`, { body });
    expect([answer.statusCode, answer.json().id]).toEqual([202, id]);
    expect(sent.map((each) => [each.run_id, each.command.type])).toEqual([[id, type]]);
  });

  test.each(commands)('%s is refused once the run has ended', async (_type, method, path, body) => {
    const id = await endedRun();
    const answer = await ask(method, `/v1/runs/${id}${path}`, { body });
    expect([answer.statusCode, answer.json().code, answer.json().detail]).toEqual([409, 'invalid_state', 'The run has ended (completed).']);
    expect(sent).toEqual([]);
  });

  test.each(commands)('%s needs the scope to write', async (_type, method, path, body) => {
    const id = await pausedRun();
    expect((await ask(method, `/v1/runs/${id}${path}`, { body, token: keysOf.alphaRead })).statusCode).toBe(403);
    expect((await ask(method, `/v1/runs/${id}${path}`, { body, token: keysOf.alphaWrite })).statusCode).toBe(202);
  });

  test.each(commands)('%s with an Idempotency-Key is the same command however often it is sent, also after the end', async (_type, method, path, body) => {
    const id = await pausedRun();
    const send = () => ask(method, `/v1/runs/${id}${path}`, { body, key: 'again' });
    expect((await send()).statusCode).toBe(202);
    const writes = api.memory.writes;
    expect((await send()).statusCode).toBe(202);
    await api.work(id, [{ type: 'state_change', old: 'paused', new: 'running', reason: 'resumed' }, ...ends]);
    const afterwards = await send();
    expect([afterwards.statusCode, afterwards.json().status]).toEqual([202, 'completed']);
    expect(new Set(sent.map((each) => each.command_id)).size).toBe(1);
    // The worker's commit alone.
    expect(api.memory.writes).toBeLessThanOrEqual(writes + 2);
  });

  test.each(commands)('%s refuses a key that is none', async (_type, method, path, body) => {
    const id = await pausedRun();
    const answer = await ask(method, `/v1/runs/${id}${path}`, { body, key: 'é' });
    expect([answer.statusCode, answer.json().errors[0].path]).toEqual([422, 'idempotency-key']);
  });
});

describe('an idempotency key of commands', () => {
  test('with another command, or other contents, is a conflict and sends nothing', async () => {
    const id = await pausedRun();
    expect((await post(`/v1/runs/${id}/steer`, { text: 'one' }, 'k')).statusCode).toBe(202);
    for (const answer of [await post(`/v1/runs/${id}/steer`, { text: 'two' }, 'k'), await post(`/v1/runs/${id}/pause`, undefined, 'k')]) {
      expect([answer.statusCode, answer.json().code]).toEqual([409, 'idempotency_conflict']);
    }
    expect(sent).toHaveLength(1);
  });

  test('belongs to its run, and is none of a new run\'s', async () => {
    const [one, other] = [await pausedRun(), await pausedRun()];
    expect((await post(`/v1/runs/${one}/steer`, { text: 'a' }, 'shared')).statusCode).toBe(202);
    expect((await post(`/v1/runs/${other}/steer`, { text: 'b' }, 'shared')).statusCode).toBe(202);
    expect((await post('/v1/runs', { input: 'x' }, 'shared')).statusCode).toBe(202);
    expect(new Set(sent.map((each) => each.command_id)).size).toBe(2);
  });

  test('without it every request is a command of its own', async () => {
    const id = await pausedRun();
    await post(`/v1/runs/${id}/steer`, { text: 'a' });
    await post(`/v1/runs/${id}/steer`, { text: 'a' });
    expect(new Set(sent.map((each) => each.command_id)).size).toBe(2);
  });
});

describe('cancelling', () => {
  test('is accepted twice', async () => {
    const id = await createdRun(api);
    expect((await post(`/v1/runs/${id}/cancel`)).statusCode).toBe(202);
    expect((await post(`/v1/runs/${id}/cancel`, {})).statusCode).toBe(202);
    expect((await post(`/v1/runs/${id}/steer`, { text: 'x' })).json().code).toBe('invalid_state');
  });

  test.each(['cancel', 'pause'])('and pausing take no fields: %s', async (verb) => {
    const id = await createdRun(api);
    const answer = await post(`/v1/runs/${id}/${verb}`, { reason: 'x' });
    expect([answer.statusCode, answer.json().errors]).toEqual([422, [{ path: 'reason', problem: 'unknown field' }]]);
  });

  test('an empty form, as command-line clients send it, is no body', async () => {
    const id = await createdRun(api);
    const answer = await api.app.inject({ method: 'POST', url: `/v1/runs/${id}/cancel`, ...asked(keysOf.alpha, '', { 'content-type': 'application/x-www-form-urlencoded', 'content-length': '0' }) });
    expect(answer.statusCode).toBe(202);
  });
});

describe('resuming', () => {
  test('is refused for a run that is not paused, and taken where a pause is on its way', async () => {
    const id = await createdRun(api);
    const early = await post(`/v1/runs/${id}/resume`);
    expect([early.statusCode, early.json().code]).toEqual([409, 'invalid_state']);
    await post(`/v1/runs/${id}/pause`);
    expect((await post(`/v1/runs/${id}/resume`)).statusCode).toBe(202);
  });

  test('may bring input: a text, or parts where the run\'s model takes them', async () => {
    const image = { type: 'image', media_type: 'image/png', data: 'AAAA' };
    const [plain, seer] = [await pausedRun(), await pausedRun({ agent: 'seer', input: 'look' })];
    expect((await post(`/v1/runs/${plain}/resume`, { input: 'Paris' })).statusCode).toBe(202);
    expect((await post(`/v1/runs/${seer}/resume`, { input: [image] })).statusCode).toBe(202);
    expect((await post(`/v1/runs/${await pausedRun()}/resume`, {})).statusCode).toBe(202);
    expect(sent.map((each) => each.command)).toEqual([{ type: 'resume', input: 'Paris' }, { type: 'resume', input: [image] }, { type: 'resume' }]);
    const refused = await post(`/v1/runs/${await pausedRun()}/resume`, { input: [image] });
    expect([refused.statusCode, refused.json().errors[0].path]).toEqual([422, 'input.0']);
  });

  test.each([[{ input: '' }, 'invalid_request', 'input'], [{ input: ' ' }, 'invalid_request', 'input'], [{ input: 5 }, 'invalid_request', 'input'], [{ text: 'x' }, 'invalid_request', 'text'],
    [[], 'invalid_request', ''], [{ input: [{ type: 'image', url: 'http://x/y.png' }] }, 'not_supported', 'input.0.url']])('refuses %j', async (body, code, path) => {
    const answer = await post(`/v1/runs/${await pausedRun()}/resume`, body);
    expect([answer.statusCode, answer.json().code, answer.json().errors[0].path]).toEqual([422, code, path]);
    expect(sent).toEqual([]);
  });
});

describe('steering', () => {
  test('takes up to 32 KiB of text', async () => {
    const id = await pausedRun();
    expect((await post(`/v1/runs/${id}/steer`, { text: 'é'.repeat(16 * 1024) })).statusCode).toBe(202);
    for (const [body, path] of [[{ text: `${'é'.repeat(16 * 1024)}x` }, 'text'], [{ text: '' }, 'text'], [{ text: ' \n' }, 'text'], [{}, 'text'], [{ text: 'x', loud: true }, 'loud'], [undefined, '']] as const) {
      const answer = await post(`/v1/runs/${id}/steer`, body);
      expect([answer.statusCode, answer.json().errors[0].path]).toEqual([422, path]);
    }
    expect(sent).toHaveLength(1);
  });
});

describe('changing a live run', () => {
  test('sends what was named and who did it', async () => {
    const id = await pausedRun();
    const body = { metadata: { order: 8 }, tags: ['a', 'b', 'a'], limits: { max_turns: 10, max_cost_usd: 0.5, max_total_tokens: null } };
    expect((await patch(id, body)).statusCode).toBe(202);
    expect((await ask('PATCH', `/v1/runs/${id}`, { body: { tags: [] }, token: 'tk_named' })).statusCode).toBe(202);
    expect(sent.map((each) => each.command)).toEqual([
      { type: 'update', by: 'alpha', metadata: { order: 8 }, tags: ['a', 'b'], limits: { max_turns: 10, max_cost_usd: 0.5, max_total_tokens: null } },
      { type: 'update', by: 'ops', tags: [] },
    ]);
  });

  test('is bounded by the maxima of the spec that the run was made with', async () => {
    const answer = await patch(await pausedRun(), { limits: { max_turns: 11 } });
    expect([answer.statusCode, answer.json().code, answer.json().errors]).toEqual([422, 'limit_above_maximum', [{ path: 'limits.max_turns', problem: 'at most 10' }]]);
    // The other agent's maximum is the usual 50.
    expect((await patch(await pausedRun({ agent: 'seer', input: 'x' }), { limits: { max_turns: 11 } })).statusCode).toBe(202);
    expect(sent).toHaveLength(1);
  });

  test.each([[undefined, 'invalid_request', ''], [{}, 'invalid_request', ''], [{ status: 'completed' }, 'invalid_request', 'status'], [{ limits: { max_turns: 0 } }, 'invalid_request', 'limits.max_turns'],
    [{ limits: { max_turns: null } }, 'invalid_request', 'limits.max_turns'], [{ limits: { max_fun: 1 } }, 'invalid_request', 'limits.max_fun'], [{ limits: { max_depth: -1 } }, 'invalid_request', 'limits.max_depth'],
    [{ tags: [''] }, 'invalid_request', 'tags.0'], [{ metadata: [] }, 'invalid_request', 'metadata']])('refuses %j', async (body, code, path) => {
    const answer = await patch(await pausedRun(), body);
    expect([answer.statusCode, answer.json().code, answer.json().errors[0].path]).toEqual([422, code, path]);
    expect(sent).toEqual([]);
  });
});

test('a run with too many commands waiting is answered 429', async () => {
  const full = createTestApi({ store: (store) => ({ ...store, command: () => Promise.resolve({ type: 'inbox_full' as const }) }) });
  const id = await createdRun(full);
  const answer = await full.app.inject({ method: 'POST', url: `/v1/runs/${id}/steer`, ...asked(keysOf.alpha, { text: 'x' }) });
  expect([answer.statusCode, answer.json().code, answer.headers['retry-after']]).toEqual([429, 'rate_limited', '1']);
  await full.close();
});

describe('a word on a call in doubt', () => {
  const use: EventBody = { type: 'tool_use', tool_name: 'send', tool_input: { to: 'ann' }, tool_use_id: 'c1', provider_id: null, execution: 'serial' };
  const waits: EventBody = {
    type: 'state_change', old: 'running', new: 'paused', reason: 'outcome',
    pending: [{ kind: 'outcome', tool_use_id: 'c1', tool_name: 'send', tool_input: { to: 'ann' }, expires_at: null }],
  };

  test('is shown as pending, taken once, and refused where none is waited for', async () => {
    const id = await createdRun(api);
    expect((await post(`/v1/runs/${id}/ledger/c1`, { outcome: 'happened' })).json()).toMatchObject({ status: 409, code: 'invalid_state' });
    await api.work(id, [...begins, use, waits]);
    expect((await api.app.inject({ method: 'GET', url: `/v1/runs/${id}`, ...asked(keysOf.alpha) })).json()).toMatchObject({
      status: 'paused', pause_reason: 'outcome', pending: [{ kind: 'outcome', tool_use_id: 'c1', tool_name: 'send', tool_input: { to: 'ann' }, expires_at: null }] });
    expect((await post(`/v1/runs/${id}/ledger/c2`, { outcome: 'happened' })).json()).toMatchObject({ status: 409, code: 'invalid_state' });
    expect((await post(`/v1/runs/${id}/ledger/c1`, { outcome: 'perhaps' })).json()).toMatchObject({ status: 422, code: 'invalid_request' });
    expect((await post(`/v1/runs/${id}/ledger/c1`, { outcome: 'happened', content: 'sent' })).statusCode).toBe(202);
    expect(sent.at(-1)?.command).toMatchObject({ type: 'outcome', tool_use_id: 'c1', outcome: 'happened', content: 'sent' });
    expect((await post(`/v1/runs/${id}/ledger/c1`, { outcome: 'did_not_happen' })).json()).toMatchObject({ status: 409, code: 'already_decided' });
    expect((await ask('POST', `/v1/runs/${id}/ledger/c1`, { body: { outcome: 'happened' }, token: keysOf.beta })).statusCode).toBe(404);
  });
});
