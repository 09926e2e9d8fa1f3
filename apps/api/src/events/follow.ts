/**
 * One reader of one log, from where it stands to the log's end or its own.
 *
 * 1. Every event after the position is written once, in order; what the filter leaves out still moves the position.
 * 2. While the reader is slow no page of events is held for it: it is let go, and read again from the position.
 * 3. Where the store has lost what was written already, a `reset` says from where on that is void, before anything else is shown.
 * 4. A store that is away does not end a stream at once: the reader keeps its connection and its heartbeat, and is served on
 *    when the store is back, within `streamOutageMs`.
 */
import type { LogEntry } from '@treadle/engine';
import { LogGap, LogSetBack } from '@treadle/engine';
import type { ApiContext } from '../dependencies.ts';
import { createPager, type Pager } from './pager.ts';
import type { StreamWriter } from './stream-writer.ts';

export interface Reader {
  readonly run_id: string;
  readonly after_seq: number;
  /** Of the event `after_seq`, or one that no event then had passed. */
  readonly seen_epoch: number;
  readonly writer: StreamWriter;
  /** Null lets everything pass. */
  readonly types: ReadonlySet<string> | null;
  readonly frame: (entry: LogEntry) => string;
  readonly resetFrame: (last_seq: number) => string;
  readonly signal: AbortSignal;
}

/** Why a stream ended. `failed`: the store stayed away, or the log has a gap. */
export type StreamEnd = 'log_ended' | 'reader_gone' | 'failed';

interface Position { seq: number; ended: boolean; epoch: number }

export async function followLog(context: ApiContext, reader: Reader): Promise<StreamEnd> {
  const position: Position = { seq: reader.after_seq, ended: false, epoch: reader.seen_epoch };
  const pager = createPager(context.log, reader.run_id);
  let awaySinceMs: number | null = null;
  while (!reader.signal.aborted && !reader.writer.gone) {
    const before = position.seq;
    try {
      await readOn(context, { ...reader, pager }, position);
      awaySinceMs = null;
    } catch (error) {
      if (error instanceof LogSetBack) {
        reader.writer.write(reader.resetFrame(error.last_seq));
        Object.assign(position, { seq: error.last_seq, epoch: Math.max(error.epoch, position.epoch) });
        continue;
      }
      const nowMs = performance.now();
      if (position.seq > before) awaySinceMs = null;
      awaySinceMs ??= nowMs;
      if (error instanceof LogGap || nowMs - awaySinceMs > context.settings.streamOutageMs) {
        context.deps.logger?.warn({ run_id: reader.run_id, err: error }, 'an event stream was given up');
        return 'failed';
      }
      await pause(context.settings.streamRetryMs, reader.signal);
    }
    if (position.ended) return 'log_ended';
    if (reader.writer.full && !(await reader.writer.drained(reader.signal))) return 'reader_gone';
  }
  return 'reader_gone';
}

/** Until the log or the reader ends, or the reader is full. First what is there, page by page; then what comes. */
async function readOn(context: ApiContext, reader: Reader & { readonly pager: Pager }, position: Position): Promise<void> {
  while (!stopped(reader, position)) {
    const page = await reader.pager(position.seq, position.epoch);
    if (page.length === 0) break;
    write(reader, position, page);
  }
  if (stopped(reader, position)) return;
  for await (const page of context.deps.followers.follow(reader.run_id, { after_seq: position.seq, seen_epoch: position.epoch, signal: reader.signal })) {
    write(reader, position, page);
    if (stopped(reader, position)) return;
  }
}

function stopped({ writer, signal }: Reader, position: Position): boolean {
  return position.ended || writer.full || writer.gone || signal.aborted;
}

function write({ writer, types, frame }: Reader, position: Position, page: readonly LogEntry[]): void {
  for (const entry of page) {
    if (writer.full) return;
    if (types === null || types.has(entry.type)) writer.write(frame(entry));
    Object.assign(position, { seq: entry.seq, ended: entry.type === 'run_end', epoch: entry.event.epoch });
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done, { once: true });
  });
}
