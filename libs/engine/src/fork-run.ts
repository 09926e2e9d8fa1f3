/** Where an old run's log can be gone on from, as another run. */
import { evolve, initialState, type RunState } from '@treadle/core';
import { wholeLog, type LogDeps } from './read-log.ts';

export interface ForkPoint {
  /** The newest state that another run can start from; null where there is none. */
  readonly state: RunState | null;
  /** How far the log was read: below `after_seq` where it ends before. */
  readonly read_to: number;
}

/**
 * The last point up to `after_seq` where no turn is open and no answer half-written. Without something new to say (`speaks`) the
 * point lies before the model's last answer, too: there is nothing to ask it behind that.
 */
export async function forkPoint(deps: LogDeps, run_id: string, { after_seq, speaks }: { readonly after_seq: number; readonly speaks: boolean }): Promise<ForkPoint> {
  let state: RunState = { ...initialState, run_id };
  let point: RunState | null = null;
  for await (const { event } of wholeLog(deps, run_id)) {
    if (event.seq > after_seq) break;
    state = evolve(state, event);
    const last = state.transcript.messages.at(-1);
    const whole = !state.turn_open && state.calls.length === 0 && state.pieces === '' && state.waiting_messages.length === 0;
    if (whole && (speaks || (last !== undefined && last.role !== 'assistant'))) point = state;
  }
  return { state: point, read_to: state.last_seq };
}
