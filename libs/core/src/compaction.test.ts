/** Making room: which level does what, what always survives, and what happens when nothing helps. */
import { describe, expect, test } from 'vitest';
import { lookAhead } from './codec.ts';
import { decide } from './decide.ts';
import type { EventBody } from './events.ts';
import { fixture, fold } from './fixture.ts';
import type { Message } from './message.ts';
import { estimateTokens, modelRequest } from './request.ts';
import { repairOf } from './repair.ts';
import { specOf, type RunState } from './state.ts';
import { noJudgement, type Decision, type TurnInput } from './turn-input.ts';
import { noUsage } from './usage.ts';

const claimed: TurnInput = {
  type: 'turn_claimed', unavailable: [], room_ms: 0, now_s: 1000, worker: 'w', deliveries: 1, poison_limit: 3, nudges: 0, nudge_limit: 5, wait_ms: 0, begun: [], judgement: noJudgement, history: null, tools: null, tool_problems: [], commands: [] };
const turnEnded: EventBody = { type: 'turn_end', duration: 0, usage: noUsage };
const turnBegun: EventBody = { type: 'turn_start', attempt: 1, worker: 'w' };

/** `turns` turns of two calls with results of so many bytes each; the last one has ended. */
function long(turns: number, bytes: number, window: number, limits = {}): RunState {
  const events: EventBody[] = [];
  for (let turn = 0; turn < turns; turn++) {
    if (turn > 0) events.push(turnBegun);
    for (const half of ['a', 'b']) events.push({ type: 'tool_use', tool_name: 'look', tool_input: { turn, half }, tool_use_id: `t${turn}${half}`, provider_id: null, execution: 'parallel' });
    for (const half of ['a', 'b']) events.push({ type: 'tool_result', tool_use_id: `t${turn}${half}`, tool_name: 'look', content: `${half}${'x'.repeat(bytes)}`, is_error: false, duration: 0 });
    events.push(turnEnded);
  }
  return fixture({ window, limits: { loop_limit: 1000, ...limits }, events });
}

const levels = (decision: Decision): string[] => decision.events.flatMap((event) => event.type === 'compaction' ? [event.level] : []);

/** Answers summaries until the model is asked or the run ends. */
function settle(state: RunState, first: Decision, summary: string | null): { state: RunState; decision: Decision; levels: string[] } {
  let now = fold(state, first);
  let decision = first;
  const all = levels(first);
  while (decision.effect.type === 'summarise') {
    decision = decide(now, { type: 'summarised', model: 'm1', unavailable: [], now_s: 1000, purpose: decision.effect.purpose, text: summary, usage: null, elapsed_s: 1, commands: [] });
    all.push(...levels(decision));
    now = fold(now, decision);
  }
  return { state: now, decision, levels: all };
}

function valid(state: RunState): void {
  const messages = modelRequest(state, specOf(state).chain.models[state.position]!).messages;
  expect(messages[0]).toMatchObject({ role: 'user', content: 'hi' });
  messages.forEach((message: Message, index) => {
    if (message.role === 'tool') expect(['assistant', 'tool']).toContain(messages[index - 1]!.role);
    if (message.role !== 'assistant') return;
    const behind = messages.slice(index + 1, index + 1 + message.calls.length);
    expect(behind.map((each) => each.role === 'tool' ? each.tool_use_id : '')).toEqual(message.calls.map((call) => call.tool_use_id));
  });
  expect(repairOf(state.transcript.messages)).toBeNull();
}

describe('before a request would pass compact_at of the window', () => {
  test('bodies of old results go first, the newest exchanges stay whole', () => {
    const state = long(10, 400, 2300);
    const { state: after, levels: used } = settle(state, decide(state, claimed), 'unused');
    expect(used).toEqual(['results']);
    const results = after.transcript.messages.filter((message) => message.role === 'tool');
    expect(results.map((message) => message.content.length > 300)).toEqual([...Array<boolean>(16).fill(false), ...Array<boolean>(4).fill(true)]);
    valid(after);
  });

  test('then a summary of the middle, which a later one replaces', () => {
    const state = long(30, 200, 2500);
    const once = settle(state, decide(state, claimed), 'They looked around.');
    expect(once.levels).toEqual(['summary']);
    expect(once.state.transcript.messages[1]).toMatchObject({ role: 'host', note: 'summary', content: 'Summary of the conversation so far:\nThey looked around.' });
    expect(once.decision.effect.type).toBe('call_model');
    valid(once.state);
    expect(once.state.retired_ids).toContain('t0a');
  });

  test('without a summary the oldest of the middle are cut out', () => {
    const state = long(30, 200, 2500);
    const { state: after, levels: used } = settle(state, decide(state, claimed), null);
    expect(used).toEqual(['snip']);
    expect(estimateTokens(after, 'm1')).toBeLessThan(0.8 * 2500);
    valid(after);
  });

  test('one huge newest result is capped at last', () => {
    const state = long(1, 9000, 1200);
    const { state: after, levels: used, decision } = settle(state, decide(state, claimed), null);
    expect(used).toEqual(['emergency_snip']);
    expect(decision.effect.type).toBe('call_model');
    valid(after);
  });

  test('C03: wherever the cut falls, no call is without its result', () => {
    for (let turns = 4; turns <= 24; turns++) {
      for (const bytes of [50, 120, 350, 700]) {
        const state = long(turns, bytes, 1500);
        const done = settle(state, decide(state, claimed), turns % 2 === 0 ? 'So far.' : null);
        valid(done.state);
        if (done.decision.effect.type === 'call_model') expect(estimateTokens(done.state, 'm1')).toBeLessThanOrEqual(1500 * 4);
      }
    }
  });

  test('a model with a larger window is next, then the run ends as context_exhausted', () => {
    const big = 'y'.repeat(10_000);
    const state = lookAhead(fixture({ window: 1000 }), [{ type: 'user_message', content: 'z' }, turnEnded]);
    const stuffed = { ...state, spec: { ...specOf(state), instructions: big } };
    const hop = decide(stuffed, claimed);
    expect(hop.events.find((event) => event.type === 'error')).toMatchObject({ error_type: 'context_overflow', action: 'fallback', to_model: 'm2' });
    const stuck = decide({ ...state, spec: { ...specOf(state), instructions: big.repeat(4) } }, claimed);
    expect(stuck.events.at(-1)).toMatchObject({ type: 'run_end', stop_reason: 'context_exhausted' });
  });
});

describe('a request that the model refused for its length', () => {
  const overflow = (state: RunState): RunState => {
    const failure = { error_type: 'context_overflow', detail: 'too long', retry_after_s: null, partial_text: '', usage: null } as const;
    return fold(state, decide(state, { type: 'model_failed', unavailable: [], now_s: 1000, failure, elapsed_s: 1, timed_out: null, jitter: 0, commands: [] }));
  };

  test('is sent again only smaller: first compacted, then cut hard, whatever the estimate says', () => {
    let state = lookAhead(long(12, 400, 100_000), [turnBegun]);
    const sizes = [estimateTokens(state, 'm1')];
    for (const flag of [true, false]) {
      state = overflow(state);
      expect(state.reactive_tried).toBe(flag);
      const done = settle(state, decide(state, claimed), null);
      expect(done.decision.effect.type).toBe('call_model');
      state = done.state;
      sizes.push(estimateTokens(state, 'm1'));
    }
    expect(sizes[1]!).toBeLessThan(0.75 * sizes[0]!);
    expect(sizes[2]!).toBeLessThan(0.5 * sizes[1]!);
    valid(state);
  });

  test('C35: keeps its newest exchanges where old results alone make it smaller by a good part', () => {
    const begun = lookAhead(long(3, 2000, 100_000), [turnBegun]);
    const state = overflow({ ...begun, spec: { ...specOf(begun), instructions: 'y'.repeat(6000) } });
    const done = settle(state, decide(state, claimed), null);
    expect(done.levels).toEqual(['results']);
    expect(estimateTokens(done.state, 'm1')).toBeGreaterThan(0.7 * estimateTokens(state, 'm1'));
    expect(done.state.transcript.messages.filter((message) => message.role === 'tool')).toHaveLength(6);
    // Refused again, it is cut hard.
    const again = overflow(done.state);
    expect(settle(again, decide(again, claimed), null).levels).toEqual(['emergency_snip']);
  });

  test('with nothing left to leave out is not sent again at all', () => {
    const state = overflow(fixture({ window: 100_000, spec: { chain: { name: 'c', models: [{ name: 'm1', provider: 'p', model: 'm1', context_window: 100_000, max_output_tokens: 10, supports_tools: true, supports_images: false }] } } }));
    expect(decide(state, claimed).events.at(-1)).toMatchObject({ type: 'run_end', stop_reason: 'context_exhausted' });
  });
});

test('a provider that counted far fewer tokens than were sent is not gone on with blindly', () => {
  const state = lookAhead(long(12, 4000, 100_000), [turnBegun, {
    type: 'model_request', model: 'm1', provider: 'p', chain: 'c', position: 0, canary: false, skipped: [], estimated_tokens: 24_000, message_count: 30 }]);
  const reply = { text: 'Hello, how can I help?', thinking: '', provider_data: null, calls: [], finish: 'stop', finish_raw: 'stop', usage: { ...noUsage, input_tokens: 2048 } } as const;
  const decision = decide(state, { type: 'model_replied', unavailable: [], now_s: 1000, reply, judgement: noJudgement, shown_text: '', elapsed_s: 1, commands: [] });
  expect(decision.events.slice(0, 2)).toMatchObject([{ type: 'context_truncated', estimated_tokens: 24_000, counted_tokens: 2048 }, { type: 'error', error_type: 'context_overflow', action: 'reactive_compact' }]);
});

test.each([
  ['a long request counted half as much again', 10_000, 15_000, 1.455], ['one counted far below', 10_000, 5000, 0.545],
  ['a short request, of which most is what the provider adds to any', 38, 105, 1.065],
])('estimates follow what the provider counted: %s', (_name, estimated_tokens, input_tokens, factor) => {
  const request: EventBody = { type: 'model_request', model: 'm1', provider: 'p', chain: 'c', position: 0, canary: false, skipped: [], estimated_tokens, message_count: 1 };
  const reply: EventBody = { type: 'assistant_text', content: 'x', is_final: true, attempt: 1, usage: { ...noUsage, input_tokens } };
  expect(lookAhead(fixture(), [request, reply]).calibration).toEqual({ m1: factor });
});

test('a factor is not applied to itself: the same count again leaves it as it is', () => {
  let state = fixture();
  for (let turn = 0; turn < 4; turn++) {
    const estimated_tokens = Math.round(8000 * (state.calibration.m1 ?? 1));
    state = lookAhead(state, [
      { type: 'model_request', model: 'm1', provider: 'p', chain: 'c', position: 0, canary: false, skipped: [], estimated_tokens, message_count: 1 },
      { type: 'assistant_text', content: 'x', is_final: true, attempt: 1, usage: { ...noUsage, input_tokens: 16_000 } }]);
  }
  expect(state.calibration.m1).toBeCloseTo(17 / 9, 2);
});

test('the last resort leaves room for what must stay: a long first message is not a reason to give up', () => {
  const state = lookAhead(fixture({ window: 2000 }), [
    { type: 'user_message', content: 'y'.repeat(3200) }, { type: 'tool_use', tool_name: 'look', tool_input: {}, tool_use_id: 't1', provider_id: null, execution: 'parallel' },
    { type: 'tool_result', tool_use_id: 't1', tool_name: 'look', content: 'x'.repeat(20_000), is_error: false, duration: 0 }, turnEnded]);
  const decision = decide(state, claimed);
  expect(levels(decision)).toEqual(['emergency_snip']);
  expect(decision.effect.type).toBe('call_model');
  expect(estimateTokens(fold(state, decision), 'm1')).toBeLessThanOrEqual(2000);
});

describe('what earlier runs of the session have said', () => {
  const session = (messages: readonly Message[], events: readonly EventBody[] = []): RunState =>
    lookAhead(fixture({ window: 1000, events: [turnEnded] }), [{ type: 'session_history', from_run_id: 'run_0', generation: 2, messages }, ...events]);
  const huge: Message = { role: 'user', content: 'y'.repeat(40_000) };
  const said: readonly Message[] = [{ role: 'user', content: 'earlier' }, { role: 'assistant', text: 'Yes?', thinking: '', model: 'm1', calls: [] }];

  test.each([['a message that no window holds', [huge]], ['one behind others', [...said, huge]], ['many without an answer', [said[0]!, ...Array.from({ length: 30 }, (): Message => ({ role: 'user', content: 'y'.repeat(1000) }))]]])(
    'does not keep a run from being asked: %s', (_, messages) => {
      const state = session(messages);
      const done = settle(state, decide(state, claimed), null);
      expect(done.levels).toEqual(['emergency_snip']);
      expect(done.decision.effect.type).toBe('call_model');
      expect(done.state.transcript.messages).toMatchObject([{ role: 'user', content: 'hi' }]);
    });

  test('goes where the run has its own calls, whose results stay with them', () => {
    const state = session([huge], [turnBegun, { type: 'tool_use', tool_name: 'look', tool_input: {}, tool_use_id: 't1', provider_id: null, execution: 'parallel' },
      { type: 'tool_result', tool_use_id: 't1', tool_name: 'look', content: 'x'.repeat(9000), is_error: false, duration: 0 }, turnEnded]);
    const done = settle(state, decide(state, claimed), null);
    expect(done.decision.effect.type).toBe('call_model');
    expect(done.state.transcript.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
    valid(done.state);
  });

  test('stays where a window of the chain holds it', () => {
    const state = session([{ role: 'user', content: 'y'.repeat(8000) }]);
    const done = settle(state, decide(state, claimed), null);
    expect(done.decision.events.find((event) => event.type === 'error')).toMatchObject({ action: 'fallback', to_model: 'm2' });
    expect(done.state.transcript.messages).toHaveLength(2);
  });
});

test('a transcript that is not fit to be sent is mended, and the log says so', () => {
  const state = long(2, 10, 100_000);
  const messages = state.transcript.messages.filter((message) => !(message.role === 'tool' && message.tool_use_id === 't0b'));
  const broken: RunState = { ...state, transcript: { ...state.transcript, messages } };
  const decision = decide(broken, claimed);
  expect(decision.events.find((event) => event.type === 'history_repaired')).toMatchObject({ problem: 'a call without its result' });
  valid(fold(broken, decision));
});
