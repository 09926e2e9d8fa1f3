/** Of the run store's port: what keeps it in order beside the turns, and puts back what was lost. The promises are in `run-store.ts`. */
import type { RunStatus, StateChanges } from '@treadle/core';
import type { Claim, LedgerWrite, Next, PumpReply, SealedRange, ToldCommand } from './run-store.ts';

/** A run as its archived log tells it. `events` follow the archive's last, and are not in it yet. */
export interface RestoredRun {
  readonly run_id: string;
  readonly tenant: string;
  readonly agent: string;
  readonly tags: readonly string[];
  readonly priority: number;
  readonly session_id: string;
  readonly status: RunStatus;
  /** The next claim raises it further; 0 for a run that nobody has claimed. */
  readonly epoch: number;
  readonly archived_seq: number;
  readonly events: readonly string[];
  readonly last_ts: number;
  readonly event_epoch: number;
  /** The whole state, with `events`. */
  readonly changes: StateChanges;
  readonly ledger: readonly LedgerWrite[];
  readonly open_calls: readonly string[];
  readonly pending: readonly string[];
  readonly job: { readonly type: 'now' } | { readonly type: 'none' } | { readonly type: 'at'; readonly due_ms: number };
}

/** A run as its archived log tells it, to be put in the place of what a store still holds that has lost the end of it. */
export interface WriteBack {
  readonly claim: Claim;
  readonly expected_seq: number;
  readonly store_id: string;
  readonly run: Omit<RestoredRun, 'epoch' | 'job'>;
  /** How many of the commands that the claim was told of, from the first, the archived log has already. */
  readonly commands_applied: number;
  readonly next: Exclude<Next, { readonly type: 'keep' }>;
  /** As of a commit: what other runs were told beyond the store's end. */
  readonly tell: readonly ToldCommand[];
}

/** Background duties, for a worker's ticks, and what is done when the store was lost. */
export interface StoreUpkeep {
  /** Puts a run back that the store does not have; one that it has is left as it is. Behind its session's run it waits for that. */
  restore(run: RestoredRun): Promise<'restored' | 'exists'>;
  /** A session has had this run; of several the newest counts as its last. */
  restoreSession(session: { readonly session_id: string; readonly tenant: string; readonly last: string }): Promise<void>;
  /** At most `limit` entries of each kind, in one script. `grace_ms`: when to look again at a run that has a job. */
  pump(shard: number, options: { readonly limit: number; readonly grace_ms: number }): Promise<PumpReply>;
  /** Runs whose next archiving is due, at most `limit`; each is put off by `retry_ms`, so that a failure is tried again. */
  dueForArchive(shard: number, options: { readonly limit: number; readonly retry_ms: number }): Promise<readonly string[]>;
  /** Fixes the next range, of at most `max_events` and about 8 MiB, before it is put; asked again before `archived`, it answers the very same range. Null: nothing new. */
  seal(run_id: string, max_events: number): Promise<SealedRange | null>;
  /**
   * The sealed range is safely in the archive: the watermark moves, the stream is trimmed below it but for `keep_events`, and
   * an ended run whose log is archived whole expires after `retention_ms`. `overtaken`: that range is sealed no more, and nothing has changed;
   * somebody else has archived it, or the same was asked before.
   */
  archived(range: SealedRange, options: { readonly keep_events: number; readonly retention_ms: number }): Promise<'archived' | 'overtaken'>;
  /** Events that wait for the archive, and the time (epoch seconds) of the oldest; told from `looks` runs, if there are more. */
  archiveBacklog(shard: number, options: { readonly looks: number }): Promise<{ readonly events: number; readonly oldest_ts: number | null }>;
  /** What is under way in a shard; costs the same however many runs there are. */
  activeRuns(shard: number): Promise<ActiveRuns>;
  /** What is left to do in the archive for a run that has nothing more to be sealed. Such a run stays due until `archiveDutyDone`. */
  archiveDuty(run_id: string): Promise<ArchiveDuty>;
  /** A removal is due a second time after `settle_ms`: by then no write to the archive that had begun before it can still happen. */
  archiveDutyDone(run_id: string, duty: 'merge' | 'remove', options: { readonly settle_ms: number }): Promise<void>;
}

/** Runs that have not ended, by status. */
export interface ActiveRuns {
  readonly queued: number;
  readonly running: number;
  readonly paused: number;
  /** Calls of which nobody knows how they went, and a person is asked. */
  readonly in_doubt: number;
  /** Runs of any status that wait for a time. */
  readonly due: number;
  /** Ended runs of which somebody is still to be told. */
  readonly webhooks: number;
}

export type ArchiveDuty =
  | { readonly type: 'none' }
  /** The run has ended, its log is archived whole, in more than one segment. */
  | { readonly type: 'merge' }
  | { readonly type: 'remove'; readonly tenant: string; readonly deleted_at_ms: number };
