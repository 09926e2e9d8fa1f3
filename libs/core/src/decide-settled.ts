/**
 * Results have come: more calls are run, or the turn ends.
 */
import { awaited, neverStarted } from './children.ts';
import { wishesOf } from './command.ts';
import { lookAhead } from './codec.ts';
import { asked } from './doubt.ts';
import { closingResults, endRun, turnEnd } from './ending.ts';
import type { EventBody } from './events.ts';
import { repetitions } from './fingerprint.ts';
import { pause } from './pausing.ts';
import { goOnWithCalls } from './questions.ts';
import type { RunState } from './state.ts';
import type { Decision, ToolCallsSettled } from './turn-input.ts';

export function decideSettled(state: RunState, input: ToolCallsSettled): Decision {
  const wishes = wishesOf(input.commands);
  const end = { elapsed_s: input.elapsed_s, turn_open: true };
  const lost = neverStarted(state, input.results);
  const closing = [...lost, ...closingResults(state, input.results), ...wishes.events];
  if (wishes.cancel) return endRun(state, 'interrupted', { ...end, before: closing });
  if (input.timed_out !== null) return endRun(state, input.timed_out, { ...end, before: closing });

  const inDoubt = asked(state, input.results);
  const pending = [...inDoubt, ...awaited(state, input.awaited ?? [])];
  const fresh = new Set(input.results.map((result) => result.tool_use_id).filter((id) => !pending.some((call) => call.tool_use_id === id)));
  const rest = state.calls.filter((call) => !call.settled && !fresh.has(call.tool_use_id));
  if (rest.length > 0) {
    const settled = closingResults({ ...state, calls: state.calls.filter((call) => fresh.has(call.tool_use_id)) }, input.results);
    const events = [...lost, ...settled, ...wishes.events];
    if (wishes.pause) return pause(events, input.elapsed_s, { reason: 'requested', pending });
    if (pending.length > 0) return pause(events, input.elapsed_s, { reason: inDoubt.length > 0 ? 'outcome' : 'children', pending });
    return goOnWithCalls(lookAhead(state, events), events, input.elapsed_s);
  }
  if (state.invalid_calls >= state.limits.invalid_call_limit) return endRun(state, 'invalid_tool_calls', { ...end, before: closing });
  const looping = repetitions(state.call_prints) >= state.limits.loop_limit;
  if (looping && state.loop_noted) return endRun(state, 'loop_detected', { ...end, before: closing });
  const events: EventBody[] = [...closing, ...(looping ? [loopNote(lookAhead(state, closing))] : []), turnEnd(state, input.elapsed_s)];
  return wishes.pause ? pause(events) : { events, effect: { type: 'hand_over', delay_ms: 0 } };
}

function loopNote(state: RunState): EventBody {
  return {
    type: 'validation_error', validator_name: 'loop', error_type: 'loop_detected', retries_left: state.limits.max_retries - state.retries,
    feedback: 'You have made the same call again and again, with the same result. Do something else, or answer with what you have.',
  };
}
