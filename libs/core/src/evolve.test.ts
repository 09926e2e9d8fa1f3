/** What the fold refuses: a log that breaks its own rules is a fault of ours, and must not become a state. */
import { expect, test } from 'vitest';
import { InvariantBroken } from './assert-never.ts';
import { lookAhead, stamp } from './codec.ts';
import type { EventBody, RunEvent } from './events.ts';
import { evolve } from './evolve.ts';
import { fixture } from './fixture.ts';
import type { RunState } from './state.ts';

const asked: EventBody = { type: 'tool_use', tool_use_id: 'c1', provider_id: null, tool_name: 'look', tool_input: {}, execution: 'parallel' };
const result: EventBody = { type: 'tool_result', tool_use_id: 'c1', tool_name: 'look', content: 'r', is_error: false, duration: 0 };
const end: EventBody = { type: 'run_end', status: 'cancelled', stop_reason: 'interrupted' };
const state = { ...fixture({ events: [asked] }), epoch: 3 };
const next = (of: RunState, body: EventBody, over: Partial<RunEvent> = {}): RunEvent => ({ ...stamp(of, body, of.last_ts, of.epoch), ...over }) as RunEvent;

test('the next event of this epoch or a later one is accepted', () => {
  expect(evolve(state, next(state, result)).last_seq).toBe(state.last_seq + 1);
  expect(evolve(state, next(state, result, { epoch: 7 })).epoch).toBe(7);
});

test.each([
  ['an event after a gap', state, next(state, result, { seq: state.last_seq + 2 })],
  ['an event that was there before', state, next(state, result, { seq: state.last_seq })],
  ['an event of an earlier epoch', state, next(state, result, { epoch: 2 })],
  ['C4: a second result of a call', lookAhead(state, [result]), next(lookAhead(state, [result]), result)],
  ['C4: a result of a call that nobody asked for', state, next(state, { ...result, tool_use_id: 'c2' } as EventBody)],
  ['C5: anything after the end', lookAhead(state, [result, end]), next(lookAhead(state, [result, end]), { type: 'steer', content: 'x' })],
  ['C5: a second end', lookAhead(state, [result, end]), next(lookAhead(state, [result, end]), end)],
] satisfies [string, RunState, RunEvent][])('%s is refused', (_name, before, event) => {
  expect(() => evolve(before, event)).toThrow(InvariantBroken);
});
