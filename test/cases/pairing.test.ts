/** Kind 1, calls and their results, without crashes: whatever interrupts a batch, each call has its one result right behind it, on every wire. */
import { reply, signatureOf, text, tool } from '@treadle/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../e2e/processes.ts';
import { finish, ofType, play } from './general-checks.ts';
import { startCases, type Cases, type LiveRun } from './stage.ts';
import { block, events as said, messageEnd, messageStart, spoken, wires } from './speech.ts';
import { callsOf, messagesOf, resultsOf } from './wire.ts';

let cases: Cases;
beforeAll(async () => {
  cases = await startCases({ tools: { 't/note': { effect: 'once', parallel: 'serial' } } });
  await cases.worker();
});
afterAll(async () => { await cases.stop(); });

const begun = (live: LiveRun, count: number, name?: string) => until('the tool has begun', () => live.starts(name).length >= count);
/** Three notes, the second of which takes its time. A worker hears of a command within about a second, so a pause needs more than that. */
const batch = (ms: number) => reply({ calls: [
  { id: 'a', name: 't__note', args: { v: '1' } }, { id: 'b', name: 't__note', args: { v: '2', ms } }, { id: 'c', name: 't__note', args: { v: '3' } }] });

describe.concurrent('an interrupted call', () => {
  test.each(wires)('C01: on %s a run cancelled while a tool runs leaves a call with one result, an error, and a follow-up is served', async (wire) => {
    const live = await cases.begin(`C01 ${wire}`, [tool('toolu_1', 't__keyed_note', { v: 'x', ms: 30_000 })], { wire });
    await begun(live, 1);
    await cases.stage.client.cancel(live.id);
    const { run, events } = await finish(cases, live);
    expect(run).toMatchObject({ status: 'cancelled', stop_reason: 'interrupted' });
    expect(ofType(events, 'tool_result')).toMatchObject([{ tool_use_id: 'toolu_1', is_error: true, outcome: 'cancelled' }]);
    expect(live.starts()).toHaveLength(1);
    await until('the tool was told', () => cases.ledger().some((line) => line.run_id === live.id && line.phase === 'cancelled'), 5000);
    const followUp = await play(cases, `C01 ${wire} follow-up`, [text('ok')], { wire, session_id: String(run['session_id']) });
    expect(followUp.run).toMatchObject({ status: 'completed', answer: 'ok', session_id: run['session_id'] });
    expect(callsOf(followUp.requests[0]).map((call) => call.id)).toEqual(['toolu_1']);
    expect(resultsOf(followUp.requests[0])).toEqual([{ id: 'toolu_1', content: expect.stringMatching(/^ERROR: /) as string }]);
    expect(live.starts()).toHaveLength(1);
  });

  test.each(wires)('C01: on %s a steer and a pause do not interrupt it, and what follows it is accepted', async (wire) => {
    const live = await cases.begin(`C01 paused ${wire}`, [tool('toolu_1', 't__keyed_note', { v: 'x', ms: 800 }), text('ok')], { wire });
    await begun(live, 1);
    await cases.stage.client.pause(live.id);
    await until('it is paused', async () => (await cases.stage.client.run(live.id)).status === 'paused');
    await cases.stage.client.resume(live.id, { input: 'And now?' });
    const { run, requests } = await finish(cases, live);
    expect(run).toMatchObject({ status: 'completed', answer: 'ok' });
    expect(messagesOf(requests[1]).slice(-3).map((message) => message.role)).toEqual(['assistant', 'tool', 'user']);
    expect(live.starts()).toHaveLength(1);
  });

  test.each(wires)('C02: on %s a batch cancelled in its second call stores three results in call order: real, unknown, not started', async (wire) => {
    const live = await cases.begin(`C02 ${wire}`, [batch(20_000)], { wire });
    await begun(live, 2);
    await cases.stage.client.cancel(live.id);
    const { run, events } = await finish(cases, live);
    const results = ofType(events, 'tool_result');
    expect(results.map((result) => [result.tool_use_id, result.outcome ?? 'real', result.is_error])).toEqual(
      [['a', 'real', false], ['b', 'unknown', true], ['c', 'not_started', true]]);
    expect(results[0]!.content).toBe('noted 1');
    const label = `C02 ${wire} follow-up`;
    const followUp = await play(cases, label, [text('ok')], { wire, session_id: String(run['session_id']), input: `[[${label}]] go on` });
    expect(followUp.run).toMatchObject({ status: 'completed', answer: 'ok' });
    expect(resultsOf(followUp.requests[0]).map((result) => result.id)).toEqual(['a', 'b', 'c']);
    expect(messagesOf(followUp.requests[0]).at(-1)).toMatchObject({ role: 'user', content: `[[${label}]] go on` });
    expect(live.starts().map((line) => line.input['v'])).toEqual(['1', '2']);
    expect(cases.ledger().filter((line) => line.run_id === followUp.run.id)).toEqual([]);
  });

  test.each(wires)('C02: on %s a batch paused in its second call and resumed with a message has three results before that message', async (wire) => {
    const live = await cases.begin(`C02 paused ${wire}`, [batch(600), text('ok')], { wire });
    await begun(live, 2);
    await cases.stage.client.pause(live.id);
    await until('it is paused', async () => (await cases.stage.client.run(live.id)).status === 'paused');
    expect(live.starts()).toHaveLength(2);
    await cases.stage.client.resume(live.id, { input: 'go on' });
    const { run, requests } = await finish(cases, live);
    expect(run.status).toBe('completed');
    expect(resultsOf(requests[1])).toEqual([{ id: 'a', content: 'noted 1' }, { id: 'b', content: 'noted 2' }, { id: 'c', content: 'noted 3' }]);
    expect(messagesOf(requests[1]).at(-1)).toMatchObject({ role: 'user', content: 'go on' });
    expect(live.starts()).toHaveLength(3);
  });
});

describe.concurrent('what is said around a call', () => {
  test.each(wires)('C04: on %s text behind a call in one reply stands in front of it when it is replayed, and both texts are in the log', async (wire) => {
    const { run, requests, events, live } = await play(cases, `C04 ${wire}`, [
      spoken(wire, [{ text: 'First' }, { id: 't1', name: 't__list_items', args: {} }, { text: 'Second' }]), text('end')], { wire });
    expect(run).toMatchObject({ status: 'completed', answer: 'end' });
    expect(live.starts('list_items')).toHaveLength(1);
    const [assistant, result, ...more] = messagesOf(requests[1]).slice(-2);
    expect([assistant?.role, result?.role, more]).toEqual(['assistant', 'tool', []]);
    expect(callsOf(requests[1]).map((call) => call.id)).toEqual(['t1']);
    const final = ofType(events, 'assistant_text').find((event) => event.is_final)!;
    expect(final.content).toContain('First');
    expect(final.content).toContain('Second');
    expect(final.seq).toBeLessThan(ofType(events, 'tool_use')[0]!.seq);
  });

  test('C04: with a thought before it, which must go back as it came, too', async () => {
    const thinking = 'First I list.';
    const signature = signatureOf('small_anthropic', thinking);
    const { run, requests } = await play(cases, 'C04 thought', [
      said(messageStart, ...block(0, { type: 'thinking', thinking: '', signature: '' }, { type: 'thinking_delta', thinking }, { type: 'signature_delta', signature }),
        ...block(1, { type: 'text', text: '' }, { type: 'text_delta', text: 'First' }), ...block(2, { type: 'tool_use', id: 't1', name: 't__list_items', input: {} }),
        ...block(3, { type: 'text', text: '' }, { type: 'text_delta', text: 'Second' }), ...messageEnd('tool_use')),
      text('end')], { wire: 'anthropic' });
    expect(run).toMatchObject({ status: 'completed', answer: 'end' });
    expect(messagesOf(requests[1]).at(-2)).toMatchObject({ thoughts: [{ type: 'thinking', thinking, signature }], content: 'First\nSecond', calls: [{ id: 't1' }] });
  });

  test.each(wires)('C05: on %s steers sent while a tool runs follow its result, each once and in their order', async (wire) => {
    const live = await cases.begin(`C05 ${wire}`, [tool('c1', 't__note', { v: 'x', ms: 1500 }), text('ok')], { wire });
    await begun(live, 1);
    await cases.stage.client.steer(live.id, 'use metric units');
    await cases.stage.client.steer(live.id, 'in French');
    const { run, requests, events } = await finish(cases, live);
    expect(run).toMatchObject({ status: 'completed', answer: 'ok' });
    // Text right behind results makes Anthropic's models end their turn with nothing: there it stands in the last result.
    expect(messagesOf(requests[1]).slice(2).map((message) => message.role)).toEqual(wire === 'anthropic' ? ['assistant', 'tool'] : ['assistant', 'tool', 'user', 'user']);
    const words = messagesOf(requests[1]).slice(2).map((message) => message.content).join('\n');
    expect(words.match(/noted x|use metric units|in French/g)).toEqual(['noted x', 'use metric units', 'in French']);
    expect(ofType(events, 'steer').map((event) => event.content)).toEqual(['use metric units', 'in French']);
    expect(live.starts()).toHaveLength(1);
  });

  test.each(wires)('C05: on %s a steer in the middle of a batch waits for the last of its results', async (wire) => {
    const live = await cases.begin(`C05 batch ${wire}`, [batch(1500), text('ok')], { wire });
    await begun(live, 2);
    await cases.stage.client.steer(live.id, 'be quick');
    const { run, requests, events } = await finish(cases, live);
    expect(run.status).toBe('completed');
    expect(messagesOf(requests[1]).slice(2).map((message) => message.role)).toEqual(['assistant', 'tool', 'tool', 'tool', ...(wire === 'anthropic' ? [] : ['user'])]);
    expect(messagesOf(requests[1]).map((message) => message.content).join('\n').match(/noted \d|be quick/g)).toEqual(['noted 1', 'noted 2', 'noted 3', 'be quick']);
    expect(ofType(events, 'steer')).toHaveLength(1);
    expect(live.starts()).toHaveLength(3);
  });
});
