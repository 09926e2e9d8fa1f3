/** What the store in memory keeps of a run, and of all of them. */
import type { LedgerEntry, RunStatus } from '@treadle/core';
import type { InboxEntry, RunStore, SealedRange, UsageRow } from '@treadle/engine';
import type { Deleted } from './archiving.ts';
import type { Delivery } from './outbox.ts';
import type { Session } from './sessions.ts';

export interface Run {
  session: string; tenant: string; agent: string; tags: readonly string[]; priority: number;
  status: RunStatus; epoch: number; claim_id: string; event_epoch: number; job_n: number; job_live: boolean; deliveries: number; nudges: number;
  last_seq: number; last_ts: number; last_commit: { claim_id: string; commit_id: string } | null;
  wanted: 'cancel' | 'pause' | null; first_claimed: boolean;
  fields: Record<string, string>; generation: number; messages: string[]; events: { seq: number; text: string }[];
  ledger: Record<string, LedgerEntry>; open_calls: readonly string[]; pending: readonly string[]; decided: string[];
  inbox: InboxEntry[]; inbox_in: number; inbox_done: number; commands: string[];
  holder: string; not_before: number; archived_seq: number; sealed: SealedRange | null; due_ms: number | null; held_ms: number | null; archive_ms: number | null; expires_ms: number | null;
  segments: number; merge_due: boolean; counted?: boolean; told?: boolean;
  /** Which store the run was last written by, and where it went on when that had become another. */
  store: string; moves: { seq: number; at_ms: number; epoch: number }[];
}

export interface MemoryJob { readonly type: 'turn' | 'finish'; readonly run_id: string; readonly n: number; readonly front: number }

export interface Data { deleted: Record<string, Deleted>; sessions: Record<string, Session>; runs: Record<string, Run>; jobs: MemoryJob[]; keys: Record<string, { run_id: string; body_hash: string }>; feed: number; used: Record<string, UsageRow & { readonly tenant: string }>; outbox: Record<string, Delivery> }

export interface Protections { claimCheck: boolean; claimId: boolean; expectedSeq: boolean; inboxCheck: boolean; /** Of a start: does its claim hold? */ parentCheck: boolean }

export interface MemoryRunStore extends RunStore {
  /** The jobs that exist, in the order in which they would be delivered. */
  jobs(): readonly MemoryJob[];
  /** What the queue does when a handler is done. */
  removeJob(job: Pick<MemoryJob, 'type' | 'run_id' | 'n'>): void;
  passTime(ms: number): void;
  /** The clock of `now`. */
  nowMs(): number;
  /** Started again, or another in its place: what is held is the same, less what `rollBack` undoes. */
  becomeAnother(): void;
  /** Undoes the last `writes` steps that changed something. */
  rollBack(writes: number): void;
  /** Lets go of what `rollBack` would need: a store that somebody still holds, frozen in a delivery, should not cost that much. */
  forget(): void;
  /** How many steps have changed something. */
  readonly writes: number;
  readonly protections: Protections;
}
