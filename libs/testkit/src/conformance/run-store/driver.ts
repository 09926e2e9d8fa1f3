/** What the run store's suite drives: the store under test, and short ways to bring a run where a test needs it. */
import { randomUUID } from 'node:crypto';
import type { LedgerEntry, RunStatus } from '@treadle/core';
import type { Append, Claim, Claimed, Commit, CreateRun, Next, RunStore, SendCommand } from '@treadle/engine';
import { expect } from 'vitest';

/** A job that exists, as the queue would deliver it; `n` of a finish job says nothing. */
export interface JobUnderTest { readonly type: 'turn' | 'finish'; readonly run_id: string; readonly n: number }

export interface RunStoreUnderTest {
  readonly store: RunStore;
  /** The jobs that exist now. Nothing takes them during the suite. */
  jobs(): readonly JobUnderTest[] | Promise<readonly JobUnderTest[]>;
  /** Stands in for a queue that has lost a job. */
  loseJob(job: JobUnderTest): void | Promise<void>;
  /** Stands in for a store that was started again, or has taken another's place, as this run sees it. */
  otherStore(run_id: string): void | Promise<void>;
  /** Lets the store's clock run on; a real store really waits. */
  passTime(ms: number): void | Promise<void>;
  /** When the pump first looks for a job that was added by the store, and how long events are gathered for the archive. */
  readonly graceMs: number;
  readonly archiveAfterMs: number;
}

let made = 0;

/** Ids of runs in shard 0, each sorting after the one before. */
export function newRunId(): string {
  const time = Date.now().toString(16).padStart(12, '0');
  return `run_${time}${(++made).toString(16).padStart(8, '0')}${randomUUID().slice(0, 8)}0000`;
}

/** The text of an event; the store never looks inside. */
export function eventText(seq: number, text = 'x'): string {
  return JSON.stringify({ type: 'assistant_text', seq, content: text });
}

/** A session of the run's own. */
export function ownSession(run_id: string): CreateRun['session'] {
  return { id: run_id.replace(/^run_/, 'ses_'), mode: 'new', when_busy: 'reject' };
}

export const noChanges: Commit['changes'] = { fields: {}, generation: 1, replaces: false, messages: [] };

export function ledgerEntry(tool_use_id: string, fields: Partial<LedgerEntry> = {}): LedgerEntry {
  return {
    tool_use_id, tool_name: 'add', status: 'started', started_epoch: 1, settled_epoch: null, idempotency_key: `key-${tool_use_id}`,
    effect: 'once', outcome: null, ...fields,
  };
}

export type CommitFields = Partial<Omit<Commit, 'claim' | 'expected_seq' | 'next'>>;

export class Driver {
  readonly under: RunStoreUnderTest;
  constructor(under: RunStoreUnderTest) { this.under = under; }

  get store(): RunStore { return this.under.store; }

  async later(): Promise<number> { return await this.store.now() + 60_000; }

  /** A created run of one event, its job number 1. */
  async create(fields: Partial<CreateRun> = {}): Promise<string> {
    const run_id = fields.run_id ?? newRunId();
    const reply = await this.store.create({
      run_id, tenant: 'acme', agent: 'assistant', tags: [], priority: 50, events: [eventText(1)], last_ts: 1_700_000_000.25,
      changes: { ...noChanges, fields: { status: '"queued"' }, messages: ['{"role":"user"}'] }, run_at_ms: null, not_after_ms: await this.later(), session: ownSession(run_id), ...fields,
    });
    expect(reply).toMatchObject({ type: 'created' });
    return run_id;
  }

  async claim(run_id: string, n = 1, claim_id: string = randomUUID()): Promise<{ claim: Claim; claimed: Claimed }> {
    const claimed = await this.store.claim({ run_id, n, claim_id, held: null });
    if (claimed.type !== 'claimed') throw new Error(`not claimed: ${claimed.type}`);
    return { claim: { run_id, n, epoch: claimed.epoch, claim_id }, claimed };
  }

  /** A commit of one event, unless `fields` say otherwise. */
  write(claim: Claim, expected_seq: number, next: Next, fields: CommitFields = {}): Commit {
    return {
      claim, expected_seq, commit_id: randomUUID(), status: 'running', events: [eventText(expected_seq + 1)], last_ts: 1_700_000_001.5,
      changes: noChanges, ledger: [], open_calls: [], pending: [], inbox_seen: 0, applies_inbox: false, next, ...fields,
    };
  }

  append(claim: Claim, expected_seq: number, fields: Partial<Append> = {}): Append {
    const events = [eventText(expected_seq + 1)];
    return { claim, expected_seq, commit_id: randomUUID(), events, last_ts: 1_700_000_001.5, inbox_seen: 0, ...fields };
  }

  async commits(write: Commit): Promise<void> {
    expect(await this.store.commit(write)).toEqual({ type: 'committed', inbox: [] });
  }

  /** A run after one commit: claimed under n 1, then what `next` says. Its last seq is 2. */
  async after(next: Next, status: RunStatus = 'running'): Promise<{ run_id: string; claim: Claim; last: Commit }> {
    const run_id = await this.create();
    const { claim } = await this.claim(run_id);
    const last = this.write(claim, 1, next, { status });
    await this.commits(last);
    return { run_id, claim, last };
  }

  async send(run_id: string, command: SendCommand['command'], fields: Partial<SendCommand> = {}) {
    return this.store.command({ run_id, command_id: randomUUID(), command, not_after_ms: await this.later(), ...fields });
  }

  /** The jobs of one run, as `turn 1`, `finish`. */
  async jobs(run_id: string): Promise<string[]> {
    const jobs = await this.under.jobs();
    return jobs.filter((job) => job.run_id === run_id).map((job) => (job.type === 'finish' ? 'finish' : `turn ${job.n}`)).sort();
  }

  pump(limit = 100) { return this.store.pump(0, { limit, grace_ms: this.under.graceMs }); }

  async logOf(run_id: string): Promise<readonly string[]> {
    return (await this.store.events(run_id, 0, 10_000))?.events ?? [];
  }
}
