/** A pause, at a safe point: from `running` only; a queued run is moved to running in the same breath. */
import type { EventBody } from './events.ts';
import type { Decision } from './turn-input.ts';

/** `active_s`: of a turn that stays open, what this claim has used; a turn that has ended has said it itself. */
export function pause(events: readonly EventBody[], active_s = 0): Decision {
  const paused: EventBody = { type: 'state_change', old: 'running', new: 'paused', reason: 'requested', ...(active_s > 0 ? { active_s } : {}) };
  return { events: [...events, paused], effect: { type: 'pause' } };
}
