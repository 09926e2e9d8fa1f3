/** Kind 2: which call is which, whatever ids the model gives, or does not give. */
import { refusal, reply, text, tool } from '@treadle/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ofType, play } from './general-checks.ts';
import { startCases, type Cases } from './stage.ts';
import { block, chunks, delta, doneLine, events, lines, messageEnd, messageStart, said, usageChunk, wires } from './speech.ts';
import { callsOf, resultCount, resultsOf } from './wire.ts';

let cases: Cases;
beforeAll(async () => {
  cases = await startCases({ models: { first: { provider: 'openai' }, second: { provider: 'anthropic' } }, chains: { two: ['first', 'second'] }, agents: { hopper: { chain: 'two' } } });
  await cases.worker();
});
afterAll(async () => { await cases.stop(); });

const legal = /^[a-zA-Z0-9_-]{1,64}$/;

describe.concurrent('an id', () => {
  test('C08: that comes again in a later turn names another call', async () => {
    const { run, requests, live } = await play(cases, 'C08', [tool('call_1', 't__note', { v: 'a' }), tool('call_1', 't__note', { v: 'b' }), text('ok')], { wire: 'openai' });
    expect(run).toMatchObject({ status: 'completed', answer: 'ok', tool_calls: 2 });
    expect(live.starts('note').map((line) => line.input['v'])).toEqual(['a', 'b']);
    const calls = callsOf(requests[2]);
    expect(calls[0]).toMatchObject({ id: 'call_1', args: { v: 'a' } });
    expect(new Set(calls.map((call) => call.id)).size).toBe(2);
    expect(resultsOf(requests[2])).toEqual(calls.map((call) => ({ id: call.id, content: `noted ${String((call.args as { v: string }).v)}` })));
    expect(new Set(live.starts().map((line) => line.idempotency_key)).size).toBe(2);
  });

  test.each(wires)('C09: that comes twice in one reply on %s becomes two, each call with its own result', async (wire) => {
    const { run, requests, events, live } = await play(cases, `C09 ${wire}`, [
      reply({ calls: [{ id: 'x', name: 't__note', args: { v: '1' } }, { id: 'x', name: 't__note', args: { v: '2' } }] }), text('ok')], { wire });
    expect(run.status).toBe('completed');
    expect(live.starts('note').map((line) => line.input['v'])).toEqual(['1', '2']);
    const calls = callsOf(requests[1]);
    expect(new Set(calls.map((call) => call.id)).size).toBe(2);
    expect(resultsOf(requests[1])).toEqual([{ id: calls[0]!.id, content: 'noted 1' }, { id: calls[1]!.id, content: 'noted 2' }]);
    expect(ofType(events, 'tool_use').map((event) => event.provider_id)).toEqual(['x', 'x']);
  });

  test('C10: that is not there at all is made from turn and position, the same in every run', async () => {
    const script = [
      reply({ calls: [{ id: null, name: 't__weather', args: { city: 'Paris' } }, { id: null, name: 't__weather', args: { city: 'Rome' } }] }),
      tool(null, 't__weather', { city: 'Oslo' }), text('wet')];
    const runs = [await play(cases, 'C10.1', script), await play(cases, 'C10.2', script)];
    for (const { run, requests, live } of runs) {
      expect(run).toMatchObject({ status: 'completed', answer: 'wet' });
      expect(live.starts('weather').map((line) => line.input['city']).sort()).toEqual(['Oslo', 'Paris', 'Rome']);
      expect(resultsOf(requests[2]).map((result) => result.content)).toEqual(['It rains in Paris.', 'It rains in Rome.', 'It rains in Oslo.']);
    }
    const ids = runs.map(({ events }) => ofType(events, 'tool_use').map((event) => event.tool_use_id));
    expect(ids[0]).toEqual(ids[1]);
    expect(new Set(ids[0]).size).toBe(3);
    expect(ids[0]!.every((id) => legal.test(id))).toBe(true);
  });

  const atZero = (id: string, args: unknown): object => ({ index: 0, id, type: 'function', function: { name: 't__weather', arguments: args } });
  test.each([
    ['openai', chunks(...['a', 'b'].map((city) => delta({ tool_calls: [atZero(city.toUpperCase(), JSON.stringify({ city }))] })), delta({}, 'tool_calls'), usageChunk, '[DONE]')],
    ['anthropic', events(messageStart, ...['a', 'b'].flatMap((city) => block(0, { type: 'tool_use', id: city.toUpperCase(), name: 't__weather', input: {} }, { type: 'input_json_delta', partial_json: JSON.stringify({ city }) })), ...messageEnd('tool_use'))],
    ['ollama', lines(...['a', 'b'].map((city) => said({ content: '', tool_calls: [{ id: city.toUpperCase(), function: { index: 0, name: 't__weather', arguments: { city } } }] })), doneLine)],
  ] as const)('C12: index 0 on every call of a reply on %s does not glue them together', async (wire, both) => {
    const { run, requests, live } = await play(cases, `C12 ${wire}`, [both, text('ok')], { wire });
    expect(run).toMatchObject({ status: 'completed', tool_calls: 2 });
    expect(live.starts().map((line) => line.input['city']).sort()).toEqual(['a', 'b']);
    expect(callsOf(requests[1])).toEqual([{ id: 'A', name: 't__weather', args: { city: 'a' } }, { id: 'B', name: 't__weather', args: { city: 'b' } }]);
  });

  test('C13: that is legal on one wire only is the same legal one on the next, over all turns, and nothing is executed again', async () => {
    const dotted = 'functions.save:0';
    const { run, requests, events, live } = await play(cases, 'C13', (body, count) => {
      if (count === 0) return tool(dotted, 't__note', { v: 'saved' });
      if (body.model === 'first') return refusal(503, 'server busy');
      return count < 6 && resultCount(body) < 2 ? tool('ok.2', 't__weather', { city: 'x' }) : text('ok');
    }, { agent: 'hopper' });
    expect(run).toMatchObject({ status: 'completed', answer: 'ok', model: 'second' });
    expect(live.starts('note')).toHaveLength(1);
    const atSecond = requests.filter((request) => request.body?.model === 'second');
    expect(atSecond.length).toBeGreaterThanOrEqual(2);
    const ids = atSecond.map((request) => callsOf(request)[0]!.id);
    expect(new Set(ids).size).toBe(1);
    expect(atSecond.every((request) => request.dialect === 'anthropic')).toBe(true);
    expect(requests.slice(1).flatMap(callsOf).every((call) => legal.test(call.id))).toBe(true);
    expect(ofType(events, 'tool_use')[0]).toMatchObject({ provider_id: dotted, tool_use_id: ids[0] });
    expect(ofType(events, 'error').at(-1)).toMatchObject({ action: 'fallback', from_model: 'first', to_model: 'second' });
  });
});
