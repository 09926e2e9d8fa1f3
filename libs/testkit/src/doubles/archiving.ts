/** Of the run store in memory: what the archiver asks of it, and deleting runs. */
import { isEnded } from '@treadle/core';
import type { ArchiveDuty, RemoveReply, RunDirectory, SealedRange, StoreUpkeep } from '@treadle/engine';
import type { Run } from './records.ts';
import type { Session } from './sessions.ts';

/** A run of which nothing is known but that it was deleted. */
export interface Deleted { readonly tenant: string; readonly deleted_at_ms: number; removals: number; archive_ms: number | null }

export interface ArchivingParts {
  readonly step: <T>(act: () => T) => Promise<T>;
  readonly runs: () => Record<string, Run>;
  readonly deleted: () => Record<string, Deleted>;
  readonly sessions: () => Record<string, Session>;
  /** Lets a session go on to the next of its runs. */
  readonly release: (run_id: string, run: Run) => void;
  readonly now: () => number;
  readonly archiveEveryMs: number;
  /** Of the outbox. */
  readonly webhooksPending: () => number;
  readonly dropDelivery: (run_id: string) => void;
}

export function archivingOf(parts: ArchivingParts): Omit<StoreUpkeep, 'pump' | 'restore' | 'restoreSession'> & Pick<RunDirectory, 'remove' | 'removed'> {
  const { step, runs, deleted, now } = parts;
  return {
    dueForArchive: (_shard, options) => step(() => [...Object.entries(runs()), ...Object.entries(deleted())]
      .filter(([, record]) => record.archive_ms !== null && record.archive_ms <= now()).slice(0, options.limit)
      .map(([run_id, record]) => { record.archive_ms = now() + options.retry_ms; return run_id; })),
    seal: (run_id, max_events) => step(() => seal(runs()[run_id], { run_id, max_events })),
    archived: (range, options) => step(() => archived(parts, range, options)),
    archiveBacklog: () => step(() => {
      const waiting = Object.values(runs()).filter((record) => record.archive_ms !== null && record.last_seq > record.archived_seq);
      const times = waiting.flatMap((record) => record.events.find((event) => event.seq > record.archived_seq)?.text ?? []).map((text) => (JSON.parse(text) as { ts?: number }).ts ?? null).filter((ts) => ts !== null);
      return { events: waiting.reduce((sum, record) => sum + record.last_seq - record.archived_seq, 0), oldest_ts: times.length === 0 ? null : Math.min(...times) };
    }),
    activeRuns: () => step(() => {
      const all = Object.values(runs());
      const count = (status: string): number => all.filter((record) => record.status === status).length;
      const in_doubt = all.reduce((sum, record) => sum + record.pending.filter((awaited) => !awaited.includes(' ')).length, 0);
      return { queued: count('queued'), running: count('running'), paused: count('paused'), in_doubt, due: all.filter((record) => record.due_ms !== null).length, webhooks: parts.webhooksPending() };
    }),
    archiveDuty: (run_id) => step((): ArchiveDuty => {
      const gone = deleted()[run_id];
      if (gone !== undefined) return { type: 'remove', tenant: gone.tenant, deleted_at_ms: gone.deleted_at_ms };
      return { type: runs()[run_id]?.merge_due === true ? 'merge' : 'none' };
    }),
    archiveDutyDone: (run_id, duty, { settle_ms }) => step(() => {
      const gone = deleted()[run_id];
      const record = runs()[run_id];
      if (gone !== undefined && duty === 'remove') gone.archive_ms = gone.removals++ === 0 ? now() + settle_ms : null;
      if (record?.merge_due === true && duty === 'merge') Object.assign(record, { merge_due: false, archive_ms: null });
    }),
    remove: ({ run_id, tenant, not_after_ms }) => step(() => remove(parts, { run_id, tenant, not_after_ms })),
    removed: (run_id) => step(() => {
      const gone = deleted()[run_id];
      return gone === undefined ? null : { tenant: gone.tenant, deleted_at_ms: gone.deleted_at_ms };
    }),
  };
}

function seal(record: Run | undefined, { run_id, max_events }: { readonly run_id: string; readonly max_events: number }): SealedRange | null {
  if (record === undefined) return null;
  if (record.sealed !== null) return record.sealed;
  if (record.last_seq === record.archived_seq) {
    if (!record.merge_due) record.archive_ms = null;
    return null;
  }
  let room = 8 * 1024 * 1024;
  let last_seq = record.archived_seq;
  for (const event of record.events.filter((each) => each.seq > record.archived_seq).slice(0, max_events)) {
    room -= event.text.length + 1;
    if (room < 0 && last_seq > record.archived_seq) break;
    last_seq = event.seq;
  }
  record.sealed = { run_id, first_seq: record.archived_seq + 1, last_seq, ended: isEnded(record.status) && last_seq === record.last_seq };
  return record.sealed;
}

function archived({ runs, now, archiveEveryMs }: ArchivingParts, range: SealedRange, { keep_events, retention_ms }: { readonly keep_events: number; readonly retention_ms: number }): 'archived' | 'overtaken' {
  const record = runs()[range.run_id];
  if (record === undefined || record.sealed?.first_seq !== range.first_seq || record.sealed.last_seq !== range.last_seq) return 'overtaken';
  const ended = isEnded(record.status);
  record.sealed = null;
  record.archived_seq = range.last_seq;
  record.segments++;
  const keep_from = Math.min(range.last_seq + 1, record.last_seq - keep_events + 1);
  record.events = record.events.filter((event) => event.seq >= keep_from);
  if (record.last_seq > record.archived_seq) record.archive_ms = ended ? now() : now() + archiveEveryMs;
  else {
    record.merge_due = ended && record.segments > 1;
    record.archive_ms = record.merge_due ? now() : null;
    // What has duties left must still be there when they are done.
    if (ended) record.expires_ms = now() + Math.max(retention_ms, record.held_ms === null ? 0 : 3_600_000);
  }
  return 'archived';
}

function remove({ runs, deleted, sessions, release, now, dropDelivery }: ArchivingParts, { run_id, tenant, not_after_ms }: { readonly run_id: string; readonly tenant: string; readonly not_after_ms: number }): RemoveReply {
  const record = runs()[run_id];
  const gone = deleted()[run_id];
  if ((record ?? gone ?? { tenant }).tenant !== tenant) return { type: 'missing' };
  if (gone !== undefined) return { type: 'removed', deleted_at_ms: gone.deleted_at_ms };
  if (now() > not_after_ms) return { type: 'too_late' };
  if (record !== undefined && !isEnded(record.status)) return { type: 'not_ended', status: record.status };
  if (record !== undefined) release(run_id, record);
  const session = record === undefined ? undefined : sessions()[record.session];
  if (session?.last === run_id) session.last = '';
  dropDelivery(run_id);
  delete runs()[run_id];
  deleted()[run_id] = { tenant, deleted_at_ms: now(), removals: 0, archive_ms: now() };
  return { type: 'removed', deleted_at_ms: now() };
}
