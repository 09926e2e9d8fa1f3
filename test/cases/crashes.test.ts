/** Kinds 1 and 2 over crashes: a worker is killed with SIGKILL at a chosen moment, and another one goes on. */
import { reply, text, tool, type ChatBody, type RecordedRequest, type ScriptedReply } from '@treadle/testkit';
import type { RunEvent } from '@treadle/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until, type Role } from '../e2e/processes.ts';
import { finish, ofType, play, type Played } from './general-checks.ts';
import { startCases, type Cases, type LiveRun, type Script } from './stage.ts';
import { wires } from './speech.ts';
import { messagesOf, resultCount, resultsOf } from './wire.ts';

let cases: Cases;
let worker: Role;
beforeAll(async () => {
  // Killing again and again is the test's doing; isolating poison is tested elsewhere.
  cases = await startCases({ env: { TREADLE_POISON_LIMIT: '20' }, tools: { 't/note': { effect: 'once', parallel: 'serial' } } });
  worker = await cases.worker();
});
afterAll(async () => { await cases.stop(); });

async function beginAll(count: number, label: string, script: Script, request: Parameters<Cases['begin']>[2] = {}): Promise<LiveRun[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => cases.begin(`${label} ${index}`, script, { wire: wires[index % wires.length]!, ...request })));
}

/** Kills the worker and starts another one. */
async function crash(): Promise<void> {
  await cases.kill(worker);
  worker = await cases.worker();
}

async function finishAll(live: readonly LiveRun[]): Promise<Played[]> {
  const played: Played[] = [];
  for (const each of live) played.push(await finish(cases, each, 40_000));
  return played;
}

const takenOver = (all: readonly Played[]): number => all.filter(({ events }) => ofType(events, 'turn_start').some((event) => event.attempt > 1)).length;
/** Tools whose calls began more than once under one id. */
const startedTwice = (live: LiveRun): unknown[] => {
  const ids = live.starts().map((line) => line.tool_use_id);
  return ids.filter((id, index) => ids.indexOf(id) !== index);
};

describe('a crash in the middle of a turn', () => {
  const points: readonly [string, (event: RunEvent) => boolean][] = [
    ['behind the call', (event) => event.type === 'tool_use'],
    ['behind the result', (event) => event.type === 'tool_result'],
    ['behind the end of the turn', (event) => event.type === 'turn_end'],
    ['behind the next request', (event) => event.type === 'model_request' && event.turn_number === 2],
  ];

  test.each(points)('C06: %s leaves a log that folds, and one result for each call', async (where, point) => {
    // Slow enough that whatever follows the point is still under way when the kill comes.
    const delivery = { delayMs: 100 };
    const script = (body: ChatBody): ScriptedReply => resultCount(body) < 2
      ? reply({ calls: [{ id: null, name: 't__note', args: { v: String(resultCount(body)), ms: 150 } }] }, delivery) : text('done', delivery);
    const live = await beginAll(12, `C06 ${where}`, script);
    await until('the point is reached', () => live.filter((each) => each.seen.some(point)).length >= 3, 10_000);
    await crash();
    const all = await finishAll(live);
    for (const { run, live: each } of all) {
      expect(run).toMatchObject({ status: 'completed', answer: 'done', tool_calls: 2 });
      expect(startedTwice(each)).toEqual([]);
    }
    expect(takenOver(all)).toBeGreaterThan(0);
  }, 60_000);

  test('C07: with a tool under way gives its call one result: unknown where it may happen once, the real one where it takes a key', async () => {
    const script = (name: string) => (body: ChatBody): ScriptedReply => resultCount(body) === 0 ? tool('c1', name, { v: '1', ms: 900 }) : text('done');
    const once = await cases.begin('C07 once', script('t__note'), { wire: 'anthropic' });
    const keyed = await cases.begin('C07 keyed', script('t__keyed_note'), { wire: 'openai' });
    await until('both tools have begun', () => once.starts().length === 1 && keyed.starts().length === 1);
    await crash();
    await cases.stage.client.steer(once.id, 'What happened?');
    const [played, again] = await finishAll([once, keyed]);
    expect(ofType(played!.events, 'tool_result')).toMatchObject([{ tool_use_id: 'c1', outcome: 'unknown', is_error: true }]);
    expect(once.starts()).toHaveLength(1);
    const last = played!.requests.at(-1);
    expect(resultsOf(last)).toHaveLength(1);
    expect(messagesOf(last).filter((message) => message.content.includes('What happened?'))).toHaveLength(1);
    expect(ofType(again!.events, 'tool_result')).toMatchObject([{ tool_use_id: 'c1', content: 'noted 1', is_error: false }]);
    expect(keyed.starts()).toHaveLength(2);
    expect(new Set(keyed.starts().map((line) => line.idempotency_key)).size).toBe(1);
    expect(keyed.starts().map((line) => line.epoch)[1]).toBeGreaterThan(keyed.starts()[0]!.epoch!);
    for (const { run, requests, wire } of [{ ...played!, wire: 'anthropic' as const }, { ...again!, wire: 'openai' as const }]) {
      expect(run).toMatchObject({ status: 'completed', answer: 'done' });
      expect(requests).toHaveLength(2);
      const followUp = await play(cases, `follow-up of ${run.id}`, [text('as I said')], { wire, session_id: String(run['session_id']) });
      expect(followUp.run).toMatchObject({ status: 'completed', answer: 'as I said', session_id: run['session_id'] });
      expect(resultsOf(followUp.requests[0])).toEqual(resultsOf(requests.at(-1)));
    }
  }, 60_000);

  test('C11: with the tool done and its result not recorded does not do it again, with ids that the host made', async () => {
    const runs = 50;
    const script = (body: ChatBody): ScriptedReply => resultCount(body) === 0 ? tool(null, 't__note', { v: '1', ms: 1500 }) : text('done');
    const live = await beginAll(runs, 'C11', script, { wire: 'ollama' });
    const lines = (phase: string): number => cases.ledger().filter((line) => line.phase === phase && live.some((each) => each.id === line.run_id)).length;
    await until('all tools have begun', () => lines('start') === runs);
    expect(lines('end')).toBe(0);
    // Frozen, the worker cannot read what the tools answer; so their effects are there and no result is.
    worker.kill('SIGSTOP');
    await until('all tools have ended', () => lines('end') === runs);
    await crash();
    const all = await finishAll(live);
    for (const { run, events, requests, live: each } of all) {
      expect(run).toMatchObject({ status: 'completed', answer: 'done' });
      expect(each.starts()).toHaveLength(1);
      expect(requests).toHaveLength(2);
      expect(ofType(events, 'tool_result')).toMatchObject([{ outcome: 'unknown' }]);
      expect(ofType(events, 'tool_use')[0]!.tool_use_id).toBe(ofType(all[0]!.events, 'tool_use')[0]!.tool_use_id);
    }
    expect(takenOver(all)).toBe(runs);
  }, 60_000);
});

describe('R33: budgets hold over crashes', () => {
  const usage = { prompt: 100, output: 10 };
  const isSummary = (request: RecordedRequest): boolean => request.body?.['tools'] === undefined;
  const endless = (body: ChatBody): ScriptedReply => body['tools'] === undefined ? reply({ text: 'summed up', usage })
    : reply({ calls: [{ id: null, name: 't__note', args: { v: `word ${String.fromCharCode(97 + resultCount(body))}`, ms: 250 } }], usage }, { delayMs: 100 });

  test('of turns, calls and tokens, with two crashes on the way', async () => {
    const limited = { turns: { max_turns: 6 }, calls: { tool_budget: 5 }, tokens: { max_total_tokens: 600 } };
    const live = new Map<string, LiveRun[]>();
    for (const [name, limits] of Object.entries(limited)) live.set(name, await beginAll(4, `R33 ${name}`, endless, { wire: 'ollama', limits }));
    const every = [...live.values()].flat();
    for (const least of [2, 4]) {
      await until(`${least} calls have begun`, () => every.some((each) => each.starts().length >= least), 15_000);
      await crash();
    }
    const crashes = 2;
    const reason: Record<string, string> = { turns: 'max_turns', calls: 'tool_budget', tokens: 'token_budget' };
    const most: Record<string, { requests: number; starts: number }> = { turns: { requests: 6, starts: 6 }, calls: { requests: 6, starts: 5 }, tokens: { requests: 6, starts: 5 } };
    const all: Played[] = [];
    for (const [name, runs] of live) {
      for (const played of await finishAll(runs)) {
        all.push(played);
        const asked = played.requests.filter((request) => !isSummary(request)).length;
        expect(played.run, name).toMatchObject({ status: 'expired', stop_reason: reason[name] });
        expect(played.live.starts().length, name).toBeLessThanOrEqual(most[name]!.starts);
        expect(startedTwice(played.live), name).toEqual([]);
        // A reply that was lost with its worker is asked for again: one attempt more for each crash, never one turn more.
        expect(asked, name).toBeLessThanOrEqual(most[name]!.requests + crashes);
        expect(played.run.turn_number, name).toBeLessThanOrEqual(most[name]!.requests);
        const { input_tokens, output_tokens } = played.run.usage;
        expect(input_tokens + output_tokens, name).toBeLessThanOrEqual(7 * (usage.prompt + usage.output));
      }
    }
    expect(takenOver(all)).toBeGreaterThan(0);
  }, 90_000);
});
