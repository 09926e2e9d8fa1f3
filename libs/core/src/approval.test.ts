/** Calls that need a person's word: given events, when an input comes, then events and an effect. */
import { describe, expect, test } from 'vitest';
import type { ToolDefinition } from './agent-spec.ts';
import { InvariantBroken } from './assert-never.ts';
import { isNewer, lookAhead, stateChanges } from './codec.ts';
import type { Command } from './command.ts';
import { decide } from './decide.ts';
import type { EventBody } from './events.ts';
import { fixture, fold, model, reply, tool } from './fixture.ts';
import { runnableCalls } from './questions.ts';
import { modelRequest } from './request.ts';
import { initialState, type RunState } from './state.ts';
import { noJudgement, type Decision, type ReplyCall, type SettledCall, type TurnInput } from './turn-input.ts';

const rule = (over: Partial<NonNullable<ToolDefinition['approval']>> = {}) => ({ timeout_s: null, on_timeout: 'deny' as const, ...over });
const deploy = (over: Partial<NonNullable<ToolDefinition['approval']>> = {}) => tool('deploy', { effect: 'once', parallel: 'serial', approval: rule(over) });
const start = (tools: readonly ToolDefinition[] = [deploy(), tool('mail', { effect: 'once', parallel: 'serial' })], spec = {}): RunState =>
  fixture({ spec, events: [{ type: 'tools_changed', problems: [], done: 'pinned', tools }] });
const call = (id: string, name = 'deploy', problem: string | null = null): ReplyCall => ({ provider_id: id, name, input: { to: id }, problem });
const digestOf = (id: string): string => `sha256:${id}`;
const replied = (calls: readonly ReplyCall[], commands: Command[] = []): TurnInput => ({
  type: 'model_replied', unavailable: [], now_s: 1000, reply: reply({ text: 'I will.', calls }), judgement: noJudgement, shown_text: '', elapsed_s: 3, commands,
  approvals: Object.fromEntries(calls.filter(({ name }) => name === 'deploy').map(({ provider_id }) => [provider_id, digestOf(provider_id!)])) });
const claimed = (commands: Command[] = [], over: { now_s?: number; wait_ms?: number; begun?: SettledCall[] } = {}): TurnInput => ({
  type: 'turn_claimed', unavailable: [], room_ms: 0, now_s: 1000, worker: 'w', deliveries: 1, poison_limit: 3, nudges: 0, nudge_limit: 5, wait_ms: 0, judgement: noJudgement, history: null, begun: [], tools: null,
  tool_problems: [], commands, ...over });
const word = (id: string, decision: 'approve' | 'deny', over: Partial<Command & { type: 'approval' }> = {}): Command =>
  ({ type: 'approval', tool_use_id: id, digest: digestOf(id), decision, by: 'ann', reason: null, ...over });
const types = (decision: Decision): string[] => decision.events.map((event) => event.type === 'state_change' ? `${event.old}→${event.new} ${event.reason}`
  : event.type === 'tool_result' ? `${event.tool_use_id} ${event.outcome ?? 'ok'}` : event.type === 'approval_resolved' ? `${event.tool_use_id} ${event.decision} by ${event.by}` : event.type);
const after = (state: RunState, ...inputs: TurnInput[]): RunState => inputs.reduce((now, input) => fold(now, decide(now, input)), state);
const waiting = (...calls: ReplyCall[]): RunState => after(start(), replied(calls));
const results = (state: RunState): string[] => state.transcript.messages.flatMap((message) => message.role === 'tool' ? [`${message.tool_use_id} ${message.content}`] : []);

test('a call may be named as what every object has: it needs a word where somebody said so, and is no sub-agent', () => {
  for (const id of ['valueOf', '__proto__', 'constructor']) {
    expect(types(decide(start(), { ...replied([call(id, 'mail')]), children: {} } as TurnInput))).toEqual(['assistant_text', 'tool_use']);
    expect(types(decide(start(), replied([call(id)])))).toContain('approval_requested');
  }
});

test('a run that has such a tool is none for a version that would not ask', () => {
  const stored = (state: RunState): { fields: Readonly<Record<string, string>> } => stateChanges(initialState, state);
  expect(stored(start()).fields['fold_version']).toBe('2');
  expect(isNewer(stored(start()))).toBe(false);
  expect(isNewer({ fields: { fold_version: '3' } })).toBe(true);
  expect(stored(start([tool('mail')])).fields).not.toHaveProperty('fold_version');
});

describe('a reply with a call that needs a word', () => {
  test('pauses the run with the reply, and says what is waited for', () => {
    const decision = decide(start(), replied([call('a'), call('m', 'mail')]));
    expect(types(decision)).toEqual(['assistant_text', 'tool_use', 'tool_use', 'approval_requested', 'running→paused approval']);
    expect(decision.events[3]).toEqual({ type: 'approval_requested', tool_use_id: 'a', tool_name: 'deploy', digest: 'sha256:a', expires_at: null });
    expect(decision.effect).toEqual({ type: 'pause' });
    const state = fold(start(), decision);
    expect(state).toMatchObject({
      status: 'paused', pause_reason: 'approval', resumes_at: null, parks: 0, active_s: 3,
      pending: [{ kind: 'approval', tool_use_id: 'a', tool_name: 'deploy', tool_input: { to: 'a' }, expires_at: null, digest: 'sha256:a' }] });
    // The whole batch waits: not even the call that needs none may run.
    expect(runnableCalls(state)).toEqual([]);
  });

  test('runs nothing of the batch before the last word; then all of it, in its order', () => {
    const state = waiting(call('a'), call('m', 'mail'), call('b'));
    const first = decide(state, claimed([word('b', 'approve')]));
    expect(types(first)).toEqual(['b approve by ann']);
    expect(first.effect).toEqual({ type: 'pause' });
    const one = fold(state, first);
    expect(one).toMatchObject({ status: 'paused', pause_reason: 'approval', pending: [{ tool_use_id: 'a' }] });
    expect(runnableCalls(one)).toEqual([]);
    const last = decide(one, claimed([word('a', 'approve')]));
    expect(types(last)).toEqual(['paused→running resumed', 'a approve by ann', 'turn_start']);
    expect(last.effect).toEqual({ type: 'settle_tool_calls' });
    expect(runnableCalls(fold(one, last)).map(({ tool_use_id }) => tool_use_id)).toEqual(['a', 'm', 'b']);
  });

  test('asks for no word on arguments that no tool can take', () => {
    const decision = decide(start(), replied([call('a', 'deploy', 'to is missing')]));
    expect(types(decision)).not.toContain('approval_requested');
    expect(decision.effect).toEqual({ type: 'settle_tool_calls' });
  });

  test('counts for the tool budget before anybody is asked', () => {
    const state = fixture({ limits: { tool_budget: 1 }, events: [{ type: 'tools_changed', problems: [], done: 'pinned', tools: [deploy()] }] });
    expect(types(decide(state, replied([call('a'), call('b')])))).not.toContain('approval_requested');
    expect(after(state, replied([call('a')]), claimed([word('a', 'deny')]))).toMatchObject({ tool_calls: 1, status: 'running' });
  });
});

describe('a word', () => {
  test('that denies is the result of the call, with its reason; the rest of the batch runs', () => {
    const state = waiting(call('a'), call('m', 'mail'));
    const decision = decide(state, claimed([word('a', 'deny', { reason: 'not on a Friday' })]));
    expect(types(decision)).toEqual(['paused→running resumed', 'a deny by ann', 'a denied', 'turn_start']);
    expect(decision.events[2]).toMatchObject({ is_error: true, outcome: 'denied', content: 'A person has denied this call; it was not carried out. Reason: not on a Friday' });
    expect(runnableCalls(fold(state, decision)).map(({ tool_use_id }) => tool_use_id)).toEqual(['m']);
  });

  test('that denies all there is ends the turn, and neither counts as an error of a tool nor as something done', () => {
    const state = { ...waiting(call('a'), call('b')), consecutive_errors: 2 };
    const decision = decide(state, claimed([word('a', 'deny'), word('b', 'deny')]));
    expect(types(decision).slice(-2)).toEqual(['turn_start', 'turn_end']);
    expect(decision.effect).toEqual({ type: 'hand_over', delay_ms: 0 });
    expect(fold(state, decision)).toMatchObject({ consecutive_errors: 2, tool_errors: 0, tool_calls: 2, calls: [] });
  });

  test.each([
    ['on another call', word('zz', 'approve')], ['on the same call with other arguments', word('a', 'approve', { digest: 'sha256:other' })],
  ])('%s says nothing', (_what, command) => {
    const decision = decide(waiting(call('a')), claimed([command]));
    expect(decision).toEqual({ events: [], effect: { type: 'pause' } });
  });

  test('counts once: of two the first, and none after it', () => {
    const state = waiting(call('a'));
    expect(types(decide(state, claimed([word('a', 'deny'), word('a', 'approve')])))).toEqual(['paused→running resumed', 'a deny by ann', 'a denied', 'turn_start', 'turn_end']);
    const approved = after(state, claimed([word('a', 'approve')]));
    expect(types(decide(approved, claimed([word('a', 'deny')])))).toEqual(['turn_start']);
    expect(runnableCalls(after(approved, claimed([word('a', 'deny')])))).toHaveLength(1);
  });

  test('is not asked for again by whoever takes the run over', () => {
    const approved = after(waiting(call('a')), claimed([word('a', 'approve')]));
    const decision = decide(approved, claimed());
    expect(types(decision)).toEqual(['turn_start']);
    expect(decision.effect).toEqual({ type: 'settle_tool_calls' });
    // Even where the store still says how long the pause would have lasted.
    expect(decide(approved, claimed([], { wait_ms: 90_000 })).effect).toEqual({ type: 'settle_tool_calls' });
  });
});

describe('a word with other arguments', () => {
  const changed = { input: { to: 'staging' }, digest: 'sha256:a2' };

  test('is what is carried out, and what the model sees as its call', () => {
    const state = waiting(call('a'), call('m', 'mail'));
    const decision = decide(state, claimed([word('a', 'approve', { changed })]));
    expect(decision.events[1]).toEqual({ type: 'approval_resolved', tool_use_id: 'a', digest: 'sha256:a', decision: 'approve', by: 'ann', reason: null, input: { to: 'staging' }, new_digest: 'sha256:a2' });
    const now = fold(state, decision);
    expect(now.calls[0]).toMatchObject({ tool_input: { to: 'staging' }, approval: { state: 'approved', digest: 'sha256:a2' } });
    expect(now.transcript.generation).toBe(state.transcript.generation + 1);
    expect(modelRequest(now, model('m1', 1000)).messages.at(-3)).toMatchObject({ role: 'assistant', text: 'I will.', calls: [{ tool_use_id: 'a', tool_input: { to: 'staging' } }, { tool_use_id: 'm', tool_input: { to: 'm' } }] });
  });

  test('keeps what the provider wants back with its thinking', () => {
    const input = replied([call('a')]) as Extract<TurnInput, { type: 'model_replied' }>;
    const state = after(start(), { ...input, reply: { ...input.reply, thinking: 'hm', provider_data: { signature: 's' } } }, claimed([word('a', 'approve', { changed })]));
    expect(state.transcript.messages.at(-1)).toMatchObject({ thinking: 'hm', provider_data: { signature: 's' } });
  });

  test('is said anew where a call is text', () => {
    const action = { skill_name: 'deploy', arguments: { to: 'production' } };
    const input = replied([{ ...call('a'), provider_id: null }]) as Extract<TurnInput, { type: 'model_replied' }>;
    const asText: TurnInput = { ...input, reply: { ...input.reply, text: `So: ${JSON.stringify(action)}` }, approvals: { call_t1_0: 'sha256:a' } };
    const state = after(start(undefined, { protocol: 'json_action' }), asText, claimed([word('call_t1_0', 'approve', { digest: 'sha256:a', changed })]));
    const [, said] = modelRequest(state, model('m1', 1000)).messages;
    expect(said).toMatchObject({ role: 'assistant', calls: [], text: JSON.stringify({ skill_name: 'deploy', arguments: { to: 'staging' } }) });
  });

  test('says nothing where it denies', () => {
    const decision = decide(waiting(call('a')), claimed([word('a', 'deny', { changed })]));
    expect(decision.events[1]).not.toHaveProperty('input');
  });
});

describe('time', () => {
  const late = (over: Partial<NonNullable<ToolDefinition['approval']>>, ...calls: ReplyCall[]): RunState => after(start([deploy({ timeout_s: 60, ...over }), tool('mail')]), replied(calls));

  test('is kept by the store: the run wakes when the first call is overdue', () => {
    const decision = decide(start([deploy({ timeout_s: 60.5 })]), replied([call('a')]));
    expect(decision.effect).toEqual({ type: 'pause', delay_ms: 60_500 });
    expect(fold(start([deploy({ timeout_s: 60.5 })]), decision)).toMatchObject({ resumes_at: '1970-01-01T00:17:40.500Z', parks: 0, pending: [{ expires_at: '1970-01-01T00:17:40.500Z' }] });
  });

  test('that is over denies the call, even by a clock that is late; the rest runs', () => {
    const state = late({}, call('a'), call('m', 'mail'));
    const decision = decide(state, claimed([], { now_s: 1059.9 }));
    expect(types(decision)).toEqual(['paused→running resumed', 'a deny by host', 'a denied', 'turn_start']);
    expect(results(fold(state, decision))).toEqual(['a Nobody approved of this call in time; it was not carried out.']);
    expect(decision.effect).toEqual({ type: 'settle_tool_calls' });
  });

  test('that is not over does not count as such where the run was woken for something else', () => {
    const decision = decide(late({}, call('a')), claimed([], { now_s: 1010 }));
    expect(types(decision)).toEqual(['paused→running resumed', 'running→paused approval']);
    expect(decision.effect).toEqual({ type: 'pause', delay_ms: 50_000 });
  });

  test('that is over ends the run where its tool says so, every call with its one result', () => {
    const state = late({ on_timeout: 'expire' }, call('a'), call('m', 'mail'));
    const decision = decide(state, claimed([], { now_s: 1060 }));
    expect(types(decision)).toEqual(['paused→running resumed', 'a deny by host', 'a denied', 'm not_started', 'turn_end']);
    expect(decision.effect).toMatchObject({ type: 'summarise', purpose: { type: 'limit', reason: 'approval_timeout' } });
    const summarised: TurnInput = { type: 'summarised', purpose: { type: 'limit', reason: 'approval_timeout' }, text: 'Nothing was deployed.', usage: null, model: 'm1', elapsed_s: 1, unavailable: [], now_s: 1061, commands: [] };
    expect(after(fold(state, decision), summarised)).toMatchObject({ status: 'expired', stop_reason: 'approval_timeout', partial: { summary: 'Nothing was deployed.' } });
  });

  test('does not count against a word that was accepted before it was over', () => {
    expect(types(decide(late({}, call('a')), claimed([word('a', 'approve')], { now_s: 1060 })))).toEqual(['paused→running resumed', 'a approve by ann', 'turn_start']);
  });

  test('goes on while others say something', () => {
    const state = late({}, call('a'), call('b'));
    expect(decide(state, claimed([{ type: 'steer', text: 'x' }], { wait_ms: 7000 })).effect).toEqual({ type: 'pause', delay_ms: 7000 });
    expect(decide(state, claimed([word('a', 'approve')], { wait_ms: 7000 })).effect).toEqual({ type: 'pause', delay_ms: 7000 });
    const resumed = decide(state, claimed([{ type: 'resume' }], { wait_ms: 7000, now_s: 1053 }));
    expect(types(resumed)).toEqual(['paused→running resumed', 'running→paused approval']);
    expect(resumed.effect).toEqual({ type: 'pause', delay_ms: 7000 });
  });

  test('stands still for a run that somebody has paused; it is looked at again when that is over', () => {
    const state = after(late({}, call('a')), claimed([{ type: 'pause' }], { wait_ms: 7000 }));
    expect(state).toMatchObject({ status: 'paused', pause_reason: 'requested', resumes_at: null, pending: [{ tool_use_id: 'a' }] });
    expect(types(decide(state, claimed([{ type: 'resume' }], { now_s: 1053 })))).toEqual(['paused→running resumed', 'running→paused approval']);
    expect(types(decide(state, claimed([{ type: 'resume' }], { now_s: 1070 })))).toEqual(['paused→running resumed', 'a deny by host', 'a denied', 'turn_start', 'turn_end']);
    // The pause came with the very moment at which the call was overdue.
    expect(after(late({}, call('a')), claimed([{ type: 'pause' }], { now_s: 1060 }))).toMatchObject({ pause_reason: 'requested', pending: [{ tool_use_id: 'a' }] });
  });
});

describe('while a run waits for words', () => {
  test.each([
    ['before', [{ type: 'cancel' }], ['a not_started', 'm not_started']], ['with', [word('a', 'approve'), { type: 'cancel' }], ['a approve by ann', 'a not_started', 'm not_started']],
    ['beside', [word('a', 'deny'), { type: 'cancel' }], ['a deny by ann', 'a denied', 'm not_started']],
  ] satisfies [string, Command[], string[]][])('a cancel %s a word ends it, every call with its one result', (_when, commands, told) => {
    const state = waiting(call('a'), call('m', 'mail'));
    expect(types(decide(state, claimed(commands)))).toEqual([...told, 'turn_end', 'paused→cancelled interrupted', 'run_end']);
  });

  test('a steer is a fact at once, and reaches the model behind the results', () => {
    const state = after(waiting(call('a')), claimed([{ type: 'steer', text: 'be quick' }]));
    expect(state).toMatchObject({ status: 'paused', pause_reason: 'approval', pending: [{ tool_use_id: 'a' }] });
    const done = after(state, claimed([word('a', 'approve')]), { type: 'tool_calls_settled', results: [{ tool_use_id: 'a', content: 'deployed', is_error: false, duration: 0 }], elapsed_s: 1, timed_out: null, commands: [] });
    expect(done.transcript.messages.slice(-2)).toMatchObject([{ role: 'tool', content: 'deployed' }, { role: 'host', content: 'be quick' }]);
  });

  test('a pause outlasts the words, and its end begins the batch', () => {
    const paused = after(waiting(call('a')), claimed([{ type: 'pause' }]));
    expect(paused).toMatchObject({ pause_reason: 'requested', pending: [{ kind: 'approval', tool_use_id: 'a' }] });
    const told = after(paused, claimed([word('a', 'approve')]));
    expect(told).toMatchObject({ status: 'paused', pause_reason: 'requested', pending: [] });
    expect(decide(told, claimed([{ type: 'resume' }])).effect).toEqual({ type: 'settle_tool_calls' });
  });

  test('a pause that comes with the reply keeps what is waited for', () => {
    const paused = after(start(), replied([call('a')], [{ type: 'pause' }]));
    expect(paused).toMatchObject({ pause_reason: 'requested', pending: [{ kind: 'approval', tool_use_id: 'a' }] });
    expect(after(paused, claimed([{ type: 'resume' }]))).toMatchObject({ pause_reason: 'approval', pending: [{ tool_use_id: 'a' }] });
  });
});

describe('the log refuses', () => {
  const requested: EventBody = { type: 'approval_requested', tool_use_id: 'a', tool_name: 'deploy', digest: 'sha256:a', expires_at: null };
  const resolved: EventBody = { type: 'approval_resolved', tool_use_id: 'a', digest: 'sha256:a', decision: 'approve', by: 'ann', reason: null };
  test.each([
    ['a word on a call that waits for none', after(start(), replied([call('m', 'mail')])), { ...resolved, tool_use_id: 'm' }],
    ['a second word', after(waiting(call('a'), call('b')), claimed([word('a', 'approve')])), resolved],
    ['a word with other arguments', waiting(call('a')), { ...resolved, digest: 'sha256:other' }],
    ['a call that is asked about twice', waiting(call('a')), requested],
    ['a call that nobody has made', start(), requested],
  ] satisfies [string, RunState, EventBody][])('%s', (_what, state, body) => {
    expect(() => lookAhead(state, [body])).toThrow(InvariantBroken);
  });
});
