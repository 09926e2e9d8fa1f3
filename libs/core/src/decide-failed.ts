/**
 * What becomes of a failed model call: wait and try again, hop along the chain, ask again, or end with a reason.
 * Reads `recoveryTable`; the only retry budget is `max_consecutive_errors`, in the log.
 */
import { wishesOf } from './command.ts';
import { endRun, turnEnd, type EndOptions } from './ending.ts';
import type { ErrorEvent, EventBody } from './events.ts';
import { recoveryTable } from './recovery.ts';
import { specOf, type RunState } from './state.ts';
import type { Decision, ModelFailed } from './turn-input.ts';
import { addUsage, asWaste } from './usage.ts';

/** Seconds. A same-model retry waits this long at most, unless the provider asks for more. */
const maxBackoffS = 60;

export function decideFailed(state: RunState, input: ModelFailed): Decision {
  const { failure } = input;
  const wishes = wishesOf(input.commands);
  const partial = interruptedText(state, failure.partial_text);
  if (wishes.cancel) {
    const waste = failure.usage === null ? {} : { usage: asWaste(failure.usage) };
    return endRun(state, 'interrupted', { elapsed_s: input.elapsed_s, turn_open: true, before: [...partial, ...wishes.events], ...waste });
  }
  if (input.timed_out !== null) {
    const before = [...wishes.events, event(state, input, { action: 'fail', site: null, retry_in: null })];
    return endRun(state, input.timed_out, endOptions(input, before));
  }
  const move = nextMove(state, input);
  const error = event(state, input, move);
  if (move.action === 'fail') return endRun(state, reasonOf(state, input), endOptions(input, [error, ...wishes.events]));
  const events: EventBody[] = [error, ...wishes.events, closeTurn(state, input)];
  if (wishes.pause) {
    return { events: [...events, { type: 'state_change', old: 'running', new: 'paused', reason: 'requested' }], effect: { type: 'pause' } };
  }
  return { events, effect: { type: 'hand_over', delay_ms: Math.round((move.retry_in ?? 0) * 1000) } };
}

type Move = Pick<ErrorEvent, 'action' | 'site' | 'retry_in' | 'from_model' | 'to_model'>;

function nextMove(state: RunState, input: ModelFailed): Move {
  const { error_type, retry_after_s } = input.failure;
  const row = recoveryTable[error_type];
  const hop = row.fallback ? untried(state) : null;
  const spent = state.consecutive_errors >= state.limits.max_consecutive_errors;
  if (error_type === 'empty_response') {
    if (state.reasks < state.limits.max_reasks) return { action: 'reask', site: null, retry_in: 0 };
    return { action: 'fail', site: null, retry_in: null };
  }
  if (state.model_errors < row.same_model_retries && !spent) return backoff(state, retry_after_s, input.jitter);
  if (hop !== null) return { action: 'fallback', site: 'fallback_model', retry_in: 0, from_model: modelName(state), to_model: hop };
  if (row.same_model_retries > 0 && !spent) return backoff(state, retry_after_s, input.jitter);
  return { action: 'fail', site: null, retry_in: null };
}

/** `min(2^consecutive_errors, 60)` s with up to half of it again as jitter; what the provider asks for is a lower bound. */
function backoff(state: RunState, retry_after_s: number | null, jitter: number): Move {
  const base = Math.min(2 ** (state.consecutive_errors + 1), maxBackoffS);
  const wait = Math.min(base * (1 + jitter / 2), maxBackoffS);
  const retry_in = Math.round(Math.max(wait, retry_after_s ?? 0) * 1000) / 1000;
  return { action: 'backoff', site: null, retry_in };
}

function untried(state: RunState): string | null {
  const next = specOf(state).chain.models.find((_, place) => place !== state.position && !state.tried.includes(place));
  return next?.name ?? null;
}

function modelName(state: RunState): string {
  return specOf(state).chain.models[state.position]?.name ?? 'none';
}

/** A hop to a model not yet tried does not use up the budget. */
function event(state: RunState, input: ModelFailed, move: Move): EventBody {
  const { error_type, detail, usage } = input.failure;
  const raised = move.action === 'fallback' || move.action === 'reask' ? state.consecutive_errors : state.consecutive_errors + 1;
  return {
    type: 'error', error_type, model: modelName(state), detail: detail.toWellFormed().slice(0, 2000).toWellFormed(), ...move,
    consecutive_errors: raised, ...(usage === null ? {} : { usage }),
  };
}

function reasonOf(state: RunState, input: ModelFailed) {
  const row = recoveryTable[input.failure.error_type];
  const spent = state.consecutive_errors >= state.limits.max_consecutive_errors;
  return row.same_model_retries > 0 && spent && input.failure.error_type !== 'empty_response' ? 'max_consecutive_errors' as const : row.exhausted;
}

/** The error event carries the attempt's usage; folded before `turn_end`, which must count it too. */
function endOptions(input: ModelFailed, before: EventBody[]): EndOptions {
  const { usage } = input.failure;
  return { elapsed_s: input.elapsed_s, turn_open: true, before, ...(usage === null ? {} : { usage: asWaste(usage) }) };
}

function closeTurn(state: RunState, input: ModelFailed): EventBody {
  const { usage } = input.failure;
  return turnEnd(usage === null ? state : { ...state, turn_usage: addUsage(state.turn_usage, asWaste(usage)) }, input.elapsed_s);
}

function interruptedText(state: RunState, text: string): EventBody[] {
  const kept = text.toWellFormed();
  if (kept.trim() === '') return [];
  return [{ type: 'assistant_text', content: kept, is_final: true, attempt: state.attempt, interrupted: true }];
}
