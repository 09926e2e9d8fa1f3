/**
 * Folds a run's log again and compares the outcome with the stored state, field by field.
 */
import { canonicalJson, evolve, initialState, restoreState, type RunState } from '@treadle/core';
import type { RunDirectory } from './ports/run-store.ts';
import { wholeLog, type LogDeps } from './read-log.ts';

export interface ReplayReport {
  readonly identical: boolean;
  /** How many events were folded. */
  readonly events: number;
  readonly differences: readonly { readonly field: string; readonly stored: unknown; readonly replayed: unknown }[];
}

/** The state that the log alone gives. */
export async function foldLog(deps: LogDeps, run_id: string, up_to = Number.MAX_SAFE_INTEGER): Promise<RunState> {
  let state: RunState = { ...initialState, run_id };
  for await (const { event } of wholeLog(deps, run_id)) {
    if (event.seq > up_to) break;
    state = evolve(state, event);
  }
  return state;
}

/** Null when the store does not hold the run. A live run is compared as of the stored sequence number. */
export async function replayRun(deps: LogDeps & { readonly store: Pick<RunDirectory, 'events' | 'read'> }, run_id: string): Promise<ReplayReport | null> {
  const snapshot = await deps.store.read(run_id);
  if (snapshot === null) return null;
  const stored = restoreState(initialState, snapshot.stored);
  const replayed = await foldLog(deps, run_id, stored.last_seq);
  const differences = Object.keys(stored).flatMap((key) => {
    const field = key as keyof RunState;
    return canonicalJson(stored[field]) === canonicalJson(replayed[field]) ? [] : [{ field, stored: stored[field], replayed: replayed[field] }];
  });
  return { identical: differences.length === 0, events: replayed.last_seq, differences };
}
