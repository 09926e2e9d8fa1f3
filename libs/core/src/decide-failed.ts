/**
 * What becomes of a failed model call: wait and try again, hop along the chain, make the request smaller, go on where the output
 * was cut, ask again, or end with a reason. Reads `recoveryTable`; the only retry budget is `max_consecutive_errors`, in the log.
 */
import { chooseHop, type Choice } from './choose-model.ts';
import { wishesOf } from './command.ts';
import { callModel } from './decide-call.ts';
import { lookAhead } from './codec.ts';
import { endRun, turnEnd, type EndOptions } from './ending.ts';
import type { ErrorEvent, EventBody } from './events.ts';
import { hasImages, nextImageSide, withoutLargestImage } from './images.ts';
import { longestWaitMs, park, pause } from './pausing.ts';
import { outputLimit } from './request.ts';
import type { BudgetReason } from './limit-due.ts';
import { recoveryTable, type RecoveryAction } from './recovery.ts';
import { specOf, type RunState } from './state.ts';
import type { StopReason } from './stop-reason.ts';
import type { Decision, ModelFailed } from './turn-input.ts';
import { addUsage, asWaste, noUsage } from './usage.ts';

/** Seconds. A same-model retry waits this long at most, unless the provider asks for more. */
const maxBackoffS = 60;

/** `kept`: events of a reply that is worth keeping although it failed. Those of a text carry its cost. */
export function decideFailed(state: RunState, input: ModelFailed, kept: readonly EventBody[] = []): Decision {
  const paid = kept.some((event) => event.type === 'assistant_text' && event.usage !== undefined);
  const wishes = wishesOf(input.commands);
  const now = lookAhead(state, kept);
  const end: EndOptions = { elapsed_s: input.elapsed_s, turn_open: true };
  if (wishes.cancel) {
    const cost = paid || input.failure.usage === null ? {} : { usage: asWaste(input.failure.usage) };
    const partial = kept.length > 0 ? [] : interruptedText(state, input.failure.partial_text);
    return behind(kept, endRun(now, 'interrupted', { ...end, before: [...partial, ...wishes.events], ...cost }));
  }
  // What the attempt has cost is gone before anything else is paid for.
  const paying = paid || input.failure.usage === null ? now : { ...now, turn_usage: addUsage(now.turn_usage, asWaste(input.failure.usage)) };
  const move = input.timed_out === null ? nextMove(paying, input) : fail;
  const events: EventBody[] = [errorEvent(now, input, move, paid), ...(move.action === 'remove_image' ? [imageRemoved(now, input)] : []), ...wishes.events];
  const after = lookAhead(now, events);
  if (move.action === 'fail') return behind([...kept, ...events], endRun(after, input.timed_out ?? move.budget ?? reasonOf(now, input), end));
  // The same request with another key is no other turn.
  if (move.action === 'rotate_credential' && !wishes.pause) {
    return behind([...kept, ...events], callModel(after, [], { unavailable: input.unavailable, prices: input.prices, elapsed_s: input.elapsed_s }));
  }
  const closed = [...kept, ...events, turnEnd(after, input.elapsed_s)];
  if (wishes.pause) return pause(closed);
  if (move.action === 'park') {
    const wait_ms = Math.round((move.retry_in ?? 0) * 1000);
    return behind(closed, park(lookAhead(after, [turnEnd(after, input.elapsed_s)]), [], { reason: move.waits_for ?? 'quota', until_s: input.now_s + wait_ms / 1000, wait_ms }));
  }
  return { events: closed, effect: { type: 'hand_over', delay_ms: Math.round((move.retry_in ?? 0) * 1000) } };
}

function behind(events: readonly EventBody[], decision: Decision): Decision {
  return { ...decision, events: [...events, ...decision.events] };
}

type Move = Pick<ErrorEvent, 'action' | 'site' | 'retry_in' | 'from_model' | 'to_model' | 'output_cap' | 'feature'> & {
  readonly waits_for?: 'quota' | 'models';
  /** Of `fail`: there are models left, and the run cannot pay for them. */
  readonly budget?: BudgetReason;
};

const fail: Move = { action: 'fail', site: null, retry_in: null };

/**
 * First what this very failure calls for, then what its row of the table allows: another key, the same model again, the next one of
 * the chain; and where none of them is left that could be asked now, waiting without a worker.
 */
function nextMove(state: RunState, input: ModelFailed): Move {
  const { failure } = input;
  const own = ownMove(state, input);
  if (own !== null) return own;
  const row = recoveryTable[failure.error_type];
  const spent = budgetSpent(state);
  const again = backoff(state, failure.retry_after_s, input.jitter);
  const retries = row.same_model_retries > 0 && !spent;
  if (row.rotate && !spent && failure.other_key === true && !firstOfAKind(state, input)) return { action: 'rotate_credential', site: null, retry_in: 0 };
  if (retries && state.model_errors < row.same_model_retries && again.action === 'backoff') return again;
  const hop: Choice = row.fallback ? chooseHop(state, input) : { type: 'none' };
  const to = { from_model: modelName(state), to_model: hop.type === 'none' ? '' : specOf(state).chain.models[hop.position]?.name ?? '' };
  if (hop.type === 'model') return { action: 'fallback', site: 'fallback_model', retry_in: 0, ...to };
  if (retries) return again;
  if (hop.type === 'wait') return { action: 'park', site: 'fallback_model', retry_in: hop.wait_ms / 1000, waits_for: hop.reason, ...to };
  if (row.park) return { action: 'park', site: null, retry_in: failure.retry_after_s === null ? unsaidResetS : Math.max(failure.retry_after_s, leastPark(state)) };
  return hop.type === 'none' && hop.budget !== undefined ? { ...fail, budget: hop.budget } : fail;
}

/** Seconds. A quota that is used up and back "now", again and again, is not asked in a tight loop. */
function leastPark({ parks }: RunState): number {
  return Math.min(2 ** (parks + 1), maxBackoffS) / 2;
}

/** Seconds. A provider that says neither when nor how long. */
const unsaidResetS = 300;

/** A burst is over soon: the first refusal for it is waited out, where that is not too long. */
function firstOfAKind(state: RunState, { failure }: ModelFailed): boolean {
  return failure.error_type === 'rate_limited' && state.model_errors === 0 && (failure.retry_after_s ?? 0) * 1000 <= longestWaitMs;
}

/** Null where the failure has no move of its own, or has used it up. Each of these is bounded, and changes the next request. */
function ownMove(state: RunState, input: ModelFailed): Move | null {
  const { limits } = state;
  switch (input.failure.error_type) {
    case 'empty_response': return state.reasks < limits.max_reasks ? { action: 'reask', site: null, retry_in: 0 } : fail;
    case 'output_truncated': {
      if (state.continuations >= limits.max_continuations) return null;
      // A call that was cut is asked for again with more room; text is kept and gone on with.
      const action: RecoveryAction = input.failure.partial_text.trim() === '' ? 'enlarge_output' : 'continue_prompt';
      return { action, site: 'max_output_tokens', retry_in: 0 };
    }
    case 'context_overflow':
    case 'payload_too_large': {
      if (budgetSpent(state)) return null;
      return { action: state.reactive_tried ? 'aggressive_snip' : 'reactive_compact', site: 'prompt_too_long', retry_in: 0 };
    }
    case 'output_cap_invalid': {
      const output_cap = budgetSpent(state) ? null : lowerCap(state, input.failure.output_cap);
      return output_cap === null ? null : { action: 'clamp_output', site: 'max_output_tokens', retry_in: 0, output_cap };
    }
    case 'image_too_large': {
      if (!hasImages(state.transcript.messages)) return null;
      return { action: nextImageSide(state.image_side) === null ? 'remove_image' : 'shrink_image', site: 'image_too_large', retry_in: 0 };
    }
    case 'feature_unsupported': {
      const { feature } = input.failure;
      const useful = feature !== undefined && !(state.dropped[modelName(state)] ?? []).includes(feature) && (feature !== 'images' || hasImages(state.transcript.messages));
      return useful ? { action: 'drop_feature', site: null, retry_in: 0, feature } : null;
    }
    default: return null;
  }
}

/** A little below what the provider said, since it counts in its own way; where it said nothing lower, half of what was asked for. */
function lowerCap(state: RunState, said: number | undefined): number | null {
  const model = specOf(state).chain.models[state.position];
  if (model === undefined) return null;
  const asked = outputLimit(state, model);
  const below = (said ?? asked) - capMargin;
  const cap = said !== undefined && below < asked ? below : Math.floor(asked / 2);
  return cap < leastOutput ? null : cap;
}

/** Tokens. */
const capMargin = 64;
/** Tokens; no reply is worth asking for that is shorter. */
const leastOutput = 16;

function budgetSpent(state: RunState): boolean {
  return state.consecutive_errors >= state.limits.max_consecutive_errors;
}

/** `min(2^consecutive_errors, 60)` s with up to half of it again as jitter; what the provider asks for is a lower bound. Too long to be a delay: a pause. */
function backoff(state: RunState, retry_after_s: number | null, jitter: number): Move {
  const base = Math.min(2 ** (state.consecutive_errors + 1), maxBackoffS);
  const wait = Math.min(base * (1 + jitter / 2), maxBackoffS);
  const retry_in = Math.round(Math.max(wait, retry_after_s ?? 0) * 1000) / 1000;
  return { action: retry_in * 1000 > longestWaitMs ? 'park' : 'backoff', site: null, retry_in };
}

function modelName(state: RunState): string {
  return specOf(state).chain.models[state.position]?.name ?? 'none';
}

/** Actions that change the request, or the model, do not use up the budget of consecutive errors; refusals for length do. */
const free: readonly RecoveryAction[] = ['fallback', 'park', 'reask', 'continue_prompt', 'enlarge_output', 'shrink_image', 'remove_image', 'drop_feature'];

/** The cost of a reply that was kept stands on its own event. */
function errorEvent(state: RunState, input: ModelFailed, move: Move, paid: boolean): EventBody {
  const { usage } = input.failure;
  // What our own clock ended is no fault of the model's.
  const error_type = input.timed_out === null ? input.failure.error_type : 'timeout';
  const detail = input.timed_out === null ? input.failure.detail : `the ${input.timed_out === 'turn_timeout' ? 'turn' : 'run'} took longer than its limit ${input.timed_out}_s`;
  const raised = free.includes(move.action) ? state.consecutive_errors : state.consecutive_errors + 1;
  const { waits_for: _, budget: __, ...said } = move;
  const { retry_after_s } = input.failure;
  return {
    type: 'error', error_type, model: modelName(state), detail: detail.toWellFormed().slice(0, 2000).toWellFormed(), ...said,
    ...(retry_after_s === null ? {} : { retry_after: retry_after_s }), consecutive_errors: raised, ...(usage === null || paid ? {} : { usage: { ...noUsage, ...usage } }),
  };
}

function imageRemoved(state: RunState, input: ModelFailed): EventBody {
  const { generation, messages } = state.transcript;
  return { type: 'image_removed', generation: generation + 1, reason: input.failure.detail.toWellFormed().slice(0, 500).toWellFormed(), ...withoutLargestImage(messages) };
}

function reasonOf(state: RunState, input: ModelFailed): StopReason {
  const { error_type } = input.failure;
  const row = recoveryTable[error_type];
  const transient = row.same_model_retries > 0 && error_type !== 'empty_response';
  return transient && budgetSpent(state) ? 'max_consecutive_errors' : row.exhausted;
}

function interruptedText(state: RunState, text: string): EventBody[] {
  const kept = text.toWellFormed();
  if (kept.trim() === '') return [];
  return [{ type: 'assistant_text', content: kept, is_final: true, attempt: state.attempt, interrupted: true }];
}
