/** Sub-agents: given events, when an input comes, then events and an effect; and what other runs are told of it. */
import { describe, expect, test } from 'vitest';
import { endOf, reserved, tellings } from './children.ts';
import { lookAhead } from './codec.ts';
import type { ChildEnded, Command } from './command.ts';
import { decide } from './decide.ts';
import { fixture, fold, reply, tool } from './fixture.ts';
import { defaultLimits, type Limits } from './limits.ts';
import type { RunState } from './state.ts';
import { noJudgement, type Decision, type ReplyCall, type SettledCall, type TurnInput } from './turn-input.ts';
import { noUsage } from './usage.ts';

const spawnTool = tool('spawn_agent', { builtin: 'spawn_agent', effect: 'idempotent' });
const writeTool = tool('write', { effect: 'once', parallel: 'serial' });
const begun = (limits: Partial<Limits> = {}): RunState => fixture({ limits, events: [{ type: 'tools_changed', tools: [spawnTool, writeTool], problems: [], done: 'pinned' }] });
const spawn = (id: string, more: object = {}): ReplyCall => ({ provider_id: id, name: 'spawn_agent', input: { agent: 'helper', input: 'do it', ...more }, problem: null });
const write = (id: string): ReplyCall => ({ provider_id: id, name: 'write', input: {}, problem: null });
/** The model asks for these; each start is offered an agent with the default limits, but for `own`. */
const replied = (calls: ReplyCall[], { own = {}, known = true, commands = [] as Command[], usage = noUsage } = {}): TurnInput => ({
  type: 'model_replied', unavailable: [], now_s: 0, reply: reply({ calls, usage }), judgement: noJudgement, shown_text: '', elapsed_s: 1, commands,
  children: known ? Object.fromEntries(calls.map(({ provider_id }) => [provider_id, { child_run_id: `run_${provider_id}`, limits: { ...defaultLimits, ...own } }])) : {} });
const settled = (awaited: string[], results: SettledCall[] = [], commands: Command[] = []): TurnInput => ({ type: 'tool_calls_settled', results, awaited, elapsed_s: 2, timed_out: null, commands });
const claimed = (commands: Command[]): TurnInput => ({
  type: 'turn_claimed', unavailable: [], room_ms: 0, now_s: 0, worker: 'w', deliveries: 1, poison_limit: 3, nudges: 0, nudge_limit: 5, wait_ms: 0, judgement: noJudgement, history: null, begun: [], tools: null, tool_problems: [], commands });
const ended = (id: string, over: Partial<ChildEnded> = {}): ChildEnded => ({
  type: 'child_ended', child_run_id: `run_${id}`, status: 'completed', stop_reason: 'answered', text: `${id} says so`, usage: { ...noUsage, input_tokens: 10, cost_usd: 0.5 }, tool_calls: 2, ...over });

/** Each event in a word or two. */
function said(decision: Decision): string[] {
  return decision.events.map((event) => {
    switch (event.type) {
      case 'child_run': return `${event.child_run_id} ${event.status}`;
      case 'tool_use': return `call ${event.tool_use_id}`;
      case 'tool_result': return `${event.tool_use_id} ${event.outcome ?? (event.is_error ? 'error' : 'ok')}`;
      case 'state_change': return `${event.old}→${event.new} ${event.reason}`;
      default: return event.type;
    }
  });
}
const after = (state: RunState, ...inputs: TurnInput[]): RunState => inputs.reduce((now, input) => fold(now, decide(now, input)), state);
const limitsOf = (state: RunState) => state.children.map((child) => child.limits);
const waiting = (...calls: ReplyCall[]): RunState => after(begun(), replied(calls), settled(calls.filter((call) => call.name === 'spawn_agent').map((call) => call.provider_id!)));

describe('a start', () => {
  test('is in the log with the reply, before anything is begun; the run then waits for it, and for several at once', () => {
    const decision = decide(begun(), replied([spawn('a'), spawn('b')]));
    expect(said(decision)).toEqual(['call a', 'call b', 'run_a queued', 'run_b queued']);
    expect(decision.effect).toEqual({ type: 'settle_tool_calls' });
    const state = fold(begun(), decision);
    const waits = decide(state, settled(['a', 'b']));
    expect([said(waits), waits.effect.type]).toEqual([['running→paused children'], 'pause']);
    expect(fold(state, waits)).toMatchObject({ pause_reason: 'children', active_s: 2, pending: [
      { kind: 'child_run', tool_use_id: 'a', child_run_id: 'run_a', tool_name: 'spawn_agent' }, { kind: 'child_run', tool_use_id: 'b', child_run_id: 'run_b' }] });
  });

  test('that is not waited for gives its id, and the turn goes on', () => {
    const state = after(begun(), replied([spawn('a', { wait: false })]));
    const decision = decide(state, settled([], [{ tool_use_id: 'a', content: 'run_a', is_error: false, duration: 0 }]));
    expect([said(decision), decision.effect.type]).toEqual([['a ok', 'turn_end'], 'hand_over']);
  });

  test('that fails releases what was reserved for it', () => {
    const state = after(begun(), replied([spawn('a')]));
    const decision = decide(state, settled([], [{ tool_use_id: 'a', content: 'no', is_error: true, duration: 0 }]));
    expect(said(decision)).toEqual(['run_a failed', 'a error', 'turn_end']);
    expect(reserved(fold(state, decision))).toEqual({ tool_calls: 0, tokens: 0, cost_usd: 0 });
  });

  test.each([
    ['an agent that is not known here', begun(), replied([spawn('a')], { known: false }), 'no agent named "helper"'],
    ['no input', begun(), replied([spawn('a', { input: ' ' })]), 'input is empty'],
    ['max_depth', begun({ max_depth: 0 }), replied([spawn('a')]), 'max_depth'],
    ['max_children', begun({ max_children: 0 }), replied([spawn('a')]), 'max_children'],
    ['no tokens', begun({ max_total_tokens: 100 }), replied([spawn('a', { wait: false })], { usage: { ...noUsage, input_tokens: 99 } }), 'max_total_tokens'],
  ])('is refused for %s: an error at once, nothing is started, the turn ends', (_what, state, input, why) => {
    const decision = decide(state, input);
    expect(decision.events.some((event) => event.type === 'child_run')).toBe(false);
    expect(decision.events.find((event) => event.type === 'tool_result')).toMatchObject({ is_error: true, content: expect.stringContaining(why) as string });
    expect(decision.effect).toEqual({ type: 'hand_over', delay_ms: 0 });
  });

  test('beyond max_children is refused, those before it are started', () => {
    expect(said(decide(begun({ max_children: 1 }), replied([spawn('a'), spawn('b')])))).toEqual(['call a', 'call b', 'run_a queued', 'b error']);
  });

  test('beside a cancel or a spent budget does not happen', () => {
    expect(said(decide(begun(), replied([spawn('a')], { commands: [{ type: 'cancel' }] })))).not.toContain('run_a queued');
    expect(said(decide(begun({ tool_budget: 0 }), replied([spawn('a')])))).not.toContain('run_a queued');
  });

  test('beside a pause is planned, and carried out later', () => {
    const decision = decide(begun(), replied([spawn('a')], { commands: [{ type: 'pause' }] }));
    expect(said(decision)).toEqual(['call a', 'run_a queued', 'running→paused requested']);
    const resumed = decide(fold(begun(), decision), claimed([{ type: 'resume' }]));
    expect([said(resumed), resumed.effect.type]).toEqual([['paused→running resumed', 'turn_start'], 'settle_tool_calls']);
  });

  test('calls behind the ones that are waited for wait, too', () => {
    const state = waiting(spawn('a'), write('w'));
    const decision = decide(state, claimed([ended('a')]));
    expect(said(decision)).toEqual(['run_a completed', 'a ok', 'paused→running resumed', 'turn_start']);
    expect(decision.effect).toEqual({ type: 'settle_tool_calls' });
  });
});

describe('what a sub-agent may use', () => {
  const tokens = { ...noUsage, input_tokens: 100 };

  test('is what is left, divided among the starts of the reply', () => {
    const state = after(begun({ max_total_tokens: 1000, max_cost_usd: 6, tool_budget: 12 }), replied([spawn('a'), spawn('b'), spawn('c')], { usage: tokens }));
    expect(limitsOf(state)).toEqual([1, 2, 3].map(() => ({ max_total_tokens: 300, max_cost_usd: 2, tool_budget: 3, max_depth: 2 })));
  });

  test('leaves a share for a run that goes on', () => {
    const state = after(begun({ max_total_tokens: 1000 }), replied([spawn('a', { wait: false })], { usage: tokens }));
    expect(limitsOf(state)).toMatchObject([{ max_total_tokens: 450 }]);
  });

  test('is not more than its own limits; what it does not need is there for the next', () => {
    const state = after(begun({ max_total_tokens: 1000 }), replied([spawn('a'), spawn('b')], { usage: tokens, own: { max_total_tokens: 100, tool_budget: 5, max_depth: 1 } }));
    expect(limitsOf(state)).toEqual([1, 2].map(() => ({ max_total_tokens: 100, max_cost_usd: null, tool_budget: 5, max_depth: 1 })));
    expect(limitsOf(after(begun(), replied([spawn('a')])))).toMatchObject([{ max_total_tokens: null, max_cost_usd: null, max_depth: 2 }]);
  });

  test('is reserved until it ends: then what it has used is the run\'s own', () => {
    const state = after(begun({ max_total_tokens: 1000, tool_budget: 21 }), replied([spawn('a', { wait: false })], { usage: tokens }), settled([], [{ tool_use_id: 'a', content: 'run_a', is_error: false, duration: 0 }]));
    expect(reserved(state)).toMatchObject({ tokens: 450, tool_calls: 10 });
    const next = lookAhead(state, [{ type: 'turn_start', attempt: 1, worker: 'w' }]);
    const told = fold(next, decide(next, replied([write('w')], { commands: [ended('a')] })));
    expect([reserved(told).tokens, told.usage.input_tokens, told.usage.cost_usd, told.tool_calls]).toEqual([0, 110, 0.5, 4]);
    const over = decide(next, replied([write('w')], { usage: { ...noUsage, input_tokens: 450 } }));
    expect(over.events.at(-1)).toMatchObject({ type: 'run_end', stop_reason: 'token_budget' });
    const many = decide(next, replied(Array.from({ length: 11 }, (_, index) => write(`w${index}`))));
    expect(many.effect).toMatchObject({ type: 'summarise', purpose: { reason: 'tool_budget' } });
  });
});

describe('the end of a sub-agent', () => {
  test('is the result of its call, marked; the last one wakes the run', () => {
    const state = waiting(spawn('a'), spawn('b'));
    const first = decide(state, claimed([ended('b')]));
    expect([said(first), first.effect.type]).toEqual([['run_b completed', 'b ok'], 'pause']);
    const next = fold(state, first);
    expect(next).toMatchObject({ status: 'paused', pause_reason: 'children', pending: [{ tool_use_id: 'a' }] });
    const last = decide(next, claimed([ended('a')]));
    expect([said(last), last.effect.type]).toEqual([['run_a completed', 'a ok', 'paused→running resumed', 'turn_start', 'turn_end'], 'hand_over']);
    expect(fold(next, last).transcript.messages.slice(-2)).toMatchObject([
      { tool_use_id: 'a', content: '[Answer of the sub-agent helper, run run_a]\na says so' }, { tool_use_id: 'b', content: '[Answer of the sub-agent helper, run run_b]\nb says so' }]);
  });

  test.each(['failed', 'expired', 'cancelled'] as const)('as %s is an error that says so, and not the run\'s own', (status) => {
    const decision = decide(waiting(spawn('a')), claimed([ended('a', { status, stop_reason: 'max_turns', text: 'so far' })]));
    expect(decision.events[1]).toMatchObject({ type: 'tool_result', is_error: true, content: `[The sub-agent helper, run run_a, has given no answer: ${status} (max_turns)]\nso far` });
    expect(decision.effect).toEqual({ type: 'hand_over', delay_ms: 0 });
  });

  test('is cut like any observation', () => {
    const state = after(begun({ max_observation_bytes: 100 }), replied([spawn('a')]), settled(['a']));
    const result = decide(state, claimed([ended('a', { text: 'x'.repeat(1000) })])).events[1];
    expect(result).toMatchObject({ truncated_bytes: expect.any(Number) as number });
    expect((result as { content: string }).content.length).toBeLessThanOrEqual(100);
  });

  test('that comes before the run waits for it is not lost; twice it counts once', () => {
    const state = after(begun(), replied([spawn('a')]));
    const decision = decide(state, settled(['a'], [], [ended('a'), ended('a')]));
    expect([said(decision), decision.effect.type]).toEqual([['run_a completed', 'a ok', 'turn_end'], 'hand_over']);
    const later = fold(state, decision);
    expect(decide(lookAhead(later, [{ type: 'turn_start', attempt: 1, worker: 'w' }]), replied([write('w')], { commands: [ended('a'), ended('nobody')] })).events.some((event) => event.type === 'child_run')).toBe(false);
  });

  test('that was found out, not told, counts the same', () => {
    const state = after(begun(), replied([spawn('a')]));
    expect(said(decide(state, { ...settled([]), child_ends: [ended('a')] } as TurnInput))).toEqual(['run_a completed', 'a ok', 'turn_end']);
  });

  test('says what it has come to: its answer, what was done by a limit, or what was wrong', () => {
    const whole = (over: Partial<RunState>): RunState => ({ ...begun(), run_id: 'run_c', parent_run_id: 'run_p', stop_reason: 'answered', status: 'completed', ...over });
    expect(endOf(whole({ answer: 'yes' }))).toMatchObject({ child_run_id: 'run_c', status: 'completed', text: 'yes' });
    expect(endOf(whole({ status: 'expired', stop_reason: 'max_turns', partial: { iterations: 1, last_action_summary: '', state: {}, summary: 'half of it' } })).text).toBe('half of it');
    expect(endOf(whole({ status: 'failed', stop_reason: 'refused', error: { error_type: 'timeout', message: 'It failed.', model: 'm', retryable: false, detail: 'why' } })).text).toBe('It failed. why');
    expect(endOf(whole({ status: 'cancelled', stop_reason: 'interrupted' })).text).toBe('');
    expect(() => endOf(begun())).toThrow('has not ended');
  });
});

describe('while a run waits', () => {
  test('a steer wakes nobody, a pause outlasts the end of the last sub-agent', () => {
    const state = waiting(spawn('a'));
    expect(fold(state, decide(state, claimed([{ type: 'steer', text: 'x' }])))).toMatchObject({ status: 'paused', pause_reason: 'children' });
    const paused = fold(state, decide(state, claimed([{ type: 'pause' }])));
    expect(paused).toMatchObject({ pause_reason: 'requested', pending: [{ kind: 'child_run', tool_use_id: 'a' }] });
    const told = fold(paused, decide(paused, claimed([ended('a')])));
    expect(told).toMatchObject({ status: 'paused', pause_reason: 'requested', pending: [] });
    expect(said(decide(told, claimed([{ type: 'resume' }])))).toEqual(['paused→running resumed', 'turn_start', 'turn_end']);
  });

  test('a resume looks for the sub-agents again', () => {
    const state = waiting(spawn('a'));
    const decision = decide(state, claimed([{ type: 'resume' }]));
    expect(decision.effect).toEqual({ type: 'settle_tool_calls' });
    expect(after(fold(state, decision), settled(['a']))).toMatchObject({ status: 'paused', pause_reason: 'children' });
  });

  test('a cancel ends it, the call with its one result', () => {
    const decision = decide(waiting(spawn('a')), claimed([{ type: 'cancel' }]));
    expect(said(decision)).toEqual(['a cancelled', 'turn_end', 'paused→cancelled interrupted', 'run_end']);
  });
});

describe('other runs are told', () => {
  const told = (before: RunState, ...inputs: TurnInput[]) => tellings(before, after(before, ...inputs)).map(({ run_id, command }) => `${run_id} ${command.type}`);
  const child = (state: RunState): RunState => ({ ...state, run_id: 'run_c', parent_run_id: 'run_p' });
  const both = (): RunState => after(begun(), replied([spawn('a', { wait: false }), spawn('b')]), settled(['b'], [{ tool_use_id: 'a', content: 'run_a', is_error: false, duration: 0 }]));

  test('of a cancel: all sub-agents, and the run that started this one', () => {
    expect(told(child(both()), claimed([{ type: 'cancel' }]))).toEqual(['run_p child_ended', 'run_a cancel', 'run_b cancel']);
  });

  test('of any other end: those whose answer was waited for', () => {
    expect(told(both(), { ...claimed([{ type: 'resume' }]), deliveries: 9 } as TurnInput)).toEqual(['run_b cancel']);
  });

  test('of a pause and of its end, whatever the run waited for', () => {
    expect(told(both(), claimed([{ type: 'pause' }]))).toEqual(['run_a pause', 'run_b pause']);
    const paused = after(both(), claimed([{ type: 'pause' }]));
    expect(told(paused, claimed([{ type: 'resume' }]))).toEqual(['run_a resume', 'run_b resume']);
    expect(told(paused, claimed([{ type: 'cancel' }]))).toEqual(['run_a cancel', 'run_b cancel']);
    expect(told(paused, { ...claimed([{ type: 'resume' }]), deliveries: 9 } as TurnInput)).toEqual(['run_b cancel', 'run_a resume']);
  });

  test('nothing of what is between, and nobody who has ended', () => {
    expect(told(both(), claimed([{ type: 'steer', text: 'x' }]))).toEqual([]);
    expect(told(both(), claimed([ended('a'), { type: 'cancel' }]))).toEqual(['run_b cancel']);
    expect(told(begun(), replied([spawn('a')]), settled(['a']))).toEqual([]);
  });
});
