/** People's words on calls that wait for approval, over the API. */
import type { EventBody, ToolDefinition } from '@treadle/core';
import { callDigest, type SendCommand } from '@treadle/engine';
import { testTool } from '@treadle/testkit';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { asked, begins, createdRun, createTestApi, keysOf, type TestApi } from '../fixtures/test-api.ts';

let api: TestApi;
let sent: SendCommand[] = [];
beforeAll(() => { api = createTestApi({ store: (store) => ({ ...store, command: (command) => { sent.push(command); return store.command(command); } }) }); });
beforeEach(() => { sent = []; });
afterAll(() => api.close());

const deploy: ToolDefinition = testTool('deploy', {
  effect: 'once', parallel: 'serial', approval: { timeout_s: null, on_timeout: 'deny' },
  input_schema: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'], additionalProperties: false },
});
const input = { to: 'production' };
const digest = callDigest(deploy, input);
const use = (tool_use_id: string): EventBody => ({ type: 'tool_use', tool_use_id, provider_id: null, tool_name: 'deploy', tool_input: input, execution: 'serial' });
const requested = (tool_use_id: string): EventBody => ({ type: 'approval_requested', tool_use_id, tool_name: 'deploy', digest, expires_at: null });
const waits = (...ids: string[]): EventBody => ({ type: 'state_change', old: 'running', new: 'paused', reason: 'approval',
  pending: ids.map((tool_use_id) => ({ kind: 'approval', tool_use_id, tool_name: 'deploy', tool_input: input, expires_at: null, digest })) });
const resumed: EventBody = { type: 'state_change', old: 'paused', new: 'running', reason: 'resumed' };
const approved = (tool_use_id: string): EventBody => ({ type: 'approval_resolved', tool_use_id, digest, decision: 'approve', by: 'alpha', reason: null });
const result = (tool_use_id: string): EventBody => ({ type: 'tool_result', tool_use_id, tool_name: 'deploy', content: 'r', is_error: false, duration: 0 });
const turnEnd: EventBody = { type: 'turn_end', duration: 1, usage: { input_tokens: 3, output_tokens: 2, cached_tokens: 0, wasted_tokens: 0, cost_usd: 0 } };
const cancelled: readonly EventBody[] = [{ type: 'state_change', old: 'running', new: 'cancelled', reason: 'interrupted' }, { type: 'run_end', status: 'cancelled', stop_reason: 'interrupted' }];

async function waitingRun(...ids: string[]): Promise<string> {
  const id = await createdRun(api);
  const [claimed, ...turn] = begins;
  await api.work(id, [claimed!, { type: 'tools_changed', tools: [deploy], problems: [], done: 'pinned' }, ...turn, ...ids.map(use), ...ids.map(requested), waits(...ids)]);
  return id;
}

const decide = async (id: string, call: string, body: unknown, { key, token = keysOf.alpha }: { key?: string; token?: string } = {}) => {
  const answer = await api.app.inject({ method: 'POST', url: `/v1/runs/${id}/approvals/${call}`, ...asked(token, body, key === undefined ? {} : { 'idempotency-key': key }) });
  return { status: answer.statusCode, body: answer.json<{ code?: string; id?: string; errors?: { path: string }[] }>() };
};
const coded = ({ status, body }: Awaited<ReturnType<typeof decide>>): unknown[] => [status, body.code ?? 'ok'];

test('a run shows what waits, and takes one decision on it: 202 with the run, sent as what was seen', async () => {
  const id = await waitingRun('a');
  const { pending } = (await api.app.inject({ url: `/v1/runs/${id}`, ...asked(keysOf.alpha) })).json<{ pending: unknown }>();
  expect(pending).toEqual([{ kind: 'approval', tool_use_id: 'a', tool_name: 'deploy', tool_input: input, expires_at: null, digest }]);
  expect(await decide(id, 'a', { decision: 'deny', reason: 'no' })).toMatchObject({ status: 202, body: { id } });
  expect(sent.map(({ command }) => command)).toEqual([{ type: 'approval', tool_use_id: 'a', digest, decision: 'deny', by: 'alpha', reason: 'no' }]);
});

test.each([
  ['five that approve', ['approve', 'approve', 'approve', 'approve', 'approve']], ['one that approves and one that denies', ['approve', 'deny']],
])('R22: of %s at once exactly one is accepted', async (_what, decisions) => {
  const id = await waitingRun('a');
  const answers = await Promise.all(decisions.map((decision) => decide(id, 'a', { decision })));
  expect(answers.map(coded).sort()).toEqual([[202, 'ok'], ...decisions.slice(1).map(() => [409, 'already_decided'])]);
});

test('a second decision is refused as one, also when the run has gone on, and when it has ended', async () => {
  const id = await waitingRun('a');
  await decide(id, 'a', { decision: 'approve' });
  await api.work(id, [resumed, approved('a'), result('a'), turnEnd]);
  expect(coded(await decide(id, 'a', { decision: 'deny' }))).toEqual([409, 'already_decided']);
  await api.work(id, cancelled);
  expect(coded(await decide(id, 'a', { decision: 'deny' }))).toEqual([409, 'already_decided']);
});

test('a decision with an Idempotency-Key is the same one however often it is sent, also when nothing waits any more', async () => {
  const id = await waitingRun('a');
  const send = (decision: string) => decide(id, 'a', { decision }, { key: 'k' });
  expect(coded(await send('approve'))).toEqual([202, 'ok']);
  await api.work(id, [resumed, approved('a'), result('a'), turnEnd]);
  expect(coded(await send('approve'))).toEqual([202, 'ok']);
  expect(coded(await send('deny'))).toEqual([409, 'idempotency_conflict']);
  expect(new Set(sent.map(({ command_id }) => command_id)).size).toBe(1);
});

describe('nothing is decided', () => {
  test('about a call that the run has never made: 404; or that waits for nothing: 409', async () => {
    const id = await waitingRun('a');
    expect(coded(await decide(id, 'zz', { decision: 'approve' }))).toEqual([404, 'not_found']);
    const other = await createdRun(api);
    await api.work(other, [...begins, use('b')]);
    expect(coded(await decide(other, 'b', { decision: 'approve' }))).toEqual([409, 'invalid_state']);
    expect(coded(await decide(other, 'zz', { decision: 'approve' }))).toEqual([404, 'not_found']);
  });

  test('once a cancel was accepted, or the run has ended', async () => {
    const id = await waitingRun('a');
    await api.app.inject({ method: 'POST', url: `/v1/runs/${id}/cancel`, ...asked(keysOf.alpha) });
    expect(coded(await decide(id, 'a', { decision: 'approve' }))).toEqual([409, 'invalid_state']);
    await api.work(id, [resumed, result('a'), turnEnd, ...cancelled]);
    expect(coded(await decide(id, 'a', { decision: 'approve' }))).toEqual([409, 'invalid_state']);
    await api.archiveRun(id);
    expect(coded(await decide(id, 'a', { decision: 'approve' }))).toEqual([409, 'invalid_state']);
  });

  test('by a word on how a call went, whatever it calls the call', async () => {
    const id = await waitingRun('a');
    for (const call of ['a', `a ${digest}`, 'a approval']) {
      const answer = await api.app.inject({ method: 'POST', url: `/v1/runs/${id}/ledger/${encodeURIComponent(call)}`, ...asked(keysOf.alpha, { outcome: 'happened' }) });
      expect([call, answer.statusCode, answer.json<{ code: string }>().code]).toEqual([call, 409, 'invalid_state']);
    }
    expect(coded(await decide(id, 'a', { decision: 'approve' }))).toEqual([202, 'ok']);
  });

  test('R22: about other arguments than those that were seen', async () => {
    const id = await waitingRun('a');
    expect(coded(await decide(id, 'a', { decision: 'approve', digest: callDigest(deploy, { to: 'staging' }) }))).toEqual([409, 'invalid_state']);
    expect(sent).toEqual([]);
    expect(coded(await decide(id, 'a', { decision: 'approve', digest }))).toEqual([202, 'ok']);
  });

  test.each<[object, string]>([
    [{ decision: 'maybe' }, 'decision'], [{}, 'decision'], [{ decision: 'deny', input: { to: 'x' } }, 'input'], [{ decision: 'approve', reason: '' }, 'reason'], [{ decision: 'approve', reason: 'x'.repeat(2001) }, 'reason'],
    [{ decision: 'approve', input: { to: 5 } }, 'input'], [{ decision: 'approve', input: {} }, 'input'], [{ decision: 'approve', input: { to: 'x', more: 1 } }, 'input'],
    [{ decision: 'approve', input: { to: 'x'.repeat(300_000) } }, 'input'],
  ])('where the request is not valid: %#', async (body, path) => {
    const id = await waitingRun('a');
    const answer = await decide(id, 'a', body);
    expect([answer.status, answer.body.errors?.[0]?.path]).toEqual([422, path]);
    expect(sent).toEqual([]);
  });

  test('by a key that may only read, and of another tenant’s run', async () => {
    const id = await waitingRun('a');
    expect((await decide(id, 'a', { decision: 'approve' }, { token: keysOf.alphaRead })).status).toBe(403);
    expect((await decide(id, 'a', { decision: 'approve' }, { token: keysOf.beta })).status).toBe(404);
    expect(sent).toEqual([]);
  });
});

test('other arguments that fit are sent with the digest of the call as it is then', async () => {
  const id = await waitingRun('a');
  expect(coded(await decide(id, 'a', { decision: 'approve', input: { to: 'staging' } }))).toEqual([202, 'ok']);
  expect(sent[0]!.command).toMatchObject({ digest, changed: { input: { to: 'staging' }, digest: callDigest(deploy, { to: 'staging' }) } });
});

test('a digest tells calls apart by tool, arguments and definition, and not by the order of keys', () => {
  const two = { a: 1, b: { c: 2, d: 3 } };
  expect(callDigest(deploy, two)).toBe(callDigest(deploy, { b: { d: 3, c: 2 }, a: 1 }));
  const others = [callDigest(deploy, { ...two, a: 2 }), callDigest({ ...deploy, name: 'deploy2' }, two), callDigest({ ...deploy, hash: 'sha256:other' }, two), callDigest(deploy, { a: '1', b: two.b })];
  expect(new Set([callDigest(deploy, two), ...others]).size).toBe(5);
});
