/**
 * A reader that comes back to a log whose store has lost its last writes: what it has seen beyond the place where the run went on is void, and
 * it is told so by a `reset` before it reads on from there. (Of a stream that is open `readLog` knows when its last event was written.)
 *
 * Which history a reader has seen that comes back is told by the epoch of its last event, where it says that. With nothing but a seq it cannot
 * be told for certain: one that names an event which was written soon after the run went on may have seen the lost one under that seq, and
 * is told to start again, too.
 */
import { readLog, type Move } from '@treadle/engine';
import type { ApiContext } from '../dependencies.ts';

/** Many times what a store loses; a reader who comes back to a place that was written later has seen what is there. */
const doubtMs = 60_000;

/** `reset`: from `after_seq` on nothing that the reader has seen is to be believed. `beyond`: the log never went so far. */
export type Start = { readonly type: 'as_asked' | 'reset'; readonly after_seq: number; readonly seen_epoch: number } | { readonly type: 'beyond' };

interface End { readonly last_seq: number; readonly ended: boolean }

interface ComesBack extends End {
  readonly after_seq: number;
  /** Of the event that it has seen last, where it tells. */
  readonly epoch: number | null;
}

/** Where a reader stands that comes to a run. */
export async function startOf(context: ApiContext, run_id: string, { after_seq, epoch, ...end }: ComesBack): Promise<Start> {
  const all = await context.store().moves(run_id);
  const seen_epoch = epoch ?? Math.max(0, ...all.map((move) => move.epoch));
  const moves = all.filter((move) => move.seq < after_seq);
  const asked: Start = { type: 'as_asked', after_seq, seen_epoch };
  const reset = (to: readonly Move[]): Start => ({ type: 'reset', after_seq: before(end, to), seen_epoch: Math.max(0, ...all.map((move) => move.epoch)) });
  if (after_seq > end.last_seq && moves.length === 0) return { type: 'beyond' };
  if (moves.length === 0) return asked;
  if (after_seq > end.last_seq) return (await context.log.archive.events(run_id, after_seq - 1, 1)).length > 0 ? asked : reset(moves);
  const [there] = await readLog(context.log, run_id, { after_seq: after_seq - 1, limit: 1 });
  const doubted = moves.filter((move) => there === undefined || (epoch === null ? there.event.ts * 1000 < move.at_ms + doubtMs : there.event.epoch !== epoch));
  return doubted.length === 0 ? asked : reset(doubted);
}

/** The earliest of the places where a run went on; the event that ends the log is still to be shown. */
function before({ last_seq, ended }: End, moves: readonly Move[]): number {
  return Math.min(ended ? last_seq - 1 : last_seq, ...moves.map((move) => move.seq));
}
