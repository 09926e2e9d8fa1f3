/** Kind 10 and R33: models that go round in circles, and the host's own counting. */
import { reply, text, tool, type ChatBody, type RecordedRequest, type ScriptedReply } from '@treadle/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ofType, play, type Played } from './general-checks.ts';
import { startCases, type Cases } from './stage.ts';
import { resultsOf } from './wire.ts';

let cases: Cases;
beforeAll(async () => {
  cases = await startCases({ models: { small: { price: { input_per_mtok: 10_000, output_per_mtok: 0 } } } });
  await cases.worker();
});
afterAll(async () => { await cases.stop(); });

/** Requests that ask for the summary at a limit have a reserve of their own, and are no turns. */
const isSummary = (request: RecordedRequest): boolean => String(request.body?.messages?.at(-1)?.content).startsWith('The limit of this run is reached');
const turns = ({ requests }: Played): RecordedRequest[] => requests.filter((request) => !isSummary(request));
/** Asks for another tool each time, with known costs; at the limit it sums up. */
const endless = (usage = { prompt: 100, output: 10 }) => (body: ChatBody, count: number): ScriptedReply =>
  body['tools'] === undefined ? reply({ text: 'It went on and on.', usage }) : reply({ calls: [{ id: `c${count}`, name: 't__search', args: { q: `word ${String.fromCharCode(97 + count)}` } }], usage });

describe.concurrent('circles', () => {
  test('C47: the same call again and again gets one warning, then the end', async () => {
    const played = await play(cases, 'C47', (_, count) => tool(`fresh_${count}`, 't__search', { q: 'x' }));
    expect(played.run).toMatchObject({ status: 'failed', stop_reason: 'loop_detected' });
    expect(played.requests.length).toBeLessThanOrEqual(4 + 2);
    expect(ofType(played.events, 'validation_error').filter((event) => event.validator_name === 'loop')).toHaveLength(1);
    expect(played.live.starts().length).toBeLessThanOrEqual(5);
  });

  test('R33: two calls in alternation are a circle too', async () => {
    const played = await play(cases, 'R33 alternating', (_, count) => tool(`fresh_${count}`, 't__search', { q: count % 2 === 0 ? 'x' : 'y' }));
    expect(played.run).toMatchObject({ status: 'failed', stop_reason: 'loop_detected' });
    expect(played.requests.length).toBeLessThanOrEqual(2 * 4 + 4);
  });

  test('C47: a model that heeds the warning goes on', async () => {
    const played = await play(cases, 'C47 heeds', (_, count) => count < 4 ? tool(`c${count}`, 't__search', { q: 'x' }) : text('nothing there'));
    expect(played.run).toMatchObject({ status: 'completed', answer: 'nothing there', tool_calls: 4 });
  });

  test('C48: a name that no tool has gets an error that lists the names, and the right one works', async () => {
    const { run, requests, events, live } = await play(cases, 'C48', [tool('c1', 't__serch', {}), tool('c2', 't__search', { q: 'x' }), text('ok')]);
    expect(run).toMatchObject({ status: 'completed', answer: 'ok' });
    expect(ofType(events, 'tool_result')[0]).toMatchObject({ tool_use_id: 'c1', is_error: true });
    expect(resultsOf(requests[1])[0]!.content).toMatch(/t__serch[^]*t__search/);
    expect(live.starts().map((line) => line.tool_use_id)).toEqual(['c2']);
  });

  test('C48: ten of them in a row do not happen', async () => {
    const { run, requests, live } = await play(cases, 'C48 on and on', (_, count) => tool(`c${count}`, `invented_${count}`, {}));
    expect(run).toMatchObject({ status: 'failed', stop_reason: 'invalid_tool_calls' });
    expect(requests).toHaveLength(5);
    expect(live.starts()).toEqual([]);
  });

  test('C49: empty replies without end are ended, and every token is in the record', async () => {
    const usage = { prompt: 137, output: 3 };
    const { run, requests } = await play(cases, 'C49', () => reply({ text: ' ', usage }), { limits: { max_turns: 10, max_total_tokens: 5000 } });
    expect(run).toMatchObject({ status: 'failed', stop_reason: 'empty_answer' });
    expect(requests.length).toBeLessThanOrEqual(10);
    expect(spent(run)).toBe(requests.length * (usage.prompt + usage.output));
  });

  test('C49: with more patience than money, the budget ends them', async () => {
    const { run, requests } = await play(cases, 'C49 patient', () => reply({ usage: { prompt: 600, output: 0 } }), { agent: 'tester', limits: { max_total_tokens: 1000, max_turns: 10 } });
    expect(run).toMatchObject({ status: 'expired', stop_reason: 'token_budget' });
    expect(requests).toHaveLength(2);
    expect(spent(run)).toBe(1200);
  });
});

function spent(run: Played['run']): number {
  const { input_tokens, output_tokens, wasted_tokens } = run['usage'] as Record<string, number>;
  return input_tokens! + output_tokens! + wasted_tokens!;
}

describe.concurrent('budgets', () => {
  test('R33: of turns', async () => {
    const played = await play(cases, 'R33 turns', endless(), { limits: { max_turns: 4 } });
    expect(played.run).toMatchObject({ status: 'expired', stop_reason: 'max_turns', turn_number: 4, partial: { iterations: 4, summary: 'It went on and on.' } });
    expect(turns(played)).toHaveLength(4);
    expect(played.requests).toHaveLength(5);
    expect(spent(played.run)).toBe(550);
  });

  test('R33: of calls; a batch that does not fit is not begun at all', async () => {
    const pairs = (body: ChatBody, count: number): ScriptedReply => body['tools'] === undefined ? text('summed up')
      : reply({ calls: [0, 1].map((index) => ({ id: `c${count}_${index}`, name: 't__search', args: { q: `${'abcdef'[count]!}${index}` } })) });
    const played = await play(cases, 'R33 calls', pairs, { limits: { tool_budget: 5 } });
    expect(played.run).toMatchObject({ status: 'expired', stop_reason: 'tool_budget' });
    expect(played.live.starts()).toHaveLength(4);
    expect(ofType(played.events, 'tool_result').slice(-2).map((event) => event.outcome)).toEqual(['not_started', 'not_started']);
  });

  test('R33: of no calls at all', async () => {
    const played = await play(cases, 'R33 no calls', endless(), { limits: { tool_budget: 0 } });
    expect(played.run).toMatchObject({ status: 'expired', stop_reason: 'tool_budget' });
    expect(played.live.starts()).toEqual([]);
  });

  test('R33: of tokens', async () => {
    const played = await play(cases, 'R33 tokens', endless(), { limits: { max_total_tokens: 500 } });
    expect(played.run).toMatchObject({ status: 'expired', stop_reason: 'token_budget' });
    // The reply that passes the limit was paid for; nothing is asked after it, and its call is not begun.
    expect(played.requests).toHaveLength(5);
    expect(played.live.starts()).toHaveLength(4);
    expect(spent(played.run)).toBe(550);
  });

  test('R33: of money', async () => {
    const played = await play(cases, 'R33 money', endless({ prompt: 1000, output: 10 }), { limits: { max_cost_usd: 25 } });
    expect(played.run).toMatchObject({ status: 'expired', stop_reason: 'cost_budget', usage: { cost_usd: 30 } });
    expect(played.requests).toHaveLength(3);
  });

  test('R33: of time, in one turn', async () => {
    const played = await play(cases, 'R33 turn time', [tool('c1', 't__keyed_note', { v: 'x', ms: 60_000 })], { limits: { turn_timeout_s: 1 } });
    expect(played.run).toMatchObject({ status: 'failed', stop_reason: 'turn_timeout' });
    expect(Date.parse(played.run.ended_at!) - Date.parse(played.run.started_at!)).toBeLessThan(4000);
  });

  test('R33: of time, over turns', async () => {
    const naps = (body: ChatBody, count: number): ScriptedReply => body['tools'] === undefined ? text('tired') : tool(`c${count}`, 't__keyed_note', { v: 'abcdefghijkl'[count], ms: 400 });
    const played = await play(cases, 'R33 session time', naps, { limits: { session_timeout_s: 1.5 } });
    expect(played.run).toMatchObject({ status: 'expired', stop_reason: 'session_timeout', partial: { summary: 'tired' } });
    expect(played.live.starts().length).toBeLessThanOrEqual(5);
    expect(played.live.starts().length).toBeGreaterThanOrEqual(3);
  });

  test('R33: what a run asks for above its agent is refused', async () => {
    await expect(cases.begin('R33 greedy', [], { limits: { max_turns: 51 } })).rejects.toMatchObject({ status: 422, code: 'limit_above_maximum' });
  });
});
