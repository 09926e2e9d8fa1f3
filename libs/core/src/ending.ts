/**
 * The events with which a run ends, whatever the reason; and the duty that no call is left without its one result.
 */
import type { EventBody } from './events.ts';
import { specOf, type RunState } from './state.ts';
import { statusOfStopReason, type StopReason } from './stop-reason.ts';
import type { Decision, SettledCall } from './turn-input.ts';
import { addUsage, type Usage } from './usage.ts';

export interface EndOptions {
  /** Seconds of this claim, for the turn that the end closes. */
  readonly elapsed_s: number;
  /** Tokens of a reply decided in the same breath, not folded yet. */
  readonly usage?: Usage;
  /** Events that belong before the end: the last results, the answer. */
  readonly before?: readonly EventBody[];
  /** False where the claim began no turn. */
  readonly turn_open: boolean;
}

/** `… turn_end, [max_iterations], state_change, run_end`. Calls without a result must have theirs in `before`. */
export function endRun(state: RunState, reason: StopReason, options: EndOptions): Decision {
  const status = statusOfStopReason[reason];
  const events: EventBody[] = [...(options.before ?? [])];
  if (options.turn_open) events.push(turnEnd(state, options.elapsed_s, options.usage));
  if (status === 'expired') events.push(maxIterations(state, reason));
  events.push({ type: 'state_change', old: state.status, new: status, reason }, { type: 'run_end', status, stop_reason: reason });
  return { events, effect: { type: 'end_run' } };
}

export function turnEnd(state: RunState, elapsed_s: number, usage?: Usage): EventBody {
  return { type: 'turn_end', duration: elapsed_s, usage: usage === undefined ? state.turn_usage : addUsage(state.turn_usage, usage) };
}

/** Results of the calls that were settled now, and for every call never begun a result that says so. */
export function closingResults(state: RunState, results: readonly SettledCall[]): EventBody[] {
  const now = new Map(results.map((result) => [result.tool_use_id, result]));
  return state.calls.filter((call) => !call.settled).map((call) => {
    const result = now.get(call.tool_use_id) ?? notStarted(call.tool_use_id);
    return { type: 'tool_result', tool_name: call.tool_name, ...result };
  });
}

export function notStarted(tool_use_id: string): SettledCall {
  return { tool_use_id, content: 'This call was not started.', is_error: true, duration: 0, outcome: 'not_started' };
}

/** Not in the copy of the state: large, or already in it. */
const leftOut = new Set(['spec', 'transcript', 'tools', 'retired_ids', 'partial']);

function maxIterations(state: RunState, reason: StopReason): EventBody {
  const last = lastAction(state);
  const copy = Object.fromEntries(Object.entries(state).filter(([key]) => !leftOut.has(key)));
  return {
    type: 'max_iterations', limit: reason, iterations: state.turn_number, last_action_summary: last, state: copy,
    summary: `The run of ${specOf(state).name} was stopped by its limit ${reason} after ${state.turn_number} turns and `
      + `${state.tool_calls} tool calls. Last: ${last} The request is not answered yet.`,
  };
}

/** One sentence on what happened last, for people. */
function lastAction(state: RunState): string {
  const last = state.transcript.messages.at(-1);
  if (last === undefined) return 'nothing yet.';
  switch (last.role) {
    case 'user': return 'a message of the user was waiting for an answer.';
    case 'host': return 'a note of the host was waiting for an answer.';
    case 'assistant': return last.calls.length === 0
      ? `the model said: ${clip(last.text)}`
      : `the model asked for ${last.calls.map((call) => call.tool_name).join(', ')}.`;
    case 'tool': return `${last.tool_name} ${last.is_error ? 'failed' : 'answered'}: ${clip(last.content)}`;
  }
}

function clip(text: string): string {
  const points = Array.from(text.slice(0, 400));
  return points.length <= 200 ? points.join('').toWellFormed() : `${points.slice(0, 200).join('').toWellFormed()}…`;
}
