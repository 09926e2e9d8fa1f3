/**
 * Reads a log page by page, so that a page has about `pageBytes` whatever the size of its events: pages in flight for many
 * readers at once are what fills the memory.
 */
import { readLog, type LogDeps, type LogEntry } from '@treadle/engine';

const pageBytes = 256 * 1024;
/** Small, since nothing is known of the log yet. */
const firstLimit = 8;
const maxLimit = 200;

/** Events after a position; empty when there is nothing newer. Throws what `readLog` throws. */
export type Pager = (after_seq: number, seen_epoch?: number) => Promise<LogEntry[]>;

/** One for each reader. */
export function createPager(log: LogDeps, run_id: string): Pager {
  let limit = firstLimit;
  return async (after_seq, seen_epoch) => {
    const page = await readLog(log, run_id, { after_seq, limit, ...(seen_epoch === undefined ? {} : { seen_epoch }) });
    if (page.length > 0) {
      const meanBytes = page.reduce((sum, entry) => sum + entry.text.length, 0) / page.length;
      limit = Math.min(maxLimit, Math.max(1, Math.floor(pageBytes / meanBytes)));
    }
    return page;
  };
}

/** The log from a position to its present end, as lines of JSON. Throws what `readLog` throws. */
export async function* logLines(log: LogDeps, range: { readonly run_id: string; readonly after_seq: number; readonly types: ReadonlySet<string> | null }): AsyncGenerator<string> {
  const pager = createPager(log, range.run_id);
  let after_seq = range.after_seq;
  for (;;) {
    const page = await pager(after_seq);
    if (page.length === 0) return;
    // Let go of one by one: what is left lies here for as long as the reader is slow.
    for (let entry = page.shift(); entry !== undefined; entry = page.shift()) {
      after_seq = entry.seq;
      if (range.types === null || range.types.has(entry.type)) yield `${entry.text}\n`;
      if (entry.type === 'run_end') return;
    }
  }
}
