/** Of the store's port: a run as its archived log tells it, put back after the store was lost, or its last writes were. */
import type { RunStatus, StateChanges } from '@treadle/core';
import type { Claim, LedgerWrite, Next, ToldCommand } from './run-store.ts';

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
