/** Kind 4: replies that hold nothing, only thoughts, or blanks; and servers that are loading. */
import { reply, text, tool } from '@treadle/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ofType, play } from './general-checks.ts';
import { startCases, type Cases } from './stage.ts';
import { block, chunks, delta, doneLine, events as blocks, lines, messageEnd, messageStart, said, usageChunk } from './speech.ts';
import { callsOf, messagesOf } from './wire.ts';

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

const call = { id: 'c1', type: 'function', function: { name: 't__list_items', arguments: '{}' } };
const use = { type: 'tool_use', id: 'c1', name: 't__list_items', input: {} };
/** A reply with a call and `content` beside it, as chat completions and Ollama write it. */
const beside = (rest: object) => chunks(delta({ role: 'assistant', ...rest }), delta({ ...rest, tool_calls: [{ index: 0, ...call }] }), delta({}, 'tool_calls'), usageChunk, '[DONE]');
const besideLine = (rest: object) => lines(said({ ...rest, tool_calls: [{ id: 'c1', function: { name: 't__list_items', arguments: {} } }] }), doneLine);
const empty = reply({ usage: { prompt: 10, output: 0 } });

describe.concurrent('an empty reply', () => {
  test.each([
    ['anthropic', 'an empty block', blocks(messageStart, ...block(0, { type: 'text', text: '' }), ...block(1, use), ...messageEnd('tool_use'))],
    ['anthropic', 'a block of blanks', blocks(messageStart, ...block(0, { type: 'text', text: '' }, { type: 'text_delta', text: '\n\n' }), ...block(1, use), ...messageEnd('tool_use'))],
    ['openai', 'an empty text', beside({ content: '' })], ['openai', 'null', beside({ content: null })], ['openai', 'no field', beside({})],
    ['ollama', 'an empty text', besideLine({ content: '' })], ['ollama', 'null', besideLine({ content: null })], ['ollama', 'no field', besideLine({})],
  ] as const)('C21: on %s a call beside %s is replayed without an empty text', async (wire, words, said) => {
    const { run, requests, events } = await play(cases, `C21 ${wire} ${words}`, [said, text('ok')], { wire });
    expect(run).toMatchObject({ status: 'completed', answer: 'ok' });
    expect(ofType(events, 'assistant_text').filter((event) => event.content === '')).toEqual([]);
    expect(callsOf(requests[1])).toEqual([{ id: 'c1', name: 't__list_items', args: {} }]);
  });

  test('C22: an empty end of a turn is asked again twice, then the run says so; no empty message is kept', async () => {
    const { run, requests, events } = await play(cases, 'C22', [tool('c1', 't__list_items', {}), empty, empty, empty], { wire: 'anthropic' });
    expect(run).toMatchObject({ status: 'failed', stop_reason: 'empty_answer' });
    expect(requests).toHaveLength(4);
    expect(ofType(events, 'error').map((event) => [event.error_type, event.action])).toEqual([['empty_response', 'reask'], ['empty_response', 'reask'], ['empty_response', 'fail']]);
    const followUp = await play(cases, 'C22 follow-up', [text('ok')], { wire: 'anthropic', session_id: String(run['session_id']) });
    expect(followUp.run).toMatchObject({ status: 'completed', answer: 'ok' });
    // The call and its result are still there, and no empty message is.
    expect(messagesOf(followUp.requests[0]).filter((message) => message.role === 'assistant')).toHaveLength(1);
    expect(messagesOf(followUp.requests[0]).every((message) => message.calls.length > 0 || message.content.trim() !== '')).toBe(true);
  });

  test('C22: one empty end in between is asked again, and the answer counts', async () => {
    const { run } = await play(cases, 'C22 once', [tool('c1', 't__list_items', {}), empty, text('two items')], { wire: 'anthropic' });
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
    const { run, requests, events } = await play(cases, 'C24', [reply({ text: 'Working on it \n', done_reason: 'length' }), text('and done.')], { wire: 'anthropic' });
    expect(run).toMatchObject({ status: 'completed', recoveries: { max_output_tokens: 1 } });
    expect(run.answer?.replaceAll(/\s+/g, ' ')).toBe('Working on it and done.');
    expect(messagesOf(requests[1]).map((message) => [message.role, message.content]).slice(2)).toEqual([['assistant', 'Working on it'], ['user', expect.any(String)]]);
    expect(ofType(events, 'assistant_text').find((event) => event.is_final)!.content).toBe('Working on it \n');
  });

  test('C24: a text of blanks alone is never sent', async () => {
    const { run, requests } = await play(cases, 'C24 blank', [reply({ text: ' \n ', done_reason: 'length' }), reply({ text: ' \n\t' }), text('done')], { wire: 'anthropic' });
    expect(run).toMatchObject({ status: 'completed', answer: 'done' });
    expect(requests.flatMap(messagesOf).every((message) => message.content.trim() !== '')).toBe(true);
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
