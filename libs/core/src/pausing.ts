/** A pause, at a safe point: from `running` only; a queued run is moved to running in the same breath. */
import { lookAhead } from './codec.ts';
import { endRun } from './ending.ts';
import type { EventBody, PendingCall } from './events.ts';
import type { RunState } from './state.ts';
import type { PauseReason } from './stop-reason.ts';
import type { Decision } from './turn-input.ts';

export interface Pausing {
  readonly reason: PauseReason;
  readonly pending: readonly PendingCall[];
  /** When the run goes on by itself. */
  readonly wakes?: { readonly until_s: number; readonly wait_ms: number };
}

const requested: Pausing = { reason: 'requested', pending: [] };

/** Ms. A run that has to wait for longer is paused; a shorter wait is only a delay. */
export const longestWaitMs = 60_000;

/** How often in a row a run waits for a provider before it ends. */
export const maxParks = 20;

export interface Parking {
  readonly reason: 'quota' | 'models';
  readonly until_s: number;
  readonly wait_ms: number;
  /** Of a turn that stays open. */
  readonly elapsed_s?: number;
}

/** Waits for a provider, without a worker and without a turn; a run that only ever waits comes to an end. */
export function park(state: RunState, events: readonly EventBody[], { reason, until_s, wait_ms, elapsed_s = 0 }: Parking): Decision {
  if (state.parks < maxParks) return pause(events, elapsed_s, { reason, pending: [], wakes: { until_s, wait_ms } });
  const ended = endRun(lookAhead(state, events), 'model_unavailable', { elapsed_s, turn_open: lookAhead(state, events).turn_open });
  return { ...ended, events: [...events, ...ended.events] };
}

/** `active_s`: of a turn that stays open, what this claim has used; a turn that has ended has said it itself. */
export function pause(events: readonly EventBody[], active_s = 0, why: Pausing = requested): Decision {
  const { reason, pending, wakes } = why;
  const paused: EventBody = {
    type: 'state_change', old: 'running', new: 'paused', reason, ...(active_s > 0 ? { active_s } : {}), ...(pending.length > 0 ? { pending } : {}),
    ...(wakes === undefined ? {} : { resumes_at: new Date(Math.ceil(wakes.until_s * 1000)).toISOString() }),
  };
  return { events: [...events, paused], effect: { type: 'pause', ...(wakes === undefined ? {} : { delay_ms: wakes.wait_ms }) } };
}
