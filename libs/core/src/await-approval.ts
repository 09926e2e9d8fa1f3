/** A run waits for people's words on its calls: paused, without a worker, and until the first of them is overdue. */
import { firstDeadline, waitingForApproval } from './approval.ts';
import type { EventBody } from './events.ts';
import { pause } from './pausing.ts';
import type { RunState } from './state.ts';
import type { Decision } from './turn-input.ts';

/** Null where no call of `state`, which is the state after `events`, waits. */
export function awaitApproval(state: RunState, events: readonly EventBody[], { active_s, now_s }: { readonly active_s: number; readonly now_s: number }): Decision | null {
  const pending = waitingForApproval(state);
  if (pending.length === 0) return null;
  const until_s = firstDeadline(state);
  const wakes = until_s === null ? {} : { wakes: { until_s, wait_ms: Math.max(0, Math.ceil((until_s - now_s) * 1000)) } };
  return pause(events, active_s, { reason: 'approval', pending, ...wakes });
}
