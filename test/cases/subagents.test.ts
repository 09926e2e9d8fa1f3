/** Kind 11 where a run has started others, and questions to a person: cancel, pause and resume reach everybody, nothing happens twice. */
import { ApiError, type Run, type RunTree } from '@treadle/client';
import type { RunEvent } from '@treadle/core';
import { reply, text, tool, type ScriptedReply } from '@treadle/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until, type Role } from '../e2e/processes.ts';
import { finish, ofType, type Played } from './general-checks.ts';
import { startCases, type Cases, type LiveRun } from './stage.ts';
import { resultCount, resultsOf } from './wire.ts';

let cases: Cases;
let worker: Role;
beforeAll(async () => {
  cases = await startCases({
    env: { TREADLE_POISON_LIMIT: '20' },
    agents: {
      boss: {
        tools: ['t/*', 'spawn_agent', 'ask_user'], subagents: ['boss', 'helper'],
        limits: { max_total_tokens: { default: null, max: null }, max_children: { default: 3, max: 10 }, max_turns: { default: 50, max: 50 }, tool_budget: { default: 200, max: 200 } },
      },
      helper: { description: 'Helps.' },
    },
    tools: { 't/note': { effect: 'once', parallel: 'serial' } },
  });
  worker = await cases.worker();
});
afterAll(async () => { await cases.stop(); });

const spawn = (id: string, label: string, more: object = {}) => ({ id, name: 'spawn_agent', args: { agent: 'helper', input: `Do it. [[${label}]]`, ...more } });
const spawns = (...calls: readonly ReturnType<typeof spawn>[]): ScriptedReply => reply({ calls });
const started = (events: readonly RunEvent[]): string[] => ofType(events, 'child_run').filter((event) => event.status === 'queued').map((event) => event.child_run_id);
const childrenOf = (live: LiveRun, count: number): Promise<string[]> => until('the children are started', () => started(live.seen).length === count && started(live.seen));
const run = (id: string): Promise<Run> => cases.stage.client.run(id);
const reaches = (id: string, status: string, reason?: string): Promise<Run> => until(`${id} is ${status}`, async () => {
  // A start is in the log a moment before the run is there.
  const now = await run(id).catch((error: unknown) => { if (error instanceof ApiError && error.status === 404) return null; throw error; });
  return now !== null && now.status === status && (reason === undefined || now['pause_reason'] === reason) && now;
});

/** A worker is killed and another one takes its place. */
async function crash(): Promise<void> {
  await cases.kill(worker);
  worker = await cases.worker();
}

describe('a run that starts others', () => {
  test('waits for all of them without a worker, gets their answers in the order of its calls, and counts what they used', async () => {
    cases.say('A1', [text('one', { delayMs: 300 })]);
    cases.say('A2', [tool(null, 't__note', { v: 'x', ms: 0 }), text('two')]);
    const live = await cases.begin('A', [spawns(spawn('s1', 'A1'), spawn('s2', 'A2')), text('both')], { agent: 'boss' });
    const ids = await childrenOf(live, 2);
    expect(await reaches(live.id, 'paused', 'children')).toMatchObject({ pending: expect.arrayContaining([expect.objectContaining({ kind: 'child_run', child_run_id: ids[0] })]) as unknown });
    const { run: parent, events, requests } = await finish(cases, live);
    expect(parent).toMatchObject({ status: 'completed', answer: 'both', tool_calls: 3 });
    expect(resultsOf(requests.at(-1)).map((result) => result.content)).toEqual([
      `[Answer of the sub-agent helper, run ${ids[0]!}]\none`, `[Answer of the sub-agent helper, run ${ids[1]!}]\ntwo`]);
    expect(ofType(events, 'child_run').map((event) => event.status).sort()).toEqual(['completed', 'completed', 'queued', 'queued']);
    const children = await Promise.all(ids.map(async (id, index) => (await finish(cases, cases.join(`A${index + 1}`, id))).run));
    for (const child of children) expect(child).toMatchObject({ parent_run_id: live.id, status: 'completed', agent: 'helper' });
    const own = ofType(events, 'turn_end').reduce((sum, { usage }) => sum + usage.input_tokens, 0);
    expect(parent.usage.input_tokens).toBe(own + children.reduce((sum, child) => sum + child.usage.input_tokens, 0));
    const tree = await cases.stage.client.tree(live.id);
    expect(shape(tree)).toEqual([live.id, [[ids[0], []], [ids[1], []]]]);
    expect(tree.children.map((child) => child.tool_use_id)).toEqual(['s1', 's2']);
    // A tree, a shard.
    expect(new Set([live.id, ...ids].map((id) => id.slice(-2))).size).toBe(1);
  }, 60_000);

  test('goes on at once with the id of one that it does not wait for, and hears of its end', async () => {
    cases.say('B1', [text('late', { delayMs: 600 })]);
    const live = await cases.begin('B', [spawns(spawn('s1', 'B1', { wait: false })), tool(null, 't__note', { v: 'y', ms: 1500 }), text('done')], { agent: 'boss' });
    const [id] = await childrenOf(live, 1);
    const { run: parent, events } = await finish(cases, live);
    expect(parent).toMatchObject({ status: 'completed', answer: 'done', tool_calls: 2 });
    expect(ofType(events, 'tool_result')[0]).toMatchObject({ content: id, is_error: false });
    expect(events.filter((event) => event.type === 'state_change' && event.new === 'paused')).toEqual([]);
    expect(ofType(events, 'child_run').map((event) => event.status)).toEqual(['queued', 'completed']);
  }, 60_000);

  test('survives the death of its worker while it waits, and while they start: each is there once', async () => {
    const all = await Promise.all(Array.from({ length: 8 }, async (_, index) => {
      cases.say(`D${index}-1`, () => text('one', { delayMs: 700 }));
      cases.say(`D${index}-2`, () => text('two', { delayMs: 1200 }));
      return cases.begin(`D${index}`, (body) => resultCount(body) === 0 ? spawns(spawn(`d${index}-1`, `D${index}-1`), spawn(`d${index}-2`, `D${index}-2`)) : text('both'), { agent: 'boss' });
    }));
    await until('some have started', () => all.filter((live) => started(live.seen).length > 0).length >= 2);
    await crash();
    await until('all wait or are over', () => all.every((live) => live.seen.some((event) => event.type === 'child_run')));
    await crash();
    const played: Played[] = [];
    for (const live of all) played.push(await finish(cases, live, 40_000));
    for (const { run: parent, events, live } of played) {
      expect(parent).toMatchObject({ status: 'completed', answer: 'both' });
      const tree = await cases.stage.client.tree(live.id);
      expect(tree.children.map((child) => [child.run.id, child.run.status])).toEqual(started(events).map((id) => [id, 'completed']));
      expect(started(events)).toHaveLength(2);
    }
    const page = await cases.stage.client.runs({ agent: 'helper', limit: '200' });
    expect(page.data.filter((child) => all.some((live) => live.id === child['parent_run_id']))).toHaveLength(16);
  }, 90_000);

  test('is told of failures as errors, and is not failed by them; beyond a limit nothing is started', async () => {
    cases.say('E1', [tool(null, 't__note', { v: 'z', ms: 20_000 })]);
    const live = await cases.begin('E', [
      reply({ calls: [spawn('s1', 'E1'), { id: 'ghost', name: 'spawn_agent', args: { agent: 'ghost', input: 'x' } }] }),
      spawns(spawn('s2', 'E2'), spawn('s3', 'E3'), spawn('s4', 'E4')),
      text('all failed'),
    ], { agent: 'boss', limits: { max_children: 1, tool_budget: 6 } });
    const [child] = await childrenOf(live, 1);
    await cases.stage.client.cancel(child!);
    const { run: parent, requests } = await finish(cases, live);
    expect(parent).toMatchObject({ status: 'completed', answer: 'all failed' });
    const [first, ghost] = resultsOf(requests[1]);
    expect(first!.content).toMatch(/has given no answer: cancelled \(interrupted\)/);
    expect(ghost!.content).toMatch(/agent/);
    for (const result of resultsOf(requests[2]).slice(-3)) expect(result.content).toContain('max_children');
    expect((await cases.stage.client.tree(live.id)).children).toHaveLength(1);
  }, 60_000);

  test('nests as deep as it may, each level with what the one above has left', async () => {
    const deeper = (label: string): ScriptedReply => spawns(spawn(`s-${label}`, label, { agent: 'boss' }));
    for (const [label, below] of [['F1', 'F2'], ['F2', 'F3']] as const) cases.say(label, [deeper(below), text(`${label} done`)]);
    const live = await cases.begin('F', [deeper('F1'), text('done')], { agent: 'boss', limits: { max_depth: 2, max_total_tokens: 100_000 } } as never);
    const { run: parent } = await finish(cases, live);
    expect(parent).toMatchObject({ status: 'completed', answer: 'done' });
    const tree = await cases.stage.client.tree(live.id);
    const [one] = tree.children;
    const [two] = one!.children;
    expect([one!.run.answer, two!.run.answer, two!.children]).toEqual(['F1 done', 'F2 done', []]);
    expect(resultsOf(cases.join('F2', two!.run.id).requests().at(-1))[0]!.content).toContain('max_depth');
    const budgets = [parent, one!.run, two!.run].map((each) => (each['limits'] as { max_total_tokens: number }).max_total_tokens);
    expect(budgets[1]).toBeLessThan(budgets[0]!);
    expect(budgets[2]).toBeLessThan(budgets[1]!);
    const used = [parent, one!.run, two!.run].map((each) => each.usage.input_tokens + each.usage.output_tokens);
    expect(used[0]).toBeGreaterThan(used[1]!);
    expect(used[1]).toBeGreaterThan(used[2]!);
  }, 60_000);
});

describe('what happens to a run happens to those that it has started', () => {
  test('C50: cancel reaches the sub-agent of a sub-agent, also when the worker that had them all is gone', async () => {
    cases.say('G1', [spawns(spawn('g', 'G1a', { agent: 'helper' })), text('never')]);
    cases.say('G1a', [tool('slow', 't__note', { v: 'g', ms: 30_000 })]);
    const live = await cases.begin('G', [spawns(spawn('s1', 'G1', { agent: 'boss' }))], { agent: 'boss' });
    const grandchild = await until('the grandchild runs its tool', () => cases.ledger().find((line) => line.phase === 'start' && line.input['v'] === 'g')?.run_id ?? false);
    await cases.kill(worker);
    await cases.stage.client.cancel(live.id);
    worker = await cases.worker();
    const { run: parent } = await finish(cases, live);
    expect(parent).toMatchObject({ status: 'cancelled', stop_reason: 'interrupted' });
    expect(await reaches(grandchild, 'cancelled')).toMatchObject({ stop_reason: 'interrupted' });
    const asked = cases.model.requests.length;
    const tree = await cases.stage.client.tree(live.id);
    expect(statuses(tree)).toEqual(['cancelled', 'cancelled', 'cancelled']);
    expect(cases.model.requests).toHaveLength(asked);
  }, 60_000);

  test('C50: a live cancel aborts the tool within seconds', async () => {
    cases.say('H1', [tool('slow', 't__note', { v: 'h', ms: 30_000 })]);
    const live = await cases.begin('H', [spawns(spawn('s1', 'H1'))], { agent: 'boss' });
    await until('the tool runs', () => cases.ledger().some((line) => line.phase === 'start' && line.input['v'] === 'h'));
    await cases.stage.client.cancel(live.id);
    await finish(cases, live);
    await until('the tool has heard of it', () => cases.ledger().some((line) => line.phase === 'cancelled' && line.input['v'] === 'h'), 10_000);
    const [child] = started(live.seen);
    expect(await reaches(child!, 'cancelled')).toMatchObject({ parent_run_id: live.id });
  }, 60_000);

  test('a pause reaches them, and a resume resumes them', async () => {
    cases.say('I1', [tool('slow', 't__note', { v: 'i', ms: 1200 }), text('child done')]);
    const live = await cases.begin('I', [spawns(spawn('s1', 'I1')), text('done')], { agent: 'boss' });
    const [child] = await childrenOf(live, 1);
    await until('the tool runs', () => cases.ledger().some((line) => line.phase === 'start' && line.input['v'] === 'i'));
    await cases.stage.client.pause(live.id);
    await reaches(live.id, 'paused', 'requested');
    await reaches(child!, 'paused', 'requested');
    await crash();
    await cases.stage.client.resume(live.id);
    const { run: parent } = await finish(cases, live);
    expect(parent).toMatchObject({ status: 'completed', answer: 'done' });
    expect(await run(child!)).toMatchObject({ status: 'completed', answer: 'child done' });
    expect(cases.ledger().filter((line) => line.phase === 'start' && line.input['v'] === 'i')).toHaveLength(1);
  }, 60_000);

  test('C53: with all workers gone a waiting tree takes commands, and goes on when there is one again', async () => {
    cases.say('J1', () => text('child', { delayMs: 500 }));
    const live = await cases.begin('J', (body) => resultCount(body) === 0 ? spawns(spawn('s1', 'J1')) : text('done'), { agent: 'boss' });
    await reaches(live.id, 'paused', 'children');
    await cases.kill(worker);
    expect(await run(live.id)).toMatchObject({ status: 'paused', pause_reason: 'children' });
    await cases.stage.client.pause(live.id);
    await cases.stage.client.resume(live.id);
    worker = await cases.worker();
    expect((await finish(cases, live)).run).toMatchObject({ status: 'completed', answer: 'done' });
  }, 60_000);
});

describe('a question to a person', () => {
  test('C52: is asked behind the other calls of its reply, waits without a worker, and nothing before it is done again', async () => {
    const live = await cases.begin('K', [
      reply({ calls: [{ id: 'q', name: 'ask_user', args: { question: 'North or south?' } }, { id: 'n', name: 't__note', args: { v: 'k1', ms: 0 } }] }),
      tool('n2', 't__note', { v: 'k2', ms: 0 }), text('north it is'),
    ], { agent: 'boss' });
    expect(await reaches(live.id, 'paused', 'input')).toMatchObject({
      pending: [{ kind: 'input', tool_use_id: 'q', tool_name: 'ask_user', tool_input: { question: 'North or south?' } }] });
    await crash();
    await expect(cases.stage.client.resume(live.id)).rejects.toMatchObject({ status: 422, code: 'invalid_request', problems: [{ path: 'input' }] });
    await cases.stage.client.resume(live.id, { input: 'North.' });
    const { run: ended, requests, live: played } = await finish(cases, live);
    expect(ended).toMatchObject({ status: 'completed', answer: 'north it is' });
    expect(resultsOf(requests[1]).map((result) => result.content)).toEqual(['North.', 'noted k1']);
    expect(played.starts().map((line) => line.input['v'])).toEqual(['k1', 'k2']);
    expect(requests).toHaveLength(3);
  }, 60_000);

  test('of a sub-agent is answered there, and its parent goes on', async () => {
    cases.say('L1', [tool('q', 'ask_user', { question: 'Which?' }), text('the red one')]);
    const live = await cases.begin('L', [spawns(spawn('s1', 'L1', { agent: 'boss' })), text('done')], { agent: 'boss' });
    const [child] = await childrenOf(live, 1);
    await reaches(child!, 'paused', 'input');
    await reaches(live.id, 'paused', 'children');
    await cases.stage.client.resume(child!, { input: 'Red.' });
    expect((await finish(cases, live)).run).toMatchObject({ status: 'completed', answer: 'done' });
  }, 60_000);
});

type Shape = [string, Shape[]];
function shape(tree: RunTree): Shape {
  return [tree.run.id, tree.children.map(shape)];
}
function statuses(tree: RunTree): string[] {
  return [tree.run.status, ...tree.children.flatMap(statuses)];
}
