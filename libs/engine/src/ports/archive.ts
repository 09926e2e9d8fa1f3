/**
 * The port of the archive: events as immutable segments, blobs by hash, what an ended run came to, and how to find it all again
 * without the store.
 *
 * A1  `putSegment` answers when the very bytes can be read back. The same range again is harmless; other bytes under the
 *     same key throw `ArchiveConflict`, and nothing is overwritten.
 * A2  Reading accepts overlapping segments and gives each event once, in order.
 * A3  A removal is durable before anything is removed. `runs` and `runsOf` know no run that has one; `remove` asked again, after
 *     whatever interruption, leaves nothing of the run but the removal itself.
 * A4  A run whose document was put is found by `runsOf`, and no document is there that is not.
 * A5  Of a schedule the highest version that was put counts, whichever came last; one that was removed is never listed again.
 *
 * Every call may throw `ArchiveFailed`; what was asked may have happened all the same.
 */

export interface Segment {
  readonly run_id: string;
  readonly first_seq: number;
  readonly last_seq: number;
  /** Encoded events, in order. */
  readonly events: readonly string[];
}

/** What an ended run came to. */
export interface EndedRun {
  readonly run_id: string;
  readonly tenant: string;
  /** JSON, as the API shows it. */
  readonly document: string;
}

export interface ArchivedRun {
  readonly run_id: string;
  /** Its document is there: the run needs no restoring. */
  readonly ended: boolean;
  /** The log is there without a gap up to here; 0 where its first event is missing. */
  readonly last_seq: number;
}

/** What a schedule is, as JSON. */
export interface ArchivedSchedule { readonly id: string; readonly version: number; readonly document: string }

/** That a run was deleted, and whose it was. */
export interface Removal {
  readonly run_id: string;
  readonly tenant: string;
  /** ISO 8601, UTC. */
  readonly deleted_at: string;
}

export interface Archive {
  putSegment(segment: Segment): Promise<void>;
  putRun(run: EndedRun): Promise<void>;
  /** Content-addressed; answers the sha256 in hex. */
  putBlob(run_id: string, bytes: Uint8Array): Promise<string>;
  getBlob(run_id: string, sha256: string): Promise<Uint8Array | null>;
  /** Events after `after_seq`, at most about `limit` (whole segments are read; the rest is cut). Empty when there are none. */
  events(run_id: string, after_seq: number, limit: number): Promise<readonly string[]>;
  getRun(run_id: string): Promise<string | null>;
  /**
   * As few segments as their size allows, of a run that has ended: only when they were read back are the parts removed. Interrupted,
   * it loses nothing, and asked again goes on.
   */
  merge(run_id: string): Promise<void>;
  /** Every run of which there is something, in the order of ids: one listing of everything, for `restore`. */
  runs(): AsyncIterable<ArchivedRun>;
  /** Ended runs of a tenant whose ids were minted on a day (UTC, `2026-11-30`), in the order of ids. */
  runsOf(tenant: string, day: string): AsyncIterable<string>;
  /** Removes all that there is of a run, and remembers for good that it was removed. */
  remove(removal: Removal): Promise<void>;
  /** Null unless the run was removed. */
  removal(run_id: string): Promise<Removal | null>;
  putSchedule(schedule: ArchivedSchedule): Promise<void>;
  /** Removes all that there is of a schedule, and remembers for good that it was removed. */
  removeSchedule(schedule: { readonly id: string; readonly tenant: string; readonly deleted_at: string }): Promise<void>;
  /** Every schedule that was not removed, in the order of ids. */
  schedules(): AsyncIterable<ArchivedSchedule>;
  /** Writes, reads back and removes a probe; throws with what failed. */
  check(): Promise<void>;
}

/** `unavailable`: the same call may succeed later. `refused`: not before somebody changes something. */
export class ArchiveFailed extends Error {
  readonly kind: 'unavailable' | 'refused';

  constructor(kind: 'unavailable' | 'refused', message: string) {
    super(message);
    this.name = 'ArchiveFailed';
    this.kind = kind;
  }
}

/** The archive holds other bytes under a key that never changes: two histories of one run exist. */
export class ArchiveConflict extends Error {
  readonly code = 'state_lost';

  constructor(key: string) {
    super(`the archive holds other bytes under ${key}`);
    this.name = 'ArchiveConflict';
  }
}
