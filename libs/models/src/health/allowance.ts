/**
 * How many calls to one model may be in flight in one process, by what its calls have come to: slow start, and half of it after a
 * time-out. Pure; who counts the calls is `allowances.ts`.
 */
import type { ErrorType } from '@treadle/core';

export interface AllowanceOptions {
  /** Calls in flight of the whole process, at most. */
  readonly slots: number;
  /** Of the slots, what a model begins with, 0 to 1; at least one slot. 1: no model is held back. */
  readonly share: number;
}

export function firstAllowance({ slots, share }: AllowanceOptions): number {
  return Math.max(1, Math.min(slots, Math.floor(slots * share)));
}

/**
 * One more for a reply, half for a time-out. Whatever else a call comes to leaves it as it is: a refusal holds no slot for long, and of a
 * call that was aborted nobody knows what it would have come to.
 */
export function allowanceAfter(allowance: number, came: 'ok' | ErrorType | null, slots: number): number {
  if (came === 'ok') return Math.min(slots, allowance + 1);
  return came === 'timeout' ? Math.max(1, Math.floor(allowance / 2)) : allowance;
}

/**
 * How many of its calls may be in flight now. Models that are silent (without a reply so far, or since their last time-out) share what one
 * of them begins with, since those of one provider hang together. One call each may have all the same: by it a model shows that it answers.
 */
export function roomOf({ allowance, silent, others }: { readonly allowance: number; readonly silent: boolean; /** Calls in flight of the other silent models. */ readonly others: number }, options: AllowanceOptions): number {
  return silent && options.share < 1 ? Math.min(allowance, Math.max(1, firstAllowance(options) - others)) : allowance;
}

/**
 * For how many calls a time-out stands: a model that is held back times out less often than it would, and a breaker that counted only
 * what happened would never hear enough of it. Those who wait would have been asking, as far as there are slots.
 */
export function standsFor(allowance: number, { waiting, slots }: { readonly waiting: number; readonly slots: number }): number {
  return Math.max(1, Math.round((allowance + Math.max(0, Math.min(waiting, slots - allowance))) / allowance));
}

/** Runs come again after as long as the model has been silent, between these, ms. */
const soonestMs = 250;
const latestMs = 2000;
/** Within that time, as many as come again; those beyond come later, so that looking costs the same however many wait. */
const looks = 40;
/** Nobody is sent away for longer, however many wait, and whatever the clock does. */
const longestMs = 600_000;

/**
 * When a run that finds no room comes again, ms from now. `quiet_ms`: since the model's last reply, or since it was first asked; `last_ms`:
 * from now until the last of those who were sent away before comes again.
 */
export function comesAgainMs({ quiet_ms, last_ms }: { readonly quiet_ms: number; readonly last_ms: number }): number {
  const waitMs = Math.max(soonestMs, Math.min(latestMs, quiet_ms));
  return Math.round(Math.min(longestMs, Math.max(waitMs, last_ms + waitMs / looks)));
}
