/** What the host counts: turns, time, calls, tokens, money, loops, repeated errors; and how a run ends at a limit. */
import { describe, expect, test } from 'vitest';
import { lookAhead, stamp } from './codec.ts';
import { decide } from './decide.ts';
import type { EventBody } from './events.ts';
import { evolve } from './evolve.ts';
import { errorFingerprint, callFingerprint, repetitions } from './fingerprint.ts';
import { fixture, fold, reply, turnOf } from './fixture.ts';
import type { RunState } from './state.ts';
import { noJudgement, type Decision, type TurnInput } from './turn-input.ts';
import { noUsage, type Usage } from './usage.ts';

const claimed: TurnInput = {
  type: 'turn_claimed', unavailable: [], room_ms: 0, now_s: 1000, worker: 'w', deliveries: 1, poison_limit: 3, nudges: 0, nudge_limit: 5, wait_ms: 0, begun: [], judgement: noJudgement, history: null, tools: null, tool_problems: [], commands: [] };
const ended: EventBody = { type: 'turn_end', duration: 1, usage: noUsage };
const used = (over: Partial<Usage>): Usage => ({ ...noUsage, ...over });
const add = (state: RunState, ...bodies: EventBody[]): RunState => bodies.reduce((now, body) => evolve(now, stamp(now, body, 1, now.epoch)), state);
const outcome = (decision: Decision): string => decision.events.flatMap((event) => event.type === 'run_end' ? [`${event.status}: ${event.stop_reason}`] : []).join()
  || (decision.effect.type === 'summarise' && decision.effect.purpose.type === 'limit' ? `sums up: ${decision.effect.purpose.reason}` : `goes on: ${decision.effect.type}`);

/** A turn in which the model calls a tool and gets a result. */
function toolTurn(state: RunState, name: string, input: Record<string, unknown>, result: { content?: string; is_error?: boolean } = {}): { state: RunState; decision: Decision } {
  const asked = fold(state, decide(state, { type: 'model_replied', unavailable: [], now_s: 1000, reply: reply({ calls: [{ provider_id: null, name, input, problem: null }] }), judgement: noJudgement, shown_text: '', elapsed_s: 1, commands: [] }));
  const results = asked.calls.map((call) => ({ tool_use_id: call.tool_use_id, content: 'r', is_error: false, duration: 0, ...result }));
  const decision = decide(asked, { type: 'tool_calls_settled', results, elapsed_s: 1, timed_out: null, commands: [] });
  return { state: fold(asked, decision), decision };
}

describe('at a limit', () => {
  test('the run sums up with a reserve of its own, without tools, and says where it stands', () => {
    const state = add(fixture({ limits: { max_turns: 1 } }), ended);
    const asked = decide(state, claimed);
    expect(asked.effect).toMatchObject({ type: 'summarise', max_output_tokens: 512, timeout_s: 30, purpose: { type: 'limit', reason: 'max_turns' } });
    const usage = used({ input_tokens: 7, output_tokens: 3 });
    const decision = decide(fold(state, asked), { type: 'summarised', model: 'm1', unavailable: [], now_s: 1000, purpose: { type: 'limit', reason: 'max_turns' }, text: 'Half done.', usage, elapsed_s: 1, commands: [] });
    const over = fold(state, decision);
    expect(over).toMatchObject({ status: 'expired', stop_reason: 'max_turns', partial: { iterations: 1, summary: 'Half done.' }, usage: { input_tokens: 7, output_tokens: 3 } });
  });

  test('a summary that fails is written by the host', () => {
    const state = add(fixture({ limits: { max_turns: 1 } }), ended);
    const decision = decide(state, { type: 'summarised', model: 'm1', unavailable: [], now_s: 1000, purpose: { type: 'limit', reason: 'max_turns' }, text: null, usage: null, elapsed_s: 1, commands: [] });
    expect(fold(state, decision).partial?.summary).toContain('stopped by its limit max_turns after 1 turns');
  });

  test('where the budget is what ran out nobody is asked', () => {
    const state = add(fixture({ limits: { max_total_tokens: 10 } }), { ...ended, usage: used({ input_tokens: 8, output_tokens: 2 }) } as EventBody);
    expect(outcome(decide(state, claimed))).toBe('expired: token_budget');
    const cost = add(fixture({ limits: { max_cost_usd: 0.5 } }), { ...ended, usage: used({ cost_usd: 0.5 }) } as EventBody);
    expect(outcome(decide(cost, claimed))).toBe('expired: cost_budget');
  });

  test('a budget that a reply has used up runs none of its calls', () => {
    const state = fixture({ limits: { max_total_tokens: 10 } });
    const said = reply({ calls: [{ provider_id: null, name: 'write', input: {}, problem: null }], usage: used({ input_tokens: 20 }) });
    const decision = decide(state, { type: 'model_replied', unavailable: [], now_s: 1000, reply: said, judgement: noJudgement, shown_text: '', elapsed_s: 1, commands: [] });
    expect(outcome(decision)).toBe('expired: token_budget');
    expect(decision.events.flatMap((event) => event.type === 'tool_result' ? [event.outcome] : [])).toEqual(['not_started']);
  });

  test('a change of a live run counts from then on', () => {
    const state = add(fixture({ limits: { max_turns: 1 } }), ended);
    const decision = decide(state, { ...claimed, commands: [{ type: 'update', limits: { max_turns: 5 }, metadata: { a: 1 }, tags: ['x'], by: 'me' }] } as TurnInput);
    expect(outcome(decision)).toBe('goes on: call_model');
    expect(fold(state, decision)).toMatchObject({ metadata: { a: 1 }, tags: ['x'], limits: { max_turns: 5 } });
  });

  test.each([
    ['turns before errors', { max_turns: 1, same_error_limit: 1 }, 'sums up: max_turns'],
    ['time before turns', { max_turns: 1, session_timeout_s: 1 }, 'sums up: session_timeout'],
  ])('of several the first counts: %s', (_name, limits, expected) => {
    const failed: EventBody = { type: 'error', error_type: 'timeout', action: 'backoff', site: null, model: 'm1', detail: 'd', retry_in: 1, consecutive_errors: 1 };
    expect(outcome(decide(add(fixture({ limits }), failed, ended), claimed))).toBe(expected);
  });
});

describe('loops', () => {
  test('identical calls in a row: one corrective note, then the end', () => {
    let state = fixture();
    const notes: number[] = [];
    for (let turn = 1; turn <= 5; turn++) {
      const { state: after, decision } = toolTurn(state, 'look', { q: 'x' });
      if (decision.events.some((event) => event.type === 'validation_error' && event.validator_name === 'loop')) notes.push(turn);
      if (turn === 5) expect(outcome(decision)).toBe('failed: loop_detected');
      state = turn === 5 ? after : turnOf(after);
    }
    expect(notes).toEqual([4]);
    expect(state.retries).toBe(0);
  });

  test.each([
    ['changing times', (turn: number) => ({ at: `2026-11-30T10:00:0${turn}Z`, ms: 1_796_005_331_000 + turn })],
    ['key order', (turn: number) => turn % 2 === 0 ? { a: 1, b: 2 } : { b: 2, a: 1 }],
  ])('%s do not hide one', (_name, input) => {
    let state = fixture();
    let last: Decision | null = null;
    for (let turn = 1; turn <= 5; turn++) {
      const done = toolTurn(state, 'look', input(turn));
      last = done.decision;
      state = turn === 5 ? done.state : turnOf(done.state);
    }
    expect(outcome(last!)).toBe('failed: loop_detected');
  });

  test.each([
    ['days', (turn: number) => ({ day: `2026-11-0${turn}`, from: `2026-11-0${turn}T00:00:00Z` })],
    ['things', (turn: number) => ({ id: `01a22d0a-0c7b-7cc5-bda9-1048286f6e0${turn}` })],
    ['numbers', (turn: number) => ({ page: turn })],
  ])('calls for other %s are no loop', (_name, input) => {
    const prints = [1, 2, 3, 4, 5, 6].map((turn) => callFingerprint('look', input(turn), 2));
    expect(new Set(prints).size).toBe(6);
    expect(repetitions(prints)).toBe(1);
  });

  test('a log of before keeps the prints that it had: there a day and an id said nothing', () => {
    const [one, other] = ['01a22d0a-0c7b-7cc5-bda9-1048286f6e01', '01a22d0a-0c7b-7cc5-bda9-1048286f6e02'];
    expect(callFingerprint('look', { id: one })).toBe(callFingerprint('look', { id: other }));
    const call: EventBody = { type: 'tool_use', tool_use_id: 'c', provider_id: null, tool_name: 'look', tool_input: { id: one! }, execution: 'parallel' };
    const printsBy = (rules: Pick<RunState, 'rules'>): readonly string[] => lookAhead({ ...fixture({}), rules: undefined, ...rules } as RunState, [call]).call_prints;
    expect(printsBy({})).toEqual([callFingerprint('look', { id: one })]);
    expect(printsBy({ rules: 2 })).toEqual([callFingerprint('look', { id: one }, 2)]);
  });

  test('two calls in turns are one, too; another call in between gives a new chance; polling is none', () => {
    expect(repetitions(['a', 'b', 'a', 'b', 'a', 'b'])).toBe(3);
    expect(repetitions(['a', 'b', 'c', 'a', 'b', 'c'])).toBe(2);
    expect(repetitions(['a', 'a', 'a', 'b'])).toBe(1);
    let state = fixture();
    for (let turn = 1; turn <= 8; turn++) {
      const done = toolTurn(state, 'poll', {});
      expect(outcome(done.decision)).toBe('goes on: hand_over');
      state = turnOf(done.state);
    }
    expect(callFingerprint('a', { x: 1 })).not.toBe(callFingerprint('a', { x: 2 }));
  });
});

describe('the same error', () => {
  test('so often within 20 turns ends the run, whatever succeeds in between', () => {
    let state = fixture({ limits: { same_error_limit: 3, loop_limit: 100 } });
    for (const n of [1, 2, 3]) {
      state = turnOf(toolTurn(state, 'look', { n }, { content: `no such file: /tmp/${n}`, is_error: true }).state);
      state = toolTurn(state, 'look', { ok: n }).state;
      if (n < 3) state = turnOf(state);
    }
    expect(outcome(decide(state, claimed))).toBe('sums up: same_error');
  });

  test('is told by its words, not by its numbers; after 20 turns it is forgotten', () => {
    expect(errorFingerprint('timeout', 'no answer in 3000 ms')).toBe(errorFingerprint('timeout', 'No answer in 17 ms'));
    expect(errorFingerprint('timeout', 'x')).not.toBe(errorFingerprint('overloaded', 'x'));
    let state = fixture({ limits: { same_error_limit: 2, max_turns: 100, loop_limit: 100 } });
    state = turnOf(toolTurn(state, 'look', { n: 0 }, { content: 'no', is_error: true }).state);
    for (let turn = 0; turn < 20; turn++) state = turnOf(toolTurn(state, 'look', { turn }).state);
    state = toolTurn(state, 'look', { n: 1 }, { content: 'no', is_error: true }).state;
    expect(state.error_prints).toHaveLength(1);
    expect(outcome(decide(state, claimed))).toBe('goes on: call_model');
  });
});
