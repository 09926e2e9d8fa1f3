/**
 * The events with which a run ends, whatever the reason; and the duty that no call is left without its one result.
 */
import { childOf } from './children.ts';
import { lookAhead } from './codec.ts';
import type { EventBody } from './events.ts';
import { modelRequest, withoutCalls } from './request.ts';
import { specOf, type RunState } from './state.ts';
import { statusOfStopReason, type StopReason } from './stop-reason.ts';
import type { Decision, SettledCall, Summarised } from './turn-input.ts';
import { addUsage, asWaste, type Usage } from './usage.ts';

export interface EndOptions {
  /** Seconds of this claim, for the turn that the end closes. */
  readonly elapsed_s: number;
  /** Tokens of a reply or failure that no event before the end carries, but `turn_end` must count. */
  readonly usage?: Usage;
  /** Events that belong before the end: the last results, the answer. */
  readonly before?: readonly EventBody[];
  /** False where the claim began no turn. */
  readonly turn_open: boolean;
}

/**
 * `… turn_end, state_change, run_end`. Calls without a result must have theirs in `before`. At a limit the run still answers: first
 * a summary is asked for, where there is something to sum up and the budget is not what ran out.
 */
export function endRun(state: RunState, reason: StopReason, options: EndOptions): Decision {
  const events: EventBody[] = [...(options.before ?? [])];
  if (options.turn_open) events.push(turnEnd(state, options.elapsed_s, options.usage));
  if (statusOfStopReason[reason] !== 'expired') return { events: [...events, ...closing(state, reason)], effect: { type: 'end_run' } };
  const now = lookAhead(state, events);
  const effect = summaryEffect(now, reason);
  if (effect !== null) return { events, effect };
  return { events: [...events, ...atLimit(now, reason, { text: null, usage: null, model: '' })], effect: { type: 'end_run' } };
}

function closing(state: RunState, reason: StopReason): EventBody[] {
  const status = statusOfStopReason[reason];
  return [{ type: 'state_change', old: state.status, new: status, reason }, { type: 'run_end', status, stop_reason: reason }];
}

/** The end at a limit, with the model's summary or the host's own. */
export function atLimit(state: RunState, reason: StopReason, summary: LastSummary): EventBody[] {
  return [maxIterations(state, reason, summary), ...closing(state, reason)];
}

type LastSummary = Pick<Summarised, 'text' | 'usage' | 'model'>;

/** Output tokens and seconds that the last call has for itself. */
const reserve = { max_output_tokens: 512, timeout_s: 30 } as const;

function summaryEffect(state: RunState, reason: StopReason): Decision['effect'] | null {
  const model = specOf(state).chain.models[state.position];
  const budgetRanOut = reason === 'token_budget' || reason === 'cost_budget' || reason === 'start_deadline';
  if (budgetRanOut || model === undefined || state.status !== 'running' || state.turn_number === 0) return null;
  const { messages } = modelRequest(state, model);
  return { type: 'summarise', purpose: { type: 'limit', reason }, model, messages: [...messages.map(withoutCalls), { role: 'user', content: limitPrompt }], ...reserve };
}

const limitPrompt = 'The limit of this run is reached, and no tool can be used any more. Say in a few sentences what was done and found, where it is '
  + 'stuck, and what is left to do.';

export function turnEnd(state: RunState, elapsed_s: number, usage?: Usage): EventBody {
  return { type: 'turn_end', duration: elapsed_s, usage: usage === undefined ? state.turn_usage : addUsage(state.turn_usage, usage) };
}

/** Results of the calls that were settled now, and for every call never begun a result that says so. */
export function closingResults(state: RunState, results: readonly SettledCall[]): EventBody[] {
  const now = new Map(results.map((result) => [result.tool_use_id, result]));
  return state.calls.filter((call) => !call.settled).map((call) => {
    const result = now.get(call.tool_use_id) ?? (childOf(state, call.tool_use_id) === undefined ? notStarted(call.tool_use_id) : givenUp(call.tool_use_id));
    return { type: 'tool_result', tool_name: call.tool_name, ...result };
  });
}

/** A run was started, and nobody waits for its answer any more. */
function givenUp(tool_use_id: string): SettledCall {
  return { tool_use_id, content: 'The sub-agent was cancelled before it had given an answer.', is_error: true, duration: 0, outcome: 'cancelled' };
}

export function notStarted(tool_use_id: string): SettledCall {
  return { tool_use_id, content: 'This call was not started.', is_error: true, duration: 0, outcome: 'not_started' };
}

/** Not in the copy of the state: large, or already in it. */
const leftOut = new Set(['spec', 'transcript', 'tools', 'retired_ids', 'partial']);

function maxIterations(state: RunState, reason: StopReason, { text, usage, model }: LastSummary): EventBody {
  const last = lastAction(state);
  const copy = Object.fromEntries(Object.entries(state).filter(([key]) => !leftOut.has(key)));
  const own = `The run of ${specOf(state).name} was stopped by its limit ${reason} after ${state.turn_number} turns and `
    + `${state.tool_calls} tool calls. Last: ${last} The request is not answered yet.`;
  const summary = text === null || text.trim() === '' ? own : text.toWellFormed();
  return { type: 'max_iterations', limit: reason, iterations: state.turn_number, last_action_summary: last, state: copy, summary, ...(usage === null ? {} : { usage: text === null ? asWaste(usage) : usage, model }) };
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
