/**
 * One gap-free log out of two places: what the store still holds, and below it the archive.
 * A read below the head of a trimmed stream would skip silently; this compares sequence numbers and fills from the archive.
 */
import { decodeEvent, type RunEvent } from '@treadle/core';
import type { Archive } from './ports/archive.ts';
import type { EventRange, RunDirectory } from './ports/run-store.ts';

export interface LogDeps { readonly store: Pick<RunDirectory, 'events'>; readonly archive: Pick<Archive, 'events'> }

export interface LogEntry { readonly seq: number; readonly type: RunEvent['type']; readonly text: string; readonly event: RunEvent }

export interface LogRange {
  readonly after_seq: number;
  readonly limit: number;
  /** Where somebody has seen the event `after_seq`: its epoch, or one that no event then had passed. */
  readonly seen_epoch?: number;
}

/**
 * Events after `after_seq`, in order and without a gap, at most `limit`. Empty when there is nothing newer.
 * Throws `LogGap` when neither place has the next event although a later one exists, `LogSetBack` where the store has lost what was seen.
 */
export async function readLog(deps: LogDeps, run_id: string, range: LogRange): Promise<LogEntry[]> {
  const stored = await deps.store.events(run_id, range.after_seq, range.limit);
  if (stored !== null) checkSeen(run_id, stored, range);
  const live = entries(stored?.events ?? []);
  if (live[0]?.seq === range.after_seq + 1) return dense(live, range.after_seq);
  if (stored !== null && stored.last_seq < range.after_seq) return awaited(deps, run_id, { last_seq: stored.last_seq, after_seq: range.after_seq });
  if (stored?.last_seq === range.after_seq) return [];
  const archived = entries(await deps.archive.events(run_id, range.after_seq, range.limit)).slice(0, range.limit);
  const page = dense(archived, range.after_seq);
  if (page.length === 0 && (archived.length > 0 || stored !== null)) throw new LogGap(run_id, range.after_seq + 1);
  return page;
}

/** What an earlier claim had written beyond the place where the run went on is void: under those numbers something else is written. */
function checkSeen(run_id: string, { moves, last_seq }: EventRange, { after_seq, seen_epoch }: LogRange): void {
  const void_ = seen_epoch === undefined ? [] : moves.filter((move) => move.seq < after_seq && seen_epoch < move.epoch);
  // The event that ends a log is always still to be shown.
  if (void_.length > 0) {
    throw new LogSetBack(run_id, { last_seq: Math.min(last_seq - 1, ...void_.map((move) => move.seq)), epoch: Math.max(...void_.map((move) => move.epoch)) });
  }
}

/** The store has lost its last writes, and nobody has gone on yet. What the archive has of them will be written back: whoever has seen it waits. */
async function awaited({ archive }: LogDeps, run_id: string, { last_seq, after_seq }: { readonly last_seq: number; readonly after_seq: number }): Promise<LogEntry[]> {
  if ((await archive.events(run_id, after_seq - 1, 1)).length > 0) return [];
  throw new LogSetBack(run_id, { last_seq, epoch: 0 });
}

/** The whole log, page by page. */
export async function* wholeLog(deps: LogDeps, run_id: string): AsyncGenerator<LogEntry> {
  let after_seq = 0;
  for (;;) {
    const page = await readLog(deps, run_id, { after_seq, limit: 500 });
    yield* page;
    const last = page.at(-1);
    if (last === undefined || last.type === 'run_end') return;
    after_seq = last.seq;
  }
}

function entries(texts: readonly string[]): LogEntry[] {
  return texts.map((text) => {
    const event = decodeEvent(text);
    return { seq: event.seq, type: event.type, text, event };
  });
}

/** The run of consecutive events from the start; what lies behind a gap is left to the next read. */
function dense(log: readonly LogEntry[], after_seq: number): LogEntry[] {
  const end = log.findIndex((entry, index) => entry.seq !== after_seq + 1 + index);
  return log.slice(0, end < 0 ? log.length : end);
}

/** An event is in neither the store nor the archive although later ones are: the log has lost something. */
export class LogGap extends Error {
  readonly code = 'state_lost';
  readonly seq: number;

  constructor(run_id: string, seq: number) {
    super(`${run_id}: event ${seq} is in neither the store nor the archive`);
    this.name = 'LogGap';
    this.seq = seq;
  }
}

/** What was seen beyond an event is lost: the store lost it, and the archive never had it. */
export class LogSetBack extends Error {
  readonly code = 'state_lost';
  readonly last_seq: number;
  /** Of the claim that went on, 0 where none has. */
  readonly epoch: number;

  constructor(run_id: string, { last_seq, epoch }: { readonly last_seq: number; readonly epoch: number }) {
    super(`${run_id}: the log was set back to ${last_seq}; what had followed is lost`);
    this.name = 'LogSetBack';
    this.last_seq = last_seq;
    this.epoch = epoch;
  }
}
