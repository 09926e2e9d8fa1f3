/** A run that the archive gave back, as the store in memory keeps it. */
import type { RestoredRun, WriteBack } from '@treadle/engine';
import type { Run } from './records.ts';

export interface RestoredAt { readonly clockMs: number; readonly graceMs: number; readonly archiveEveryMs: number; readonly behind: boolean; readonly store: string }

export function restoredRecord(run: RestoredRun, { clockMs, graceMs, archiveEveryMs, behind, store }: RestoredAt): Run {
  const live = !behind && run.job.type === 'now';
  const due_ms = run.job.type === 'at' ? run.job.due_ms : null;
  return {
    session: run.session_id, tenant: run.tenant, agent: run.agent, tags: run.tags, priority: run.priority,
    status: run.status, epoch: run.epoch, claim_id: '', event_epoch: run.event_epoch, job_n: Math.max(1, run.epoch), job_live: live, deliveries: 0, nudges: 0,
    last_seq: run.archived_seq + run.events.length, last_ts: run.last_ts, last_commit: null, wanted: null, first_claimed: run.epoch > 0,
    fields: { ...run.changes.fields }, generation: run.changes.generation, messages: [...run.changes.messages],
    events: run.events.map((text, index) => ({ seq: run.archived_seq + 1 + index, text })),
    ledger: Object.fromEntries(run.ledger.map(({ tool_use_id, entry }) => [tool_use_id, entry])), open_calls: run.open_calls, pending: run.pending, decided: [],
    inbox: [], inbox_in: 0, inbox_done: 0, commands: [], holder: '', not_before: due_ms ?? 0, archived_seq: run.archived_seq, sealed: null,
    due_ms: behind ? null : due_ms, held_ms: live ? clockMs + graceMs : null, archive_ms: run.events.length > 0 ? clockMs + archiveEveryMs : null, expires_ms: null,
    segments: run.archived_seq > 0 ? 1 : 0, merge_due: false, store, moves: [{ seq: run.archived_seq, at_ms: clockMs, epoch: run.epoch }],
  };
}

/** What the record becomes; its job, its commands and its session stay. */
export function writtenBack(record: Run, { run, commands_applied, store_id }: WriteBack, clockMs: number): Partial<Run> {
  return {
    status: run.status, epoch: Math.max(record.epoch, run.event_epoch), event_epoch: run.event_epoch, last_seq: run.archived_seq + run.events.length, last_ts: run.last_ts, tags: run.tags,
    fields: { ...run.changes.fields }, generation: run.changes.generation, messages: [...run.changes.messages],
    events: run.events.map((text, index) => ({ seq: run.archived_seq + 1 + index, text })),
    ledger: Object.fromEntries(run.ledger.map(({ tool_use_id, entry }) => [tool_use_id, entry])), open_calls: run.open_calls, pending: run.pending, decided: [],
    inbox: record.inbox.slice(commands_applied), inbox_done: record.inbox_done + commands_applied, archived_seq: run.archived_seq, sealed: null, store: store_id, moves: [...record.moves, { seq: run.archived_seq + run.events.length, at_ms: clockMs, epoch: record.epoch }],
  };
}

/** With the one that nobody has made yet. */
export function movesOf(record: Run | undefined, store: string, clockMs: number): Run['moves'] {
  if (record === undefined) return [];
  return record.store === store ? record.moves : [...record.moves, { seq: record.last_seq, at_ms: clockMs, epoch: clockMs }];
}
