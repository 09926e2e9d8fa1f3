/** Kind 3: arguments as servers really send them. */
import { text, tool, type ScriptedReply } from '@treadle/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ofType, play } from './general-checks.ts';
import { startCases, type Cases } from './stage.ts';
import { chunks, delta, doneLine, lines, said, usageChunk, wires } from './speech.ts';
import { callsOf, resultsOf } from './wire.ts';

let cases: Cases;
beforeAll(async () => {
  cases = await startCases();
  await cases.worker();
});
afterAll(async () => { await cases.stop(); });

describe.concurrent('arguments', () => {
  test('C14: cut JSON is not executed; the model is told, and its next try is', async () => {
    const { run, requests, events, live } = await play(cases, 'C14', [
      tool('c1', 't__write_file', '{"path":"a.txt","text":"hel'), tool('c2', 't__write_file', { path: 'a.txt', text: 'hello' }), text('written')], { wire: 'openai' });
    expect(run).toMatchObject({ status: 'completed', answer: 'written' });
    expect(live.starts('write_file').map((line) => line.tool_use_id)).toEqual(['c2']);
    expect(ofType(events, 'tool_result')[0]).toMatchObject({ tool_use_id: 'c1', is_error: true, content: expect.stringContaining('not valid JSON') as string });
    expect(resultsOf(requests[1])[0]!.content).toMatch(/^ERROR: /);
    expect(callsOf(requests[2])[0]).toEqual({ id: 'c1', name: 't__write_file', args: {} });
  });

  const nothing: readonly [string, unknown][] = [['an empty string', ''], ['null', null], ['no field', undefined]];
  test.each(wires.flatMap((wire) => nothing.map(([words, args]) => [words, wire, args] as const)))('C15: %s on %s counts as {} where a tool needs nothing', async (words, wire, args) => {
    const { run, requests, live } = await play(cases, `C15 ${wire} ${words}`, [tool('c1', 't__list_items', args), text('ok')], { wire });
    expect(run.status).toBe('completed');
    expect(live.starts('list_items').map((line) => line.input)).toEqual([{}]);
    expect(callsOf(requests[1])[0]!.args).toEqual({});
  });

  test.each([
    ['as text', 'openai', ['null', '5', '"text"', '[1]']],
    ['as text', 'anthropic', ['null', '5', '"text"', '[1]']],
    ['as values', 'ollama', [null, 5, 'text', [1]]],
  ] as const)('C16: what is no object is told to the model and never executed, %s on %s', async (words, wire, values) => {
    const wrong = values.map((args, index) => tool(`c${index}`, 't__weather', args));
    const { run, events, live } = await play(cases, `C16 ${words} ${wire}`, [...wrong, text('I give up')], { wire });
    expect(run).toMatchObject({ status: 'completed', answer: 'I give up', tool_calls: 4 });
    expect(live.starts()).toEqual([]);
    expect(ofType(events, 'tool_result').map((event) => event.is_error)).toEqual([true, true, true, true]);
  });

  test('C16: a model that goes on so is stopped by the limit of invalid calls', async () => {
    const { run, requests, live } = await play(cases, 'C16 on and on', (_, count) => tool(`c${count}`, 't__weather', String(count)), { wire: 'openai' });
    expect(run).toMatchObject({ status: 'failed', stop_reason: 'invalid_tool_calls' });
    expect(requests).toHaveLength(5);
    expect(live.starts()).toEqual([]);
  });

  test.each(['openai', 'anthropic'] as const)('C16: a number that would become another one is told to the model and never executed, on %s', async (wire) => {
    const { run, requests, live } = await play(cases, `C16 number ${wire}`, [tool('c1', 't__pair', '{"a":9007199254740993,"b":1}'), tool('c2', 't__pair', { a: 1, b: 2 }), text('ok')], { wire });
    expect(run).toMatchObject({ status: 'completed', answer: 'ok' });
    expect(live.starts('pair').map((line) => line.input)).toEqual([{ a: 1, b: 2 }]);
    expect(resultsOf(requests[1])[0]!.content).toContain('The number 9007199254740993 is too large to be passed on as it is.');
  });

  test('C17: JSON text of JSON text is unwrapped, and replayed encoded once', async () => {
    const once = JSON.stringify({ a: 3, b: 4 });
    const { run, requests, live } = await play(cases, 'C17', [tool('c1', 't__pair', once), tool('c2', 't__pair', JSON.stringify(once)), text('ok')], { wire: 'openai' });
    expect(run.status).toBe('completed');
    expect(live.starts('pair').map((line) => line.input)).toEqual([{ a: 3, b: 4 }, { a: 3, b: 4 }]);
    expect(callsOf(requests[2]).map((call) => call.args)).toEqual([{ a: 3, b: 4 }, { a: 3, b: 4 }]);
    expect(requests[2]!.rawBody).not.toContain('[object Object]');
  });

  const dated = (id: string, args: unknown): object => ({ tool_calls: [{ index: 0, id, type: 'function', function: { name: 't__run_command', arguments: args } }] });
  test.each([
    ['openai', chunks(delta(dated('c1', { command: 'date' })), delta({}, 'tool_calls'), usageChunk, '[DONE]'), tool('c2', 't__run_command', { command: 'date' })],
    ['ollama', tool('c1', 't__run_command', { command: 'date' }), tool('c2', 't__run_command', '{"command":"date"}')],
  ] as const)('C18: on %s an object and its JSON text come to the same', async (wire, first, second) => {
    const { requests, live } = await play(cases, `C18 ${wire}`, [first, second, text('ok')], { wire });
    expect(live.starts('run_command').map((line) => line.input)).toEqual([{ command: 'date' }, { command: 'date' }]);
    expect(callsOf(requests[2])).toEqual(['c1', 'c2'].map((id) => ({ id, name: 't__run_command', args: { command: 'date' } })));
  });

  test('C19: a name sent with every piece, arguments that are cumulative, and two ends are one call', async () => {
    const piece = (args: string): object => delta({ tool_calls: [{ index: 0, id: 'c1', type: 'function', function: { name: 't__weather', arguments: args } }] });
    const { run, requests, live } = await play(cases, 'C19 pieces', [
      chunks(piece('{"city":'), piece('{"city":"k"}'), piece('{"city":"k"}'), delta({}, 'tool_calls'), delta({}, 'tool_calls'), usageChunk, '[DONE]'), text('ok')], { wire: 'openai' });
    expect(run).toMatchObject({ status: 'completed', answer: 'ok', tool_calls: 1 });
    expect(live.starts('weather').map((line) => line.input)).toEqual([{ city: 'k' }]);
    expect(callsOf(requests[1])).toEqual([{ id: 'c1', name: 't__weather', args: { city: 'k' } }]);
  });

  test('C19: a last line that is sent twice, and what follows it, changes nothing', async () => {
    const call = said({ content: '', tool_calls: [{ id: 'c1', function: { name: 't__weather', arguments: { city: 'k' } } }] });
    const { run, live } = await play(cases, 'C19', [lines(call, doneLine, doneLine, call), text('ok')]);
    expect(run).toMatchObject({ status: 'completed', tool_calls: 1, usage: { input_tokens: 20 + countedPrompt('C19') } });
    expect(live.starts()).toHaveLength(1);
  });
});

/** Tokens that the fake counted for the label's second request. */
function countedPrompt(label: string): number {
  const second = cases.model.requests.filter((request) => request.rawBody.includes(`[[${label}]]`))[1];
  return Math.ceil(Buffer.byteLength(second!.rawBody) / 4);
}

describe.concurrent('a history with large arguments', () => {
  test('C20: stays valid through compaction, and within the window', async () => {
    const long = 'é'.repeat(3000);
    const script = (_: unknown, count: number): ScriptedReply => {
      if (count === 0) return tool('big', 't__write_file', { path: 'a.txt', text: long });
      return count <= 10 ? tool(`c${count}`, 't__page', { n: count, bytes: 900 }) : text('done');
    };
    const small = await smallWindow();
    try {
      const all = await Promise.all(wires.map((wire) => play(small, `C20 ${wire}`, script, { wire })));
      for (const { run, requests, events } of all) {
        expect(run).toMatchObject({ status: 'completed', answer: 'done', tool_calls: 11 });
        expect(ofType(events, 'compaction').length).toBeGreaterThan(0);
        for (const request of requests.slice(1)) {
          for (const call of callsOf(request)) expect(call.args).toBeTypeOf('object');
          expect(Buffer.byteLength(request.rawBody) / 4).toBeLessThan(4096);
        }
      }
    } finally {
      await small.stop();
    }
  });
});

async function smallWindow(): Promise<Cases> {
  const small = await startCases({ models: { small: { context_window: 4096, max_output_tokens: 512 } }, agents: { tester: { tools: ['t/write_file', 't/page'] } } });
  await small.worker();
  return small;
}
