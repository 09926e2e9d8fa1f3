/**
 * One gap-free log out of two places: what the store still holds, and below it the archive.
 * A read below the head of a trimmed stream would skip silently; this compares sequence numbers and fills from the archive.
 */
import { decodeEvent, type RunEvent } from '@treadle/core';
import type { Archive } from './ports/archive.ts';
import type { RunDirectory } from './ports/run-store.ts';

export interface LogDeps { readonly store: Pick<RunDirectory, 'events'>; readonly archive: Pick<Archive, 'events'> }

export interface LogEntry { readonly seq: number; readonly type: RunEvent['type']; readonly text: string; readonly event: RunEvent }

/**
 * Events after `after_seq`, in order and without a gap, at most `limit`. Empty when there is nothing newer.
 * Throws `LogGap` when neither place has the next event although a later one exists, `LogShortened` when the log ends before `after_seq`.
 */
export async function readLog(deps: LogDeps, run_id: string, range: { readonly after_seq: number; readonly limit: number }): Promise<LogEntry[]> {
  const stored = await deps.store.events(run_id, range.after_seq, range.limit);
  const live = entries(stored?.events ?? []);
  if (live[0]?.seq === range.after_seq + 1) return dense(live, range.after_seq);
  if (stored !== null && stored.last_seq < range.after_seq) return shortened(deps, run_id, { last_seq: stored.last_seq, after_seq: range.after_seq });
  if (stored?.last_seq === range.after_seq) return [];
  const archived = entries(await deps.archive.events(run_id, range.after_seq, range.limit)).slice(0, range.limit);
  const page = dense(archived, range.after_seq);
  if (page.length === 0 && (archived.length > 0 || stored !== null)) throw new LogGap(run_id, range.after_seq + 1);
  return page;
}

/** The store has lost its last writes. What the archive has of them will be written back, and whoever has seen it waits for that. */
async function shortened({ archive }: LogDeps, run_id: string, { last_seq, after_seq }: { readonly last_seq: number; readonly after_seq: number }): Promise<LogEntry[]> {
  if ((await archive.events(run_id, after_seq - 1, 1)).length > 0) return [];
  throw new LogShortened(run_id, last_seq);
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

/** The log ends before an event that somebody has seen: the store lost it, and the archive never had it. */
export class LogShortened extends Error {
  readonly code = 'state_lost';
  readonly last_seq: number;

  constructor(run_id: string, last_seq: number) {
    super(`${run_id}: the log ends at ${last_seq}; what followed is lost`);
    this.name = 'LogShortened';
    this.last_seq = last_seq;
  }
}
