/** A pause, at a safe point: from `running` only; a queued run is moved to running in the same breath. */
import type { EventBody, PendingCall } from './events.ts';
import type { PauseReason } from './stop-reason.ts';
import type { Decision } from './turn-input.ts';

export interface Pausing { readonly reason: PauseReason; readonly pending: readonly PendingCall[] }

const requested: Pausing = { reason: 'requested', pending: [] };

/** `active_s`: of a turn that stays open, what this claim has used; a turn that has ended has said it itself. */
export function pause(events: readonly EventBody[], active_s = 0, why: Pausing = requested): Decision {
  const { reason, pending } = why;
  const paused: EventBody = {
    type: 'state_change', old: 'running', new: 'paused', reason, ...(active_s > 0 ? { active_s } : {}), ...(pending.length > 0 ? { pending } : {}),
  };
  return { events: [...events, paused], effect: { type: 'pause' } };
}
