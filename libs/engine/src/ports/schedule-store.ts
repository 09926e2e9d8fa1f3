/**
 * The port of the schedules: what makes runs at times. Each call is one atomic script.
 *
 * C1  `create` is idempotent by id, `change` by change id, `remove` by itself; none does anything after `not_after` (store's clock).
 * C2  A due time is left behind once: `advance` moves a schedule on only from the time that the caller has acted on. Else `moved`, and nothing has changed.
 * C3  What is due is decided by the store's clock. Whatever is handed out is put off, so that a failure is tried again, and not at once.
 *     `leave` makes it due again at once.
 * C4  A change of what a schedule is (not of where it stands) raises its version, and is due for the archive until `archived` names that version.
 * C5  A schedule that was removed is known as removed until long after the archive has it, and is created and restored no more.
 *
 * Calls throw `StoreAway` as the run store's do: what was asked may have happened.
 */
import type { Content, Limits, WebhookTarget } from '@treadle/core';

/** The run that a schedule makes each time. Checked when it was accepted; the agent may have changed since. */
export interface ScheduledRun {
  readonly agent: string;
  readonly input: Content;
  readonly limits: Partial<Limits>;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly tags: readonly string[];
  readonly priority: number;
  /** Null: each run has a session of its own. Lies in the schedule's shard. */
  readonly session_id: string | null;
  readonly on_busy: 'reject' | 'queue' | 'interrupt';
  /** Null: the agent's. */
  readonly chain: string | null;
  /** Who is told of each run's end. */
  readonly webhook: WebhookTarget | null;
}

export interface ScheduleDefinition {
  readonly name: string | null;
  readonly cron: string;
  /** IANA name. */
  readonly timezone: string;
  /** How late a run may be made. */
  readonly catch_up_s: number;
  readonly run: ScheduledRun;
}

/** Why a time made no run. */
export interface ScheduleError { readonly due_ms: number; readonly code: string; readonly message: string }

export interface Schedule {
  readonly id: string;
  readonly tenant: string;
  readonly definition: ScheduleDefinition;
  readonly paused: boolean;
  readonly created_at_ms: number;
  readonly version: number;
  /** The first time that has not been left behind; stays while paused. Null: there is none any more. */
  readonly next_ms: number | null;
  readonly last: { readonly due_ms: number; readonly run_id: string } | null;
  /** Times that made a run, that were missed, and that failed. */
  readonly fired: number;
  readonly skipped: number;
  readonly failed: number;
  readonly last_error: ScheduleError | null;
}

export type NewSchedule = Pick<Schedule, 'id' | 'tenant' | 'definition' | 'paused' | 'next_ms'>;

export interface ScheduleChange {
  readonly id: string;
  readonly tenant: string;
  /** Random: the same one again is the same change. */
  readonly change_id: string;
  /** What the change was made from: of another version it is refused as `conflict`. */
  readonly version: number;
  readonly definition: ScheduleDefinition;
  readonly paused: boolean;
  /** Where the times are others now; else it stands where it stood, also if a worker has moved it on meanwhile. */
  readonly next_ms: number | null | 'as_it_is';
  readonly not_after_ms: number;
}

/** For the API. */
export interface ScheduleDirectory {
  /** `most`: schedules that a tenant may have; of several shards their sum is asked first, so that two at the same moment may both be the last. */
  create(schedule: NewSchedule & { readonly not_after_ms: number; readonly most: number }): Promise<'created' | 'exists' | 'removed' | 'too_many' | 'too_late'>;
  /** Null where there is none, or none any more. */
  schedule(id: string): Promise<Schedule | null>;
  change(change: ScheduleChange): Promise<'changed' | 'conflict' | 'missing' | 'too_late'>;
  remove(schedule: { readonly id: string; readonly tenant: string; readonly not_after_ms: number }): Promise<{ readonly type: 'removed'; readonly removed_at_ms: number } | { readonly type: 'missing' | 'too_late' }>;
  /** A tenant's, newest first. */
  list(query: { readonly tenant: string; readonly before_id: string | null; readonly limit: number }): Promise<{ readonly ids: readonly string[]; readonly next_before_id: string | null }>;
}

export interface ScheduleAdvance {
  readonly id: string;
  /** The time that the caller found the schedule at. */
  readonly from_ms: number;
  readonly next_ms: number | null;
  /** Times from `from_ms` on that were left out. */
  readonly skipped: number;
  readonly outcome: { readonly type: 'fired'; readonly due_ms: number; readonly run_id: string } | { readonly type: 'failed'; readonly error: ScheduleError } | { readonly type: 'skipped' };
}

/** What the archive is to hold of a schedule. */
export type ScheduleDuty =
  | { readonly type: 'put'; readonly schedule: Schedule }
  | { readonly type: 'remove'; readonly id: string; readonly tenant: string; readonly version: number; readonly removed_at_ms: number };

/** For workers, and for `restore`. */
export interface ScheduleUpkeep {
  /** Those whose time has come, and the store's clock, by which it has. */
  due(shard: number, options: { readonly limit: number; readonly retry_ms: number }): Promise<{ readonly now_ms: number; readonly ids: readonly string[] }>;
  schedule(id: string): Promise<Schedule | null>;
  advance(advance: ScheduleAdvance): Promise<'advanced' | 'moved'>;
  /** Due again at once, for whoever comes next; nothing where it no longer stands at that time. */
  leave(id: string, from_ms: number): Promise<void>;
  dueForArchive(shard: number, options: { readonly limit: number; readonly retry_ms: number }): Promise<readonly string[]>;
  /** Null: nothing is known of it any more. */
  duty(id: string): Promise<ScheduleDuty | null>;
  archived(id: string, version: number): Promise<void>;
  /** As the archive has it, to a store that has not. */
  restore(schedule: Schedule): Promise<'restored' | 'exists'>;
}

export interface ScheduleStore extends ScheduleDirectory, ScheduleUpkeep {}
