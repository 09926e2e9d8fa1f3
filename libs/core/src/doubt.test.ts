/** Calls in doubt whose tool asks a person: given events, when an input comes, then events and an effect. */
import { describe, expect, test } from 'vitest';
import type { Command } from './command.ts';
import { decide } from './decide.ts';
import { fixture, fold, tool } from './fixture.ts';
import type { RunState } from './state.ts';
import { noJudgement, type Decision, type SettledCall, type TurnInput } from './turn-input.ts';

const ask = tool('write', { effect: 'once', parallel: 'parallel', on_unknown: 'ask' });
const call = (tool_use_id: string) => ({ type: 'tool_use' as const, tool_name: 'write', tool_input: { id: tool_use_id }, tool_use_id, provider_id: null, execution: 'parallel' as const });
const open = fixture({ events: [{ type: 'tools_changed', tools: [ask], problems: [], done: 'pinned' }, call('a'), call('b')] });
const unknown = (tool_use_id: string): SettledCall => ({ tool_use_id, content: 'lost', is_error: true, duration: 0, outcome: 'unknown' });
const fine = (tool_use_id: string): SettledCall => ({ tool_use_id, content: 'ok', is_error: false, duration: 0 });
const settled = (results: SettledCall[], commands: Command[] = []): TurnInput => ({ type: 'tool_calls_settled', results, elapsed_s: 2, timed_out: null, commands });
const claimed = (commands: Command[], begun: SettledCall[] = []): TurnInput => ({
  type: 'turn_claimed', unavailable: [], room_ms: 0, now_s: 1000, worker: 'w', deliveries: 1, poison_limit: 3, nudges: 0, nudge_limit: 5, wait_ms: 0, judgement: noJudgement, history: null, begun, tools: null, tool_problems: [], commands });
const word = (tool_use_id: string, outcome: 'happened' | 'did_not_happen' = 'happened', content?: string): Command => ({ type: 'outcome', tool_use_id, outcome, by: 'ann', ...(content === undefined ? {} : { content }) });
const types = (decision: Decision): string[] => decision.events.map((event) => event.type === 'state_change' ? `${event.old}→${event.new} ${event.reason}` : event.type === 'tool_result' ? `${event.tool_use_id} ${event.outcome ?? 'ok'}` : event.type);
const waiting = (ids = ['a', 'b']): RunState => fold(open, decide(open, settled([...ids.map(unknown), ...['a', 'b'].filter((id) => !ids.includes(id)).map(fine)])));

describe('a call in doubt that a person is asked about', () => {
  test('pauses the run, with what is waited for; the others have their results', () => {
    const decision = decide(open, settled([unknown('a'), fine('b')]));
    expect(types(decision)).toEqual(['b ok', 'running→paused outcome']);
    expect(decision.effect).toEqual({ type: 'pause' });
    expect(fold(open, decision)).toMatchObject({
      status: 'paused', pause_reason: 'outcome', active_s: 2,
      pending: [{ kind: 'outcome', tool_use_id: 'a', tool_name: 'write', tool_input: { id: 'a' }, expires_at: null }] });
  });

  test('is not asked about by a tool that reports, by a cancel, or when time is up', () => {
    const reports = fixture({ events: [call('a')] });
    expect(types(decide(reports, settled([unknown('a')])))).toEqual(['a unknown', 'turn_end']);
    expect(types(decide(open, settled([unknown('a'), unknown('b')], [{ type: 'cancel' }])))).toEqual(['a unknown', 'b unknown', 'turn_end', 'running→cancelled interrupted', 'run_end']);
    expect(types(decide(open, { ...settled([unknown('a'), unknown('b')]), timed_out: 'turn_timeout' } as TurnInput))).toContain('running→failed turn_timeout');
  });

  test.each([
    ['happened', undefined, { is_error: false }], ['happened', 'sent as 17', { is_error: false, content: 'sent as 17' }],
    ['did_not_happen', undefined, { is_error: true, outcome: 'not_started' }], ['did_not_happen', 'refused', { is_error: true, outcome: 'not_started', content: 'refused' }],
  ] as const)('%s with %s is its result, and the run goes on', (outcome, content, result) => {
    const state = waiting(['a']);
    const decision = decide(state, claimed([word('a', outcome, content)]));
    expect(types(decision)).toEqual(['paused→running resumed', 'outcome_resolved', `a ${outcome === 'happened' ? 'ok' : 'not_started'}`, 'turn_start', 'turn_end']);
    expect(decision.events[1]).toMatchObject({ tool_use_id: 'a', decision: outcome, by: 'ann' });
    expect(decision.events[2]).toMatchObject(result);
    expect(decision.effect).toEqual({ type: 'hand_over', delay_ms: 0 });
    expect(fold(state, decision)).toMatchObject({ status: 'running', pending: [], calls: [] });
  });

  test('while others wait, a word is taken and the run waits on; a steer wakes nothing', () => {
    const state = waiting();
    const first = decide(state, claimed([word('b'), { type: 'steer', text: 'x' }]));
    expect(types(first)).toEqual(['outcome_resolved', 'b ok', 'steer']);
    const next = fold(state, first);
    expect(next).toMatchObject({ status: 'paused', pause_reason: 'outcome', pending: [{ tool_use_id: 'a' }] });
    expect(types(decide(next, claimed([word('a')])))).toEqual(['paused→running resumed', 'outcome_resolved', 'a ok', 'turn_start', 'turn_end']);
  });

  test('of two words the first counts; a word on another call says nothing', () => {
    const decision = decide(waiting(['a']), claimed([word('zz'), word('a', 'did_not_happen'), word('a')]));
    expect(types(decision).slice(0, 3)).toEqual(['paused→running resumed', 'outcome_resolved', 'a not_started']);
  });

  test('a resume without a word lets the host speak', () => {
    expect(types(decide(waiting(), claimed([word('b'), { type: 'resume' }], [unknown('a')])))).toEqual(
      ['paused→running resumed', 'outcome_resolved', 'b ok', 'a unknown', 'turn_start', 'turn_end']);
  });

  test('a pause that a person asks for outlasts the word', () => {
    const state = waiting(['a']);
    const paused = fold(state, decide(state, claimed([{ type: 'pause' }])));
    expect(paused).toMatchObject({ status: 'paused', pause_reason: 'requested', pending: [{ tool_use_id: 'a' }] });
    const told = fold(paused, decide(paused, claimed([word('a')])));
    expect(told).toMatchObject({ status: 'paused', pause_reason: 'requested', pending: [] });
    expect(fold(told, decide(told, claimed([{ type: 'resume' }])))).toMatchObject({ status: 'running' });
  });

  test('a cancel ends it, every call with its one result', () => {
    expect(types(decide(waiting(), claimed([word('a'), { type: 'cancel' }], [unknown('b')])))).toEqual(
      ['outcome_resolved', 'a ok', 'b unknown', 'turn_end', 'paused→cancelled interrupted', 'run_end']);
  });
});
