/**
 * Carries a run's new events into the archive: a range is sealed before it is put, so that a retry after a lost answer
 * writes the very same bytes under the very same key; the watermark moves only after the archive has read them back.
 *
 * What else is due there goes the same way, since the same list finds it again after a crash: the segments of an ended run become
 * one, and a deleted run is removed.
 */
import { assertNever, decodeEvent, initialState, isEnded, restoreState } from '@treadle/core';
import { ArchiveConflict, ArchiveFailed, type Archive } from './ports/archive.ts';
import type { RunDirectory, SealedRange } from './ports/run-store.ts';
import type { ArchiveDuty, StoreUpkeep } from './ports/store-upkeep.ts';
import { traced, type Tracer } from './ports/tracer.ts';
import { archivedDocument } from './run-view.ts';

export interface ArchiveDeps {
  readonly store: StoreUpkeep & Pick<RunDirectory, 'events' | 'read' | 'remove'>;
  readonly archive: Archive;
  readonly options: ArchiveOptions;
  /** Told of every segment that was written, of every run whose segments were merged, and of every run that failed in a round. */
  readonly observe?: (outcome: 'ok' | 'merged' | 'failed') => void;
  /** Without it nobody traces; with it, a run's trace is read where its events do not tell it. */
  readonly tracer?: Tracer;
}

export interface ArchiveOptions {
  /** Events per segment at most. */
  readonly segment_events: number;
  /** Archived events that stay in the stream for readers close behind. */
  readonly keep_events: number;
  /** How long an ended and archived run stays in the store, ms. */
  readonly retention_ms: number;
}

/**
 * Archives what is there; answers how many events were written. What a live run appends meanwhile is left to its next time, so that
 * one busy run does not hold the archiver. Throws when the archive or the store fails: the next tick tries again.
 */
export async function archiveRun(deps: ArchiveDeps, run_id: string): Promise<number> {
  let [written, overtaken] = [0, false];
  for (;;) {
    const part = await archivePart(deps, run_id);
    if (part === null) break;
    overtaken ||= part.overtaken;
    const count = part.range.last_seq - part.range.first_seq + 1;
    written += count;
    if (part.range.ended) break;
    if (count < deps.options.segment_events) return written;
  }
  const duty = await deps.store.archiveDuty(run_id);
  await carryOut(deps, run_id, duty).catch((error: unknown) => {
    throw error instanceof ArchiveFailed && error.kind === 'refused' ? new DutyRefused(`${run_id}: ${duty.type}: ${error.message}`) : error;
  });
  if (overtaken && duty.type === 'none') await mergeAgain(deps, run_id);
  return written;
}

/**
 * A part that was put late may lie beside the segment that has taken its place: whoever was quicker has merged the run, and deleted the part, by then.
 * Of a run that goes on the merge at its end finds it.
 */
async function mergeAgain({ store, archive }: ArchiveDeps, run_id: string): Promise<void> {
  const snapshot = await store.read(run_id, 'messages');
  if (snapshot === null || isEnded(snapshot.status)) await archive.merge(run_id);
}

/** Archives what a run has, as far as `seq` at least. Throws as `archiveRun` does. */
export async function archiveUpTo(deps: ArchiveDeps, run_id: string, seq: number): Promise<void> {
  let overtaken = false;
  for (let last = 0; last < seq;) {
    const part = await archivePart(deps, run_id);
    if (part === null) break;
    overtaken ||= part.overtaken;
    last = part.range.last_seq;
  }
  if (overtaken) await mergeAgain(deps, run_id);
}

/** The next part of what a run has; null where everything is there. */
async function archivePart(deps: ArchiveDeps, run_id: string): Promise<{ readonly range: SealedRange; readonly overtaken: boolean } | null> {
  const range = await deps.store.seal(run_id, deps.options.segment_events);
  if (range === null) return null;
  await putRange(deps, range);
  const overtaken = await deps.store.archived(range, deps.options) === 'overtaken';
  deps.observe?.('ok');
  return { range, overtaken };
}

/** When a removal is carried out again: any write that had begun before it has ended by then, one way or the other. */
const settle_ms = 120_000;

async function carryOut(deps: ArchiveDeps, run_id: string, duty: ArchiveDuty): Promise<void> {
  switch (duty.type) {
    case 'none': return;
    case 'merge':
      await deps.archive.merge(run_id);
      deps.observe?.('merged');
      break;
    case 'remove':
      await deps.archive.remove({ run_id, tenant: duty.tenant, deleted_at: new Date(duty.deleted_at_ms).toISOString() });
      break;
    default: assertNever(duty);
  }
  await deps.store.archiveDutyDone(run_id, duty.type, { settle_ms });
}

export interface ArchivingRound {
  /** Runs that are looked at, at most. */
  readonly limit: number;
  /** Runs in the archive's hands at once. */
  readonly concurrency: number;
  /** When a run that failed comes up again, ms. */
  readonly retry_ms: number;
}

/**
 * Archives the runs of a shard whose time has come; answers how many runs had something new. Where the archive itself fails no
 * further run is begun: one that is away is asked about once a round, not once a run. A run with a fault of its own (other bytes in
 * the archive, events missing) holds back nobody else. Throws the first failure at the end of the round.
 */
export async function archiveDue(deps: ArchiveDeps, shard: number, round: ArchivingRound): Promise<number> {
  const due = [...await deps.store.dueForArchive(shard, round)];
  let archived = 0;
  let failure: unknown = null;
  let away = false;
  const hand = async (): Promise<void> => {
    for (let run_id = due.shift(); run_id !== undefined && !away; run_id = due.shift()) {
      try {
        if (await archiveRun(deps, run_id) > 0) archived++;
      } catch (error) {
        deps.observe?.('failed');
        failure ??= error;
        away ||= !(error instanceof ArchiveConflict || error instanceof SealedEventsMissing || error instanceof DutyRefused);
      }
    }
  };
  await Promise.all(Array.from({ length: round.concurrency }, hand));
  if (failure !== null) throw failure instanceof Error ? failure : new Error(String(failure));
  return archived;
}

/** The archive takes segments and refuses this: a right to delete that is missing, or a log that cannot be merged. */
export class DutyRefused extends Error {}

/** The store no longer holds what it sealed. */
export class SealedEventsMissing extends Error {
  readonly code = 'state_lost';
}

async function putSegment(deps: ArchiveDeps, range: SealedRange, events: readonly string[]): Promise<void> {
  const put = (): Promise<void> => deps.archive.putSegment({ ...range, events });
  if (deps.tracer === undefined) return put();
  const span = deps.tracer.begin({ type: 'archive_write', range }, { parent: await traceparentOf(deps, range.run_id, events[0]) });
  return traced(span, put, () => ({ type: 'archive_write' }));
}

async function traceparentOf({ store }: ArchiveDeps, run_id: string, first: string | undefined): Promise<string | null> {
  const event = first === undefined ? null : decodeEvent(first);
  if (event?.type === 'run_created') return event.traceparent ?? null;
  // Nothing is kept from the archive because nobody knows its trace.
  const snapshot = await store.read(run_id, 'messages').catch(() => null);
  return snapshot === null ? null : restoreState(initialState, snapshot.stored).traceparent;
}

async function putRange(deps: ArchiveDeps, range: SealedRange): Promise<void> {
  const count = range.last_seq - range.first_seq + 1;
  const stored = await deps.store.events(range.run_id, range.first_seq - 1, count);
  // Deleted meanwhile.
  if (stored === null) return;
  const { events } = stored;
  if (events.length !== count) throw new SealedEventsMissing(`${range.run_id}: ${count} events are sealed, ${events.length} are there`);
  await putSegment(deps, range, events);
  const snapshot = range.ended ? await deps.store.read(range.run_id, 'messages') : null;
  if (snapshot === null || snapshot.stored.last_seq !== range.last_seq) return;
  const removal = await deps.archive.removal(range.run_id);
  // A store that lost its last writes may have forgotten that the run was deleted. The archive has not.
  if (removal !== null) return void await deps.store.remove({ run_id: range.run_id, tenant: removal.tenant, not_after_ms: Number.MAX_SAFE_INTEGER });
  await deps.archive.putRun({ run_id: range.run_id, tenant: snapshot.tenant, document: archivedDocument(restoreState(initialState, snapshot.stored), range.last_seq, snapshot.tenant) });
}
