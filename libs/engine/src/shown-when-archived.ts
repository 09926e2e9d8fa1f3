/**
 * `strict`, for readers: a store as far as the archive has it. A run is shown as it was when its last archived event was written.
 *
 * Owns: the states of some runs between their archived and their last event, folded from the log; bounded.
 * 1  No event beyond the archived ones, and nothing that only such an event says, is ever answered.
 * 2  What a client itself has asked for is shown at once: a run that was accepted is there, queued.
 */
import { decodeEvent, evolve, initialState, isEnded, stateChanges, type LedgerEntry, type RunState } from '@treadle/core';
import type { Archive } from './ports/archive.ts';
import type { RunDirectory, RunSnapshot } from './ports/run-store.ts';
import { readLog } from './read-log.ts';

interface ShownDeps { readonly store: RunDirectory; readonly archive: Pick<Archive, 'events'> }

/** Runs whose folded state is kept for the next look. */
const statesKept = 200;

export function shownWhenArchived(deps: ShownDeps): RunDirectory {
  const { store } = deps;
  const states = new Map<string, RunState>();

  async function stateAt(run_id: string, seq: number): Promise<RunState> {
    const known = states.get(run_id);
    let state: RunState = known !== undefined && known.last_seq <= seq ? known : { ...initialState, run_id };
    for (;;) {
      const page = await readLog(deps, run_id, { after_seq: state.last_seq, limit: 500 });
      const wanted = page.filter(({ event }) => event.seq <= seq || event.epoch === 0);
      state = wanted.reduce((now, { event }) => evolve(now, event), state);
      if (wanted.length < page.length || page.length === 0) break;
    }
    states.delete(run_id);
    if (!isEnded(state.status)) states.set(run_id, state);
    const oldest = states.keys().next();
    if (states.size > statesKept && oldest.done !== true) states.delete(oldest.value);
    return state;
  }

  async function read(run_id: string, without?: 'messages'): Promise<RunSnapshot | null> {
    const snapshot = await store.read(run_id, without);
    if (snapshot === null || snapshot.archived_seq >= snapshot.stored.last_seq) return snapshot;
    const state = await stateAt(run_id, snapshot.archived_seq);
    const { fields, generation, messages } = stateChanges(initialState, state);
    const stored = { fields, generation, messages: without === 'messages' ? [] : messages, last_seq: state.last_seq, last_ts: state.last_ts, epoch: state.epoch };
    return { ...snapshot, status: state.status, stored };
  }

  return {
    ...store,
    read,
    events: async (run_id, after_seq, limit) => {
      // Asked first: what is archived meanwhile is seen the next time.
      const snapshot = await store.read(run_id, 'messages');
      const range = await store.events(run_id, after_seq, limit);
      if (snapshot === null || range === null) return range;
      const events = range.events.filter((text) => decodeEvent(text).seq <= snapshot.archived_seq);
      // Whoever has seen more (2) has lost nothing: there is only nothing new for him.
      return { ...range, events, last_seq: Math.min(range.last_seq, Math.max(snapshot.archived_seq, after_seq)) };
    },
    ledger: async (run_id) => {
      const entries = await store.ledger(run_id);
      const snapshot = entries === null ? null : await store.read(run_id, 'messages');
      if (entries === null || snapshot === null || snapshot.archived_seq >= snapshot.stored.last_seq) return entries;
      const { calls } = await stateAt(run_id, snapshot.archived_seq);
      const open = new Set(calls.filter((call) => !call.settled).map((call) => call.tool_use_id));
      return entries.map((entry): LedgerEntry => open.has(entry.tool_use_id) ? { ...entry, status: 'started', settled_epoch: null, outcome: null } : entry);
    },
  };
}
