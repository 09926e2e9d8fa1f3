/** A pause, at a safe point: from `running` only; a queued run is moved to running in the same breath. */
import type { EventBody } from './events.ts';
import type { Decision } from './turn-input.ts';

export function pause(events: readonly EventBody[]): Decision {
  return { events: [...events, { type: 'state_change', old: 'running', new: 'paused', reason: 'requested' }], effect: { type: 'pause' } };
}
