import { noUsage, type EventBody } from '@treadle/core';
import { createRun } from '@treadle/engine';
import { testSpec } from '@treadle/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { asked, begins, createdRun, createTestApi, ends, keysOf, type TestApi } from '../fixtures/test-api.ts';

let api: TestApi;
beforeAll(() => { api = createTestApi(); });
afterAll(() => api.close());

interface Tree { readonly run: { readonly id: string; readonly status: string; readonly parent_run_id: string | null }; readonly tool_use_id: string | null; readonly children: readonly Tree[] }
const tree = async (id: string, key = keysOf.alpha) => api.app.inject({ method: 'GET', url: `/v1/runs/${id}/tree`, ...asked(key) });
const shape = ({ run, tool_use_id, children }: Tree): unknown => [run.id, tool_use_id, children.map(shape)];

/** `parent` has a call that starts `count` runs; those named `missing` never came to be. */
async function starts(parent: string, count: number, missing: readonly number[] = []): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, index) => `${parent.slice(0, 20)}${(++made).toString(16).padStart(6, '0')}${index.toString(16).padStart(8, '0')}${parent.slice(-2)}`);
  const limits = { tool_budget: 1, max_total_tokens: null, max_cost_usd: null, max_depth: 0 };
  const events: EventBody[] = [...begins, ...ids.flatMap((child_run_id, index): EventBody[] => [
    { type: 'tool_use', tool_use_id: `c${index}`, tool_name: 'spawn_agent', tool_input: {}, provider_id: null, execution: 'parallel' },
    { type: 'child_run', child_run_id, tool_use_id: `c${index}`, agent: 'assistant', status: 'queued', limits }])];
  const job = api.memory.jobs().find((each) => each.run_id === parent);
  const claimed = await api.memory.claim({ run_id: parent, n: job!.n, claim_id: `claim-${parent}`, held: null });
  if (claimed.type !== 'claimed') throw new Error(claimed.type);
  for (const [index, run_id] of ids.entries()) {
    if (missing.includes(index)) continue;
    const spec = testSpec({ name: 'assistant' });
    const { reply } = await createRun({ store: api.memory, clock: { nowMs: () => 1, monotonicMs: () => 1 }, random: { uuid: () => `${run_id}-s`, jitter: () => 0 }, shards: 2 }, {
      tenant: 'alpha', spec, agent_version: 'v', limits: {} as never, input: 'x', metadata: {}, tags: [], priority: 50, run_at: null,
      parent: { run_id: parent, n: job!.n, epoch: claimed.epoch, claim_id: `claim-${parent}` },
    }, { run_id, not_after_ms: Number.MAX_SAFE_INTEGER });
    expect(reply.type).toBe('created');
  }
  await api.memory.handBack({ run_id: parent, n: job!.n, epoch: claimed.epoch, claim_id: `claim-${parent}` });
  await api.work(parent, events);
  return ids;
}
let made = 0;

describe('a tree', () => {
  test('is the run and all that it and they have started, in the order of the starts', async () => {
    const top = await createdRun(api);
    const [a, b] = await starts(top, 2);
    const [c] = await starts(b!, 1);
    const answer = await tree(top);
    expect([answer.statusCode, shape(answer.json<Tree>()), answer.json().truncated]).toEqual([200, [top, null, [[a, 'c0', []], [b, 'c1', [[c, 'c0', []]]]]], false]);
    expect(answer.json<Tree>().children.map((each) => each.run.parent_run_id)).toEqual([top, top]);
    expect(shape((await tree(b!)).json<Tree>())).toEqual([b, null, [[c, 'c0', []]]]);
  });

  test('leaves out what was planned and never came to be, and what was deleted', async () => {
    const top = await createdRun(api);
    const [a, , c] = await starts(top, 3, [1]);
    await api.work(c!, [...begins, ...ends]);
    expect(shape((await tree(top)).json<Tree>())).toEqual([top, null, [[a, 'c0', []], [c, 'c2', []]]]);
    await api.app.inject({ method: 'DELETE', url: `/v1/runs/${c}`, ...asked(keysOf.alpha) });
    expect(shape((await tree(top)).json<Tree>())).toEqual([top, null, [[a, 'c0', []]]]);
  });

  test('is the same once the runs have left the store', async () => {
    const top = await createdRun(api);
    const [a] = await starts(top, 1);
    await api.work(a!, [...begins, ...ends]);
    await api.work(top, [
      { type: 'child_run', child_run_id: a!, tool_use_id: 'c0', agent: 'assistant', status: 'completed', usage: noUsage, tool_calls: 0 },
      { type: 'tool_result', tool_use_id: 'c0', tool_name: 'spawn_agent', content: 'x', is_error: false, duration: 0 }, ...ends]);
    const before = (await tree(top)).json<Tree>();
    await Promise.all([api.archiveRun(top), api.archiveRun(a!)]);
    api.memory.passTime(10_000);
    await api.memory.pump(0, { limit: 100, grace_ms: 1 });
    const after = (await tree(top)).json<Tree>();
    expect(shape(after)).toEqual(shape(before));
    expect(after).not.toHaveProperty('run.children');
  });

  test('of somebody else, or of nobody, is not found', async () => {
    const top = await createdRun(api);
    expect((await tree(top, keysOf.beta)).statusCode).toBe(404);
    expect((await tree('run_nothing')).statusCode).toBe(404);
    expect((await api.app.inject({ method: 'GET', url: `/v1/runs/${top}/tree?x=1`, ...asked(keysOf.alpha) })).statusCode).toBe(422);
  });
});

describe('a run that waits for the answer to a question', () => {
  const asks: EventBody[] = [...begins,
    { type: 'tools_changed', tools: [], problems: [], done: 'pinned' },
    { type: 'tool_use', tool_use_id: 'q', tool_name: 'ask_user', tool_input: { question: 'Which?' }, provider_id: null, execution: 'serial' },
    { type: 'state_change', old: 'running', new: 'paused', reason: 'input', pending: [{ kind: 'input', tool_use_id: 'q', tool_name: 'ask_user', tool_input: { question: 'Which?' }, expires_at: null }] }];
  const resume = (id: string, body?: object) => api.app.inject({ method: 'POST', url: `/v1/runs/${id}/resume`, ...asked(keysOf.alpha, body) });

  test('shows the question, refuses a resume without an answer or with a picture, and takes one with', async () => {
    const id = await createdRun(api);
    await api.work(id, asks);
    const shown = await api.app.inject({ method: 'GET', url: `/v1/runs/${id}`, ...asked(keysOf.alpha) });
    expect(shown.json()).toMatchObject({ status: 'paused', pause_reason: 'input', pending: [{ kind: 'input', tool_use_id: 'q', tool_input: { question: 'Which?' } }] });
    for (const body of [undefined, {}, { input: [{ type: 'image', media_type: 'image/png', data: 'AAAA' }] }]) {
      const answer = await resume(id, body);
      expect([answer.statusCode, answer.json().code, answer.json().errors[0].path]).toEqual([422, 'invalid_request', 'input']);
    }
    expect((await resume(id, { input: 'The red one.' })).statusCode).toBe(202);
  });
});
