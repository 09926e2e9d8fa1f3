/** A run as its archived log tells it: folded, and as the store is given it back. */
import { awaitedWords, decodeEvent, evolve, initialState, stateChanges, type RunEvent, type RunState } from '@treadle/core';
import { LedgerOfLog } from './ledger-of-log.ts';
import type { Archive } from './ports/archive.ts';
import type { RestoredRun } from './ports/store-upkeep.ts';

export interface ArchivedLog {
  readonly state: RunState;
  readonly ledger: LedgerOfLog;
  /** Epoch milliseconds that a failed request, or a run that goes on by itself, waits for; null where nothing waits. */
  readonly waits_until: number | null;
}

export interface ReadOptions {
  /** Where the log is known to end; by default wherever the archive ends. */
  readonly last_seq?: number;
  /** Told of each event, with the state before it. */
  readonly onEvent?: (event: RunEvent, before: RunState, text: string) => void;
}

/** The fold of the archived log; in words what is wrong with it. Throws what the archive throws. */
export async function readArchived(archive: Pick<Archive, 'events'>, run_id: string, { last_seq = Infinity, onEvent }: ReadOptions = {}): Promise<ArchivedLog | string> {
  let state: RunState = { ...initialState, run_id };
  let waits_until: number | null = null;
  const ledger = new LedgerOfLog();
  while (state.last_seq < last_seq) {
    const page = await archive.events(run_id, state.last_seq, 500);
    if (page.length === 0 && last_seq === Infinity) break;
    if (page.length === 0) return `its log ends at ${state.last_seq}, not at ${last_seq}`;
    try {
      for (const text of page) {
        const event: RunEvent = decodeEvent(text);
        if (event.seq > last_seq) break;
        onEvent?.(event, state, text);
        state = evolve(state, event);
        ledger.take(event);
        if (event.type === 'error') waits_until = event.retry_in === null ? null : Math.round((event.ts + event.retry_in) * 1000);
        if (event.type === 'turn_start') waits_until = null;
      }
    } catch (error) {
      return `its log does not fold: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
  if (state.status === 'paused') waits_until = state.resumes_at === null ? null : Date.parse(state.resumes_at);
  return { state, ledger, waits_until };
}

/** What the store is given of a state. `events` are its last ones, as far as the archive does not have them, or shall be given them again. */
export function restoredFrom(state: RunState, ledger: LedgerOfLog, events: readonly string[]): Omit<RestoredRun, 'epoch' | 'job'> {
  return {
    run_id: state.run_id, tenant: state.tenant, agent: state.agent, tags: state.tags, priority: state.priority, session_id: state.session_id,
    status: state.status, last_ts: state.last_ts, event_epoch: state.epoch, archived_seq: state.last_seq - events.length, events,
    changes: stateChanges(initialState, state), ledger: ledger.entries.map((entry) => ({ tool_use_id: entry.tool_use_id, entry })),
    open_calls: state.calls.filter((call) => !call.settled).map((call) => call.tool_use_id), pending: awaitedWords(state.pending),
  };
}
