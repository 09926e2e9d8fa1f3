/**
 * The port of the run store: run state, log, ledger, inbox and control record, each call one atomic script.
 *
 * What an adapter promises (one conformance suite in testkit holds both the double and Redis to it):
 * S1  A write of a claimant happens only if epoch, claim id and last seq are all equal to the stored ones; else `fenced`,
 *     and nothing at all has changed. Everything is checked before the first write.
 * S2  A repeat of the last commit id of the same claim is answered as the first was, and writes nothing.
 * S3  `claim` hands out a run only for the current job number while that job is live, raises the epoch by one (by far more
 *     under S12), and answers the same claim id again with the same epoch, raising nothing.
 * S4  A commit whose next is `wait`, `pause` or `end`, that begins calls in the ledger, or that changes which calls wait for a word, is refused as `inbox_changed` while a
 *     command is in the inbox that the claimant has not seen (`inbox_seen`). So no accepted command and no wake-up is lost, and
 *     no call begins after a pause was accepted. A commit that waits, pauses or ends applies what it has seen
 *     (`applies_inbox`): a command that is seen, not applied and left behind would wake nobody.
 * S5  Events, state, messages, ledger, inbox and the next job are written together or not at all. The next job exists before
 *     the answer.
 * S6  `create` and `command` do nothing after `not_after` (store's clock), whenever they arrive.
 * S7  `create` is idempotent by run id, `command` by command id.
 * S8  Time that decides anything is the store's.
 * S9  A write is answered only when it is as durable as the store can make it.
 * S10 A command to another run that a commit carries is accepted with it under the rules of `command`, or passed over; but the end of a child
 *     finds room in a full inbox.
 * S11 A run with a parent is created only while the parent's claim holds and no cancel of it has been accepted.
 * S12 A store that was started again, or has taken another's place, may lack the last writes. Every claim says so, under an epoch that none which may be lost
 *     has had, until one has committed, or written back, under the name of the new store.
 * S13 What a run has used is counted once, by the first `finished` that says it and finds the run there and ended. What the store loses of its writes, it loses
 *     of both: the sums, and that the run was counted.
 *
 * A call that throws `StoreAway` has an unknown outcome: it may have happened. Claimants then abandon the delivery; the next claim finds out.
 */
import type { Command, LedgerEntry, RunStatus, StateChanges } from '@treadle/core';
import type { StoreUpkeep, WriteBack } from './store-upkeep.ts';
import type { RunUse, UsageQuery, UsageRow } from './usage-sums.ts';
import type { DeliveryDirectory, DeliveryUpkeep, NewDelivery } from './webhook-outbox.ts';

/** The store could not be reached, or could not take a write: what was asked may or may not have happened. */
export class StoreAway extends Error {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = 'StoreAway';
  }
}

/** A run's new life. Events are encoded, with seq 1 …; fields and messages are the fold of them. */
export interface CreateRun {
  readonly run_id: string;
  readonly tenant: string;
  readonly agent: string;
  readonly tags: readonly string[];
  readonly priority: number;
  readonly events: readonly string[];
  readonly last_ts: number;
  readonly changes: StateChanges;
  /** Epoch milliseconds of the store's clock; the first job is added then, or at once where null. */
  readonly run_at_ms: number | null;
  readonly session: CreateSession;
  /** The claim of the run that starts this one: without it, or once that run is being cancelled, nothing is created. Both lie in one shard. */
  readonly parent?: Claim | null;
  /** Epoch milliseconds of the store's clock (S6). */
  readonly not_after_ms: number;
}

/** Runs of a session are executed one after the other. `join` asks for a session that exists and is the tenant's own. */
export interface CreateSession { readonly id: string; readonly mode: 'new' | 'join'; readonly when_busy: 'reject' | 'queue' }

export type CreateReply =
  /** `behind`: the run that the session is busy with; this one has no job until that has ended. */
  | { readonly type: 'created'; readonly behind: string | null }
  | { readonly type: 'exists' }
  /** Nothing was written: the session's current run has not ended. */
  | { readonly type: 'session_busy'; readonly run_id: string }
  | { readonly type: 'session_missing' }
  /** The parent's claim does not hold, or the parent is being cancelled. */
  | { readonly type: 'fenced' }
  | { readonly type: 'too_late' };

export interface ClaimRequest {
  readonly run_id: string;
  /** The job's number. */
  readonly n: number;
  /** Random, minted by the caller for this delivery. */
  readonly claim_id: string;
  /** What the caller still holds of the run in memory, to be told only that it is current. Null reads everything. */
  readonly held: { readonly epoch: number; readonly claim_id: string; readonly last_seq: number } | null;
}

/** Proof of a claim; every later write carries it. */
export interface Claim {
  readonly run_id: string;
  readonly n: number;
  readonly epoch: number;
  readonly claim_id: string;
}

export interface InboxEntry { readonly command_id: string; readonly command: Command }

export interface StoredState {
  readonly fields: Readonly<Record<string, string>>;
  readonly last_seq: number;
  readonly last_ts: number;
  readonly epoch: number;
  readonly generation: number;
  readonly messages: readonly string[];
}

export interface Claimed {
  readonly type: 'claimed';
  readonly epoch: number;
  readonly last_seq: number;
  /** Null when what the caller holds is current. Its `epoch` is that of the last event, not of this claim. */
  readonly stored: StoredState | null;
  /** Commands not yet applied, in order, and how many the run has ever accepted (to be given back as `inbox_seen`). */
  readonly inbox: readonly InboxEntry[];
  readonly inbox_in: number;
  /** Of the calls that are open in this turn. */
  readonly ledger: readonly LedgerEntry[];
  readonly deliveries: number;
  readonly nudges: number;
  /** The run of the session that ended before this one; null where there is none. */
  readonly session_last: string | null;
  /** How long the run still had to wait when a command woke it, ms; 0 when nothing is waited for. */
  readonly wait_ms: number;
  /** Set where the store is another than the run was written by (S12): its name, for the claim's first commit. */
  readonly other_store: string | null;
}

export type ClaimReply =
  | Claimed
  /** An old job number, or the run has no live job. Nothing was changed. */
  | { readonly type: 'stale' }
  | { readonly type: 'ended' }
  | { readonly type: 'missing' };

/** What follows a commit. Every kind but `keep` ends the claim. */
export type Next =
  /** The claim goes on. */
  | { readonly type: 'keep' }
  /** Job n+1 is added, ahead of first turns. */
  | { readonly type: 'job' }
  /** No job until the time has come by the store's clock; then the pump adds n+1. A command wakes the run early; its claim says how long it still had to wait. */
  | { readonly type: 'wait'; readonly delay_ms: number }
  /** No job until a command comes. */
  | { readonly type: 'pause' }
  /** The run has ended: the `finish` job is added. */
  | { readonly type: 'end' };

export interface LedgerWrite {
  readonly tool_use_id: string;
  readonly entry: LedgerEntry;
}

export interface Commit {
  readonly claim: Claim;
  readonly expected_seq: number;
  /** Random, minted per commit; see S2. */
  readonly commit_id: string;
  readonly status: RunStatus;
  /** Encoded, seq expected_seq+1 …; may be empty. */
  readonly events: readonly string[];
  readonly last_ts: number;
  readonly changes: StateChanges;
  readonly ledger: readonly LedgerWrite[];
  /** Ids of the calls that are open after this commit. */
  readonly open_calls: readonly string[];
  /** What people's words are waited for after this commit: `awaitedWords`. */
  readonly pending: readonly string[];
  /** How many commands the claimant has seen, all of them applied by this commit or an earlier one when `applies_inbox`. */
  readonly inbox_seen: number;
  readonly applies_inbox: boolean;
  /** The claim has settled as unknown what an earlier one had begun: it is no proof that the run does not kill its workers, and the count goes on. `excused`: this
   * delivery is out of the count already. */
  readonly took_over?: 'no' | 'counted' | 'excused';
  /** The store that the claim was told of as another: what may be lost has been looked into (S12). */
  readonly store_id?: string;
  readonly next: Next;
  /** Commands to other runs of the same shard, accepted with this write; a run that cannot take one, or is not there, is passed over. */
  readonly tell?: readonly ToldCommand[];
}

/** See `SendCommand`. */
export interface ToldCommand { readonly run_id: string; readonly command_id: string; readonly command: Command }

export type CommitReply =
  /** `inbox`: commands beyond `inbox_seen`; with `keep` they are still waiting to be applied. */
  | { readonly type: 'committed'; readonly inbox: readonly InboxEntry[] }
  | { readonly type: 'fenced' }
  | { readonly type: 'inbox_changed'; readonly inbox: readonly InboxEntry[] };

/** Increments of a reply: events that change no state but the last seq. */
export interface Append {
  readonly claim: Claim;
  readonly expected_seq: number;
  readonly commit_id: string;
  readonly events: readonly string[];
  readonly last_ts: number;
  readonly inbox_seen: number;
}

export type AppendReply = { readonly type: 'committed'; readonly inbox: readonly InboxEntry[] } | { readonly type: 'fenced' };

export interface SendCommand {
  readonly run_id: string;
  /** A repeat of an accepted id is answered `accepted` again and does nothing (S7). */
  readonly command_id: string;
  readonly command: Command;
  readonly not_after_ms: number;
}

export type CommandReply =
  | { readonly type: 'accepted' }
  /** The run can no longer take it: it has ended, is being cancelled, or (resume) is not paused, or (outcome, approval) waits for no such word. */
  | { readonly type: 'invalid_state'; readonly status: RunStatus }
  /** A resume of a run whose turn has not come: this run of its session goes before it. */
  | { readonly type: 'behind'; readonly run_id: string }
  /** Somebody has given a word on this call before; the first one counts. */
  | { readonly type: 'already_decided' }
  | { readonly type: 'missing' }
  /** Too many commands wait in the inbox. */
  | { readonly type: 'inbox_full' }
  | { readonly type: 'too_late' };

/** What a worker asks once a second about the runs it holds. */
export interface WatchRequest { readonly claim: Claim; readonly inbox_seen: number }
export type WatchReply =
  | { readonly type: 'held'; readonly inbox: readonly InboxEntry[] }
  | { readonly type: 'fenced' };

/** A run as lists and readers see it without folding. */
export interface RunSnapshot {
  readonly tenant: string;
  readonly status: RunStatus;
  readonly stored: StoredState;
  readonly archived_seq: number;
}

export interface EventRange {
  /** Encoded, in order, seq after the asked one. */
  readonly events: readonly string[];
  /** The lowest seq the store still holds, 0 when it holds none; below it only the archive can tell. */
  readonly first_seq: number;
  readonly last_seq: number;
  /** As `moves`, but for one that no claim has looked into yet. */
  readonly moves: readonly Move[];
}

/** `at_ms`: epoch milliseconds of the store's clock. `epoch`: of the claim that went on; whatever is lost has a lower one. */
export interface Move { readonly seq: number; readonly at_ms: number; readonly epoch: number }
/** A conversation that successive runs share. */
export interface StoredSession {
  readonly tenant: string;
  /** The run under way, and the one that ended last; null where there is none. */
  readonly current: string | null;
  readonly last: string | null;
}

export interface ListRuns {
  readonly tenant: string;
  readonly session_id: string | null;
  readonly status: RunStatus | null;
  /** None that has ended. Default false. */
  readonly live?: boolean;
  readonly agent: string | null;
  readonly tag: string | null;
  /** Only runs created before this id, newest first; null from the newest. */
  readonly before_id: string | null;
  readonly limit: number;
}

export interface PumpReply {
  /** Due runs that now have a job. */
  readonly woken: number;
  /** Runs whose job had vanished and was added again. */
  readonly nudged: number;
}

/** A range of events that will be, or is being, written to the archive. */
export interface SealedRange { readonly run_id: string; readonly first_seq: number; readonly last_seq: number; readonly ended: boolean }

/** Writing side, for workers. */
export interface TurnStore {
  claim(request: ClaimRequest): Promise<ClaimReply>;
  commit(commit: Commit): Promise<CommitReply>;
  /** In the order given; runs of one shard go in one script. */
  appendMany(appends: readonly Append[]): Promise<readonly AppendReply[]>;
  watch(requests: readonly WatchRequest[]): Promise<readonly WatchReply[]>;
  /** The delivery ends without a decision and does not count as one that died. The job itself is handed back by the queue. */
  handBack(claim: Claim): Promise<void>;
  /** Adds `by` to the count of deliveries that died, for the claims that still hold: a run that cannot be to blame is excused. */
  recount(claims: readonly Claim[], by: 1 | -1): Promise<void>;
  /** Ends the claim. Commands that are not applied stay; S4 does not hold. Sent again: `fenced`. */
  writeBack(back: WriteBack): Promise<'written' | 'fenced'>;
  /** The last duty of an ended run: what it has used is counted (S13), what is to be told of it is written down (W1), its session goes on to the next run, and it is taken out of `held`. Idempotent. */
  finished(run_id: string, use?: RunUse | null, delivery?: NewDelivery | null): Promise<void>;
}

/** Commands and reads, for the API. */
export interface RunDirectory extends DeliveryDirectory {
  create(run: CreateRun): Promise<CreateReply>;
  command(command: SendCommand): Promise<CommandReply>;
  /** Without its messages a long run costs no more than a short one. */
  read(run_id: string, without?: 'messages'): Promise<RunSnapshot | null>;
  events(run_id: string, after_seq: number, limit: number): Promise<EventRange | null>;
  ledger(run_id: string): Promise<readonly LedgerEntry[] | null>;
  /** Where the run went on, or will, each time it had come to another store (S12): what somebody had seen beyond that may be gone. The newest are kept, oldest first. */
  moves(run_id: string): Promise<readonly Move[]>;
  list(query: ListRuns): Promise<{ readonly run_ids: readonly string[]; readonly next_before_id: string | null }>;
  /** Begins a session without a run. Idempotent by id. */
  createSession(session: { readonly id: string; readonly tenant: string; readonly not_after_ms: number }): Promise<'created' | 'too_late'>;
  session(session_id: string): Promise<StoredSession | null>;
  /** Newest first. */
  listSessions(query: { readonly tenant: string; readonly before_id: string | null; readonly limit: number }):
    Promise<{ readonly session_ids: readonly string[]; readonly next_before_id: string | null }>;
  /** Reserves an idempotency key for a run id that has not been created yet; answers with what holds the key. */
  reserveKey(key: { readonly tenant: string; readonly key: string; readonly run_id: string; readonly body_hash: string; readonly not_after_ms: number }):
    Promise<{ readonly type: 'reserved' | 'held'; readonly run_id: string; readonly body_hash: string } | { readonly type: 'too_late' }>;
  /**
   * Deletes an ended run, or one that only the archive still knows: from the answer on the store knows nothing of it but that, its
   * session has forgotten it, and its removal from the archive is due. Idempotent; nothing happens to another tenant's run.
   */
  remove(run: RemoveRun): Promise<RemoveReply>;
  /** Null unless the run was deleted; kept as long as an idempotency key can name the run. */
  removed(run_id: string): Promise<{ readonly tenant: string; readonly deleted_at_ms: number } | null>;
  /** What a tenant's ended runs have used; an agent and a model may have several rows of a day. */
  usage(query: UsageQuery): Promise<readonly UsageRow[]>;
  /** The store's clock, epoch milliseconds. */
  now(): Promise<number>;
}

export interface RemoveRun {
  readonly run_id: string;
  readonly tenant: string;
  readonly not_after_ms: number;
}

export type RemoveReply =
  | { readonly type: 'removed'; readonly deleted_at_ms: number }
  /** Cancel it first. */
  | { readonly type: 'not_ended'; readonly status: RunStatus }
  /** Another tenant's. */
  | { readonly type: 'missing' }
  | { readonly type: 'too_late' };

export interface RunStore extends TurnStore, RunDirectory, StoreUpkeep, DeliveryUpkeep {}
