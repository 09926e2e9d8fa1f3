/** What keeps a text from being the answer: hooks, validators, the action protocol. */
import { describe, expect, test } from 'vitest';
import { answerOf } from './decide-answer.ts';
import { decide } from './decide.ts';
import { interpreted } from './decide-replied.ts';
import { fixture, fold, reply, turnOf } from './fixture.ts';
import type { RunState } from './state.ts';
import { noJudgement, type Decision, type Judgement, type ModelReply } from './turn-input.ts';

function answer(state: RunState, said: Partial<ModelReply>, judgement: Partial<Judgement> = {}): Decision {
  const read = interpreted(state, reply(said));
  return decide(state, { type: 'model_replied', unavailable: [], now_s: 1000, reply: read, judgement: { ...noJudgement, ...judgement }, shown_text: '', elapsed_s: 1, commands: [] });
}

const ended = (decision: Decision): string => decision.events.flatMap((event) => event.type === 'run_end' ? [`${event.status}: ${event.stop_reason}`] : []).join() || `goes on: ${decision.effect.type}`;
const check = (ok: boolean, mode: 'enforce' | 'report' = 'enforce') => ({ name: 'short', mode, ok, error_type: 'pattern', feedback: 'Be brief.', detail: ok ? '' : 'too long' });
const hook = (name: string, decision: 'stop' | 'extra_turn' | 'continue' | 'skipped', prompt = '') => ({ hook: name, decision, prompt });

describe('stop hooks', () => {
  const state = fixture({ limits: { max_extra_turns: 2 } });

  test('any extra turn wins, then any continue, else the answer stands', () => {
    const both = answer(state, { text: 'yes' }, { hooks: [hook('a', 'continue'), hook('b', 'extra_turn', 'Check it.'), hook('c', 'extra_turn', 'And this.')] });
    expect(both.effect).toEqual({ type: 'hand_over', delay_ms: 0 });
    expect(both.events.filter((event) => event.type === 'stop_hook')).toMatchObject([{ hook: 'a', prompt: '' }, { hook: 'b', prompt: 'Check it.' }, { hook: 'c', prompt: '' }]);
    expect(fold(state, both).transcript.messages.at(-1)).toMatchObject({ role: 'host', note: 'hook', content: 'Check it.' });
    expect(fold(state, answer(state, { text: 'yes' }, { hooks: [hook('a', 'continue')] })).transcript.messages.at(-1)).toMatchObject({ content: 'Please go on.' });
    expect(ended(answer(state, { text: 'yes' }, { hooks: [hook('a', 'stop')] }))).toBe('completed: answered');
  });

  test('one that was skipped is recorded and decides nothing', () => {
    const decision = answer(state, { text: 'yes' }, { hooks: [hook('late', 'skipped', 'took more than 50 ms')] });
    expect(decision.events).toContainEqual({ type: 'stop_hook', hook: 'late', decision: 'skipped', prompt: 'took more than 50 ms' });
    expect(ended(decision)).toBe('completed: answered');
  });

  test('extra turns are bounded; then the answer stands', () => {
    let now = state;
    for (const _ of [1, 2]) now = turnOf(fold(now, answer(now, { text: 'yes' }, { hooks: [hook('a', 'extra_turn', 'Again.')] })));
    expect(ended(answer(now, { text: 'yes' }, { hooks: [hook('a', 'extra_turn', 'Again.')] }))).toBe('completed: answered');
  });

  test('speak before validators', () => {
    const decision = answer(state, { text: 'yes' }, { hooks: [hook('a', 'extra_turn', 'More.')], checks: [check(false)] });
    expect(decision.events.some((event) => event.type === 'validation_error')).toBe(false);
  });
});

describe('validators', () => {
  const state = fixture({ limits: { max_retries: 2 } });

  test('that enforce send the answer back with feedback, a number of times that no turn resets', () => {
    let now = state;
    for (const left of [1, 0]) {
      const decision = answer(now, { text: 'long' }, { checks: [check(false)] });
      expect(decision.events.find((event) => event.type === 'validation_error')).toMatchObject({ validator_name: 'short', error_type: 'pattern', feedback: 'Be brief.', retries_left: left });
      now = turnOf(fold(now, decision));
      expect(now.transcript.messages.at(-1)).toMatchObject({ role: 'host', note: 'feedback' });
    }
    expect(ended(answer(now, { text: 'long' }, { checks: [check(false)] }))).toBe('failed: validation_retries');
  });

  test('that report let the run end, and say so beside the answer', () => {
    const decision = answer(state, { text: 'long' }, { checks: [check(false, 'report')], output: { a: 1 } });
    expect(ended(decision)).toBe('completed: answered');
    expect(fold(state, decision)).toMatchObject({ answer: 'long', output: { a: 1 }, checks: [{ name: 'short', ok: false, detail: 'too long' }] });
  });
});

describe('json_action', () => {
  const state = fixture({ spec: { protocol: 'json_action' } });

  test.each([
    ['alone', '{"skill_name":"look","arguments":{"q":1}}'],
    ['in a fence', '```json\n{"skill_name": "look", "arguments": {"q": 1}}\n```'],
    ['after prose with braces', 'I think {of this} is best.\n{"skill_name":"look","arguments":{"q":1}}'],
  ])('a skill %s is a call', (_name, text) => {
    const decision = answer(state, { text });
    expect(decision.events.find((event) => event.type === 'tool_use')).toMatchObject({ tool_name: 'look', tool_input: { q: 1 } });
    expect(decision.effect.type).toBe('settle_tool_calls');
  });

  test('C16: a number that would become another one is told to the model, and an answer keeps it', () => {
    const { events } = answer(state, { text: '{"skill_name":"look","arguments":{"q":9007199254740993}}' });
    expect(events.find((event) => event.type === 'tool_use')).toMatchObject({ tool_input: {}, invalid: expect.stringContaining('9007199254740993') as string });
    expect(answerOf(state, { text: '{"final_answer":{"id":9007199254740993}}' })).toBe('{"id":9007199254740993}');
  });

  test('a final answer is the answer', () => {
    const decision = answer(state, { text: 'So: {"final_answer": "It is {3}."}' });
    expect(fold(state, decision)).toMatchObject({ status: 'completed', answer: 'It is {3}.' });
    expect(answerOf(state, { text: '{"final_answer":"x"}' })).toBe('x');
  });

  test.each([
    ['The sum is 3.', 'json_syntax'], ['{"skill_name":"look"', 'json_syntax'], ['{"thought":"hm"}', 'missing_field'], ['{"skill_name":"ghost","arguments":{}}', 'unknown_skill'],
    ['{"skill_name":"look","arguments":[1]}', 'missing_field'],
  ])('%s never becomes an answer: %s', (text, error_type) => {
    const decision = answer(state, { text });
    expect(decision.events.find((event) => event.type === 'validation_error')).toMatchObject({ validator_name: 'action_parse', error_type });
    expect(ended(decision)).toBe('goes on: hand_over');
  });

  test('what was paused before it was read does not become an answer either', () => {
    const said = decide(state, { type: 'model_replied', unavailable: [], now_s: 1000, reply: interpreted(state, reply({ text: 'no JSON' })), judgement: noJudgement, shown_text: '', elapsed_s: 1, commands: [{ type: 'pause' }] });
    const paused = fold(state, said);
    expect(paused.status).toBe('paused');
    const resumed = decide(paused, {
      type: 'turn_claimed', unavailable: [], room_ms: 0, now_s: 1000, worker: 'w', deliveries: 1, poison_limit: 3, nudges: 0, nudge_limit: 5, wait_ms: 0, begun: [], judgement: noJudgement, history: null, tools: null, tool_problems: [], commands: [{ type: 'resume' }] });
    expect(resumed.events.find((event) => event.type === 'validation_error')).toMatchObject({ error_type: 'json_syntax' });
    expect(fold(paused, resumed)).toMatchObject({ status: 'running', answer: null });
  });

  test('an empty final answer counts as an empty reply', () => {
    let now = state;
    for (const _ of [1, 2]) {
      const decision = answer(now, { text: '{"final_answer":" "}' });
      expect(decision.events.find((event) => event.type === 'validation_error')).toMatchObject({ error_type: 'non_empty_final_answer' });
      now = turnOf(fold(now, decision));
    }
    expect(now).toMatchObject({ reasks: 2, retries: 0 });
    expect(ended(answer(now, { text: '{"final_answer":""}' }))).toBe('failed: empty_answer');
  });
});
