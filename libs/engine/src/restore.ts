/**
 * The store is lost: every unfinished run is built again from its archived log.
 *
 * R1  A run that the store has is left alone; so asking twice, or while workers run, is harmless.
 * R2  A restored run stands where its archived log ends: its state is the fold, its epoch lies far above every one in the log, since
 *     nobody knows how often it was claimed after that. Claims from before are fenced.
 * R3  A `once` call without a result is in doubt. Where the archive lags behind the runs (`async`) calls that it never saw may have
 *     happened, too: a run that may use `once` tools waits as `paused: outcome`, until somebody resumes it, unless repeats are accepted.
 * R4  What waited waits again until its time, what was paused stays paused, a session's runs go one after the other.
 * R5  A run comes back after the runs that it has started, so that none of these is started anew; then it is told of those that have ended.
 * R6  Nobody knows whether the end of a run was told that ended within the last day (and began within the last 30, as for sessions): it is told again,
 *     under its old id.
 * R7  Removed runs are not in the archive's listing, and stay removed. One run's fault keeps back no other.
 */
import { encodeEvent, evolve, isEnded, specOf, noUsage, stamp, type Command, type EventBody, type PendingCall, type RunState } from '@treadle/core';
import { readArchived, restoredFrom, type ArchivedLog } from './archived-run.ts';
import { endOfArchived } from './child-runs.ts';
import type { Archive } from './ports/archive.ts';
import type { Clock } from './ports/clock.ts';
import type { RunDirectory } from './ports/run-store.ts';
import type { RestoredRun, StoreUpkeep } from './ports/store-upkeep.ts';
import type { DeliveryUpkeep } from './ports/webhook-outbox.ts';
import { archivedDocument } from './run-view.ts';
import { deliveryOf, deliveryOfArchived } from './webhook-body.ts';

export interface RestoreDeps {
  readonly store: Pick<StoreUpkeep, 'restore' | 'restoreSession'> & Pick<DeliveryUpkeep, 'restoreDelivery'> & Pick<RunDirectory, 'command' | 'read'>;
  readonly archive: Pick<Archive, 'runs' | 'events' | 'getRun' | 'putRun'>;
  readonly clock: Pick<Clock, 'nowMs'>;
}

export interface RestoreOptions {
  /** What the archive is behind by may be done again. */
  readonly accept_repeats: boolean;
  /** Nothing was begun before the archive had it. */
  readonly strict: boolean;
  /** Runs of shards beyond these would have no worker. */
  readonly shards: number;
  readonly onProgress?: (summary: RestoreSummary) => void;
}

export interface RestoreSummary {
  /** Runs that the archive has something of. */
  readonly found: number;
  readonly restored: number;
  /** Of the restored ones: those that wait for a person (R3). */
  readonly waiting_for_word: number;
  /** The store has them. */
  readonly present: number;
  readonly ended: number;
  readonly sessions: number;
  /** Ends that are told, perhaps again. */
  readonly webhooks: number;
  readonly failed: readonly { readonly run_id: string; readonly problem: string }[];
}

/** How far a session goes back. */
const sessionMs = 30 * 24 * 3_600_000;
/** After which an end has been told, or given up. */
const toldWithinMs = 24 * 3_600_000;
/** Claims that may have happened after the archived point. */
const unseenClaims = 1000;

interface Restoring extends RestoreOptions { readonly childrenFirst: (state: RunState) => Promise<void> }

type Parent = Pick<RunState, 'run_id' | 'children' | 'calls' | 'pause_reason'>;

type Counts = { -readonly [Key in keyof RestoreSummary]: RestoreSummary[Key] };

/** Throws what the store or the archive throws when they are away: asked again, it goes on. */
export async function restoreRuns(deps: RestoreDeps, options: RestoreOptions): Promise<RestoreSummary> {
  const counts: Counts = { found: 0, restored: 0, waiting_for_word: 0, present: 0, ended: 0, sessions: 0, webhooks: 0, failed: [] };
  const unfinished: { run_id: string; last_seq: number }[] = [];
  // Sessions first: a run that waits for its session starts from what the last one said.
  for await (const { run_id, ended, last_seq } of deps.archive.runs()) {
    counts.found++;
    if (!ended) unfinished.push({ run_id, last_seq });
    else {
      counts.ended++;
      if (mintedMs(run_id) > deps.clock.nowMs() - sessionMs) await restoreEnded(deps, run_id, counts, options);
    }
    options.onProgress?.(counts);
  }
  const left = new Map(unfinished.map(({ run_id, last_seq }) => [run_id, last_seq]));
  const parents: Parent[] = [];
  const restoreOne = async (run_id: string): Promise<void> => {
    const last_seq = left.get(run_id);
    if (last_seq === undefined || !left.delete(run_id)) return;
    let parent: Parent | null = null;
    const outcome = await restoreRun(deps, { run_id, last_seq }, { ...options, childrenFirst: async (state) => {
      const { children, calls, pause_reason } = state;
      if (children.length > 0) parent = { run_id, children, calls, pause_reason };
      for (const { child_run_id } of state.children) await restoreOne(child_run_id);
    } });
    switch (outcome.type) {
      case 'restored':
        counts.restored++;
        if (outcome.waits) counts.waiting_for_word++;
        if (parent !== null) parents.push(parent);
        break;
      case 'exists': counts.present++; break;
      case 'ended':
        counts.ended++;
        if (outcome.told) counts.webhooks++;
        break;
      case 'failed': counts.failed = [...counts.failed, { run_id, problem: outcome.problem }];
    }
    options.onProgress?.(counts);
  };
  for (const { run_id } of unfinished) await restoreOne(run_id);
  for (const parent of parents) await tellOfChildren(deps, parent);
  return counts;
}

/** What it missed; the rest it finds out itself, once it looks for those that it waits for. */
async function tellOfChildren({ store, archive }: RestoreDeps, { run_id, children, calls, pause_reason }: Parent): Promise<void> {
  const tell = (command_id: string, command: Command): Promise<unknown> => store.command({ run_id, command_id, command, not_after_ms: Number.MAX_SAFE_INTEGER });
  for (const { child_run_id, tool_use_id, status } of children) {
    if (status !== 'queued') continue;
    const document = await archive.getRun(child_run_id);
    const open = calls.some((call) => call.tool_use_id === tool_use_id && !call.settled);
    if (document !== null) await tell(`${child_run_id}-restored`, endOfArchived(child_run_id, document));
    // A call that is open starts it again; of another one nothing will be heard any more.
    else if (!open && await store.read(child_run_id, 'messages') === null) {
      await tell(`${child_run_id}-lost`, { type: 'child_ended', child_run_id, status: 'failed', stop_reason: 'state_lost', text: '', usage: noUsage, tool_calls: 0 });
    }
  }
  if (pause_reason === 'children') await tell(`${run_id}-restored`, { type: 'resume' });
}

async function restoreEnded(deps: RestoreDeps, run_id: string, counts: Counts, options: RestoreOptions): Promise<void> {
  const text = await deps.archive.getRun(run_id);
  if (text === null) return;
  const document = JSON.parse(text) as { session_id: string; tenant: string; ended_at: string | null };
  const { session_id, tenant } = document;
  await deps.store.restoreSession({ session_id, tenant, last: run_id });
  counts.sessions++;
  const delivery = deps.clock.nowMs() - Date.parse(document.ended_at ?? '') > toldWithinMs ? null : deliveryOfArchived(document);
  if (delivery === null) return;
  const problem = withoutWorker(run_id, options);
  if (problem !== null) counts.failed = [...counts.failed, { run_id, problem: `its end is not told: ${problem}` }];
  else if (await deps.store.restoreDelivery(run_id, delivery) === 'restored') counts.webhooks++;
}

/** In words; null where its shard has workers. */
function withoutWorker(run_id: string, { shards }: RestoreOptions): string | null {
  return Number.parseInt(run_id.slice(-2), 16) < shards ? null : `its shard has no worker: TREADLE_SHARDS is ${shards}`;
}

type Outcome =
  | { readonly type: 'restored'; readonly waits: boolean }
  | { readonly type: 'exists' }
  | { readonly type: 'ended'; readonly told: boolean }
  | { readonly type: 'failed'; readonly problem: string };

async function restoreRun(deps: RestoreDeps, found: { readonly run_id: string; readonly last_seq: number }, options: Restoring): Promise<Outcome> {
  const { run_id, last_seq } = found;
  if (last_seq === 0) return { type: 'failed', problem: 'the beginning of its log is not in the archive' };
  const problem = withoutWorker(run_id, options);
  if (problem !== null) return { type: 'failed', problem };
  const archived = await readArchived(deps.archive, run_id, { last_seq });
  if (typeof archived === 'string') return { type: 'failed', problem: archived };
  if (isEnded(archived.state.status) && archived.state.ended_at !== null) {
    return { type: 'ended', told: await putEnded(deps, archived.state) };
  }
  await options.childrenFirst(archived.state);
  const run = rebuilt(archived, deps.clock.nowMs(), options);
  const reply = await deps.store.restore(run);
  return reply === 'exists' ? { type: 'exists' } : { type: 'restored', waits: run.events.length > 0 };
}

/** The log was archived to its end, and what it came to was not. */
async function putEnded(deps: RestoreDeps, state: RunState): Promise<boolean> {
  const document = archivedDocument(state, state.last_seq, state.tenant);
  await deps.archive.putRun({ run_id: state.run_id, tenant: state.tenant, document });
  await deps.store.restoreSession({ session_id: state.session_id, tenant: state.tenant, last: state.run_id });
  const delivery = deliveryOf(state, state.last_seq);
  return delivery !== null && await deps.store.restoreDelivery(state.run_id, delivery) === 'restored';
}

function rebuilt({ state: folded, ledger, waits_until }: ArchivedLog, now_ms: number, options: RestoreOptions): RestoredRun {
  const begun = folded.status !== 'queued';
  const run_at = folded.run_at === null ? 0 : Date.parse(folded.run_at);
  const ahead = !begun && run_at > now_ms;
  const asks = !options.strict && !options.accept_repeats && !ahead && folded.status !== 'paused' && mayUseOnce(folded);
  const epoch = begun || asks ? folded.epoch + unseenClaims : 0;
  const { state, events } = asks ? waiting(folded, epoch, now_ms) : { state: folded, events: [] };
  const due_ms = begun ? waits_until ?? 0 : run_at;
  return {
    ...restoredFrom(state, ledger, events), epoch,
    job: state.status === 'paused' && state.resumes_at === null ? { type: 'none' } : due_ms > now_ms ? { type: 'at', due_ms } : { type: 'now' },
  };
}

/** Before the first claim nobody knows what the agent's patterns stand for. */
function mayUseOnce(state: RunState): boolean {
  return state.tools === null ? specOf(state).tools.length > 0 : state.tools.some((tool) => tool.effect === 'once');
}

/** The run waits for a person: for a word on each `once` call without a result, or to be resumed. */
function waiting(folded: RunState, epoch: number, now_ms: number): { state: RunState; events: string[] } {
  const once = new Set((folded.tools ?? []).flatMap((tool) => tool.effect === 'once' ? [tool.name] : []));
  const pending = folded.calls.filter((call) => !call.settled && call.invalid === null && once.has(call.tool_name))
    .map(({ tool_use_id, tool_name, tool_input }): PendingCall => ({ kind: 'outcome', tool_use_id, tool_name, tool_input, expires_at: null }));
  const bodies: EventBody[] = [{ type: 'state_change', old: 'running', new: 'paused', reason: 'outcome', ...(pending.length > 0 ? { pending } : {}) }];
  if (folded.status === 'queued') bodies.unshift({ type: 'state_change', old: 'queued', new: 'running', reason: 'claimed' });
  let state = folded;
  const events = bodies.map((body) => {
    const event = stamp(state, body, now_ms / 1000, epoch);
    state = evolve(state, event);
    return encodeEvent(event);
  });
  return { state, events };
}

/** Ids begin with the time at which they were minted. */
function mintedMs(run_id: string): number {
  return Number.parseInt(run_id.slice(4, 16), 16);
}
