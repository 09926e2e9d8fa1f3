/** Questions to a person: given events, when an input comes, then events and an effect. */
import { describe, expect, test } from 'vitest';
import type { Command } from './command.ts';
import { decide } from './decide.ts';
import { fixture, fold, reply, tool } from './fixture.ts';
import type { RunState } from './state.ts';
import { noJudgement, type ReplyCall, type SettledCall, type TurnInput } from './turn-input.ts';

const start = (): RunState => fixture({ limits: { max_observation_bytes: 60 }, events: [{
  type: 'tools_changed', problems: [], done: 'pinned', tools: [tool('ask_user', { builtin: 'ask_user', parallel: 'serial' }), tool('look')] }] });
const ask = (id: string): ReplyCall => ({ provider_id: id, name: 'ask_user', input: { question: `${id}?` }, problem: null });
const look = (id: string): ReplyCall => ({ provider_id: id, name: 'look', input: {}, problem: null });
const replied = (...calls: ReplyCall[]): TurnInput => ({ type: 'model_replied', unavailable: [], now_s: 0, reply: reply({ calls }), judgement: noJudgement, shown_text: '', elapsed_s: 3, commands: [] });
const settled = (...ids: string[]): TurnInput => ({
  type: 'tool_calls_settled', results: ids.map((tool_use_id): SettledCall => ({ tool_use_id, content: 'r', is_error: false, duration: 0 })), elapsed_s: 2, timed_out: null, commands: [] });
const claimed = (...commands: Command[]): TurnInput => ({
  type: 'turn_claimed', unavailable: [], room_ms: 0, now_s: 0, worker: 'w', deliveries: 1, poison_limit: 3, nudges: 0, nudge_limit: 5, wait_ms: 0, judgement: noJudgement, history: null, begun: [], tools: null, tool_problems: [], commands });
const after = (state: RunState, ...inputs: TurnInput[]): RunState => inputs.reduce((now, input) => fold(now, decide(now, input)), state);
const results = (state: RunState): string[] => state.transcript.messages.flatMap((message) => message.role === 'tool' ? [`${message.tool_use_id} ${message.content}`] : []);

describe('a question', () => {
  test('alone pauses the run with the reply', () => {
    const decision = decide(start(), replied(ask('q')));
    expect(decision.effect).toEqual({ type: 'pause' });
    expect(fold(start(), decision)).toMatchObject({
      status: 'paused', pause_reason: 'input', active_s: 3, pending: [{ kind: 'input', tool_use_id: 'q', tool_name: 'ask_user', tool_input: { question: 'q?' }, expires_at: null }] });
  });

  test('beside other calls waits until those are carried out, wherever it stands', () => {
    const state = after(start(), replied(ask('q'), look('a'), look('b')));
    expect(state.status).toBe('running');
    expect(decide(state, settled('a')).effect).toEqual({ type: 'settle_tool_calls' });
    expect(after(state, settled('a', 'b'))).toMatchObject({ status: 'paused', pause_reason: 'input', pending: [{ tool_use_id: 'q' }] });
  });

  test('whose arguments do not fit is an invalid call like any other', () => {
    const state = after(start(), replied({ ...ask('q'), problem: 'question is missing' }));
    expect(state.status).toBe('running');
    expect(decide(start(), replied({ ...ask('q'), problem: 'question is missing' })).effect).toEqual({ type: 'settle_tool_calls' });
  });
});

describe('an answer', () => {
  test('is the result of the call, and the turn ends', () => {
    const state = after(start(), replied(ask('q')));
    const decision = decide(state, claimed({ type: 'resume', input: 'north' }));
    expect(decision.events.map((event) => event.type)).toEqual(['state_change', 'tool_result', 'turn_start', 'turn_end']);
    expect(results(fold(state, decision))).toEqual(['q north']);
    expect(fold(state, decision).transcript.messages.filter((message) => message.role === 'user')).toHaveLength(1);
  });

  test('answers the first of several; the run then waits for the next', () => {
    const state = after(start(), replied(ask('p'), ask('q')));
    const first = after(state, claimed({ type: 'resume', input: 'one' }));
    expect(first).toMatchObject({ status: 'paused', pause_reason: 'input', pending: [{ tool_use_id: 'q' }] });
    expect(results(after(first, claimed({ type: 'resume', input: 'two' })))).toEqual(['p one', 'q two']);
    expect(results(after(state, claimed({ type: 'resume', input: 'one' }, { type: 'resume', input: 'two' })))).toEqual(['p one', 'q two']);
  });

  test('beyond the questions is a message of the user', () => {
    const state = after(start(), replied(ask('q')), claimed({ type: 'resume', input: 'north' }, { type: 'resume', input: 'and quickly' }));
    expect(state.transcript.messages.at(-1)).toMatchObject({ role: 'user', content: 'and quickly' });
  });

  test('of parts is their text, cut like any observation', () => {
    const state = after(start(), replied(ask('q')), claimed({ type: 'resume', input: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }] }));
    expect(results(state)).toEqual(['q a\nb']);
    const long = after(start(), replied(ask('q')), claimed({ type: 'resume', input: 'x'.repeat(100) }));
    expect(results(long)[0]!.length).toBeLessThanOrEqual(62);
  });

  test('that comes with a pause is kept, and the run stays paused', () => {
    const state = after(start(), replied(ask('q')), claimed({ type: 'resume', input: 'north' }, { type: 'pause' }));
    expect(state).toMatchObject({ status: 'paused', pause_reason: 'requested', pending: [] });
    expect(results(state)).toEqual(['q north']);
  });
});

test('without an answer a resumed run waits again, and a steer does not wake it', () => {
  const state = after(start(), replied(ask('q')));
  for (const command of [{ type: 'resume' }, { type: 'steer', text: 'x' }] as const) {
    expect(after(state, claimed(command))).toMatchObject({ status: 'paused', pause_reason: 'input', pending: [{ tool_use_id: 'q' }] });
  }
});

test('the same question again and again is a loop like any other', () => {
  let state = start();
  for (let turn = 0; turn < 4; turn++) {
    state = after(state, replied({ ...ask(`q${turn}`), input: { question: 'Which?' } }), claimed({ type: 'resume', input: 'I said: north' }), claimed());
  }
  expect(state.loop_noted).toBe(true);
  const ended = after(state, replied({ ...ask('q9'), input: { question: 'Which?' } }), claimed({ type: 'resume', input: 'north' }));
  expect(ended).toMatchObject({ status: 'failed', stop_reason: 'loop_detected' });
});

test('a cancel ends the run that waits, the question with its one result', () => {
  const state = after(start(), replied(ask('q')), claimed({ type: 'cancel' }));
  expect(state).toMatchObject({ status: 'cancelled' });
  expect(results(state)).toEqual(['q This call was not started.']);
});
