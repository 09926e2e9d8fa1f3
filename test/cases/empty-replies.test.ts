/** Kind 4: replies that hold nothing, only thoughts, or blanks; and servers that are loading. */
import { reply, text, tool } from '@treadle/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ofType, play } from './general-checks.ts';
import { startCases, type Cases } from './stage.ts';
import { doneLine, lines, messagesOf, said } from './wire.ts';

let cases: Cases;
beforeAll(async () => {
  cases = await startCases({
    models: { narrow: { context_window: 2048, max_output_tokens: 256 } }, chains: { narrow: ['narrow'] },
    agents: Object.fromEntries([['cramped', 340], ['tight', 150]].map(([name, times]) => [
      name, { chain: 'narrow', tools: ['t/page'], instructions: `You are asked to read pages. ${'Read carefully. '.repeat(Number(times))}` }])),
  });
  await cases.worker();
});
afterAll(async () => { await cases.stop(); });

const call = (rest: object): object => said({ ...rest, tool_calls: [{ id: 'c1', function: { name: 't__list_items', arguments: {} } }] });
const empty = reply({ usage: { prompt: 10, output: 0 } });

describe.concurrent('an empty reply', () => {
  test.each([['an empty text', { content: '' }], ['null', { content: null }], ['no field', {}]])('C21: a call beside %s is replayed without an empty text', async (words, rest) => {
    const { run, requests, events } = await play(cases, `C21 ${words}`, [lines(call(rest), doneLine), text('ok')]);
    expect(run).toMatchObject({ status: 'completed', answer: 'ok' });
    expect(ofType(events, 'assistant_text').filter((event) => event.content === '')).toEqual([]);
    expect(messagesOf(requests[1]).filter((message) => message['tool_calls'] === undefined && message.role !== 'tool').every((message) => String(message.content).trim() !== '')).toBe(true);
  });

  test('C22: an empty end of a turn is asked again twice, then the run says so; no empty message is kept', async () => {
    const { run, requests, events } = await play(cases, 'C22', [tool('c1', 't__list_items', {}), empty, empty, empty]);
    expect(run).toMatchObject({ status: 'failed', stop_reason: 'empty_answer' });
    expect(requests).toHaveLength(4);
    expect(ofType(events, 'error').map((event) => [event.error_type, event.action])).toEqual([['empty_response', 'reask'], ['empty_response', 'reask'], ['empty_response', 'fail']]);
    const followUp = await play(cases, 'C22 follow-up', [text('ok')], { session_id: String(run['session_id']) });
    expect(followUp.run).toMatchObject({ status: 'completed', answer: 'ok' });
    // The call and its result are still there, and no empty message is.
    expect(messagesOf(followUp.requests[0]).filter((message) => message.role === 'assistant')).toHaveLength(1);
    expect(messagesOf(followUp.requests[0]).every((message) => message['tool_calls'] !== undefined || String(message.content).trim() !== '')).toBe(true);
  });

  test('C22: one empty end in between is asked again, and the answer counts', async () => {
    const { run } = await play(cases, 'C22 once', [tool('c1', 't__list_items', {}), empty, text('two items')]);
    expect(run).toMatchObject({ status: 'completed', answer: 'two items' });
  });

  test('C23: thoughts without an answer are kept, but are none: asked again twice, then `empty_answer`', async () => {
    const { run, requests, events } = await play(cases, 'C23', () => reply({ thinking: 'The answer is 42', text: '' }));
    expect(run).toMatchObject({ status: 'failed', stop_reason: 'empty_answer', answer: null });
    expect(requests).toHaveLength(3);
    expect(ofType(events, 'assistant_thinking').map((event) => event.content)).toEqual(Array.from({ length: 3 }, () => 'The answer is 42'));
  });

  test('C23: thoughts within the text, in tags, do not keep a run from ending', async () => {
    const { run, requests } = await play(cases, 'C23 tags', () => text('<think>The answer is 42</think>'));
    expect(['completed', 'failed']).toContain(run.status);
    expect(requests.length).toBeLessThanOrEqual(4);
    expect(JSON.stringify([run.answer, run.stop_reason])).toMatch(/The answer is 42|empty_answer/);
  });
});

describe.concurrent('blanks', () => {
  test('C24: a text that ends in blanks when it is cut is continued without them on the wire', async () => {
    const { run, requests, events } = await play(cases, 'C24', [reply({ text: 'Working on it \n', done_reason: 'length' }), text('and done.')]);
    expect(run).toMatchObject({ status: 'completed', recoveries: { max_output_tokens: 1 } });
    expect(run.answer?.replaceAll(/\s+/g, ' ')).toBe('Working on it and done.');
    const assistant = messagesOf(requests[1]).filter((message) => message.role === 'assistant');
    expect(assistant.map((message) => message.content)).toEqual(['Working on it']);
    expect(ofType(events, 'assistant_text').find((event) => event.is_final)!.content).toBe('Working on it \n');
  });

  test('C24: a text of blanks alone is never sent', async () => {
    const { run, requests } = await play(cases, 'C24 blank', [reply({ text: ' \n ', done_reason: 'length' }), reply({ text: ' \n\t' }), text('done')]);
    expect(run).toMatchObject({ status: 'completed', answer: 'done' });
    expect(requests.flatMap(messagesOf).every((message) => String(message.content).trim() !== '')).toBe(true);
  });
});

describe.concurrent('a server that answers "load"', () => {
  const loading = lines({ message: { role: 'assistant', content: '' }, done: true, done_reason: 'load' });

  test('C25: is waited for, and never taken for an answer', async () => {
    const { run, requests, events } = await play(cases, 'C25 once', [loading, text('awake')]);
    expect(run).toMatchObject({ status: 'completed', answer: 'awake' });
    expect(ofType(events, 'error')).toMatchObject([{ error_type: 'overloaded', action: 'backoff' }]);
    expect(requests[1]!.at_ms - requests[0]!.at_ms).toBeGreaterThan(1900);
  });

  test('C25: is given up after the limit of errors', async () => {
    const { run, requests } = await play(cases, 'C25 always', () => loading, { limits: { max_consecutive_errors: 1 } });
    expect(run).toMatchObject({ status: 'failed', stop_reason: 'max_consecutive_errors', answer: null });
    expect(requests).toHaveLength(2);
  });

  test.each([
    // The case as it is written: the system message leaves hardly any room, so an honest end is right, too.
    ['cramped', /^(answered|context_exhausted)$/, 1], ['tight', /^answered$/, 6],
  ] as const)('C25: no request without a user message is ever sent, however little room there is: %s', async (agent, end, least) => {
    const { run, requests } = await play(cases, `C25 ${agent}`, (_, count) => count < 5 ? tool(`c${count}`, 't__page', { n: count, bytes: 6000 }) : text('read'), { agent });
    expect(run.stop_reason).toMatch(end);
    expect(requests.length).toBeGreaterThanOrEqual(least);
    for (const request of requests) expect(messagesOf(request).some((message) => message.role === 'user')).toBe(true);
  });
});
