/**
 * The test tools' own record of what truly happened, outside of Redis and of every worker: one line of JSON per start and
 * end of a call. It is what effects are counted by after crashes.
 *
 * 1  A line is one write to a file opened for appending, so lines of several processes never mix.
 * 2  The start is written before the tool does anything, the end after it has; a tool that dies between leaves a start alone.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';

export type LedgerPhase = 'start' | 'end' | 'cancelled';

export interface LedgerLine {
  /** Epoch milliseconds by the tool's clock. */
  readonly ts: number;
  readonly phase: LedgerPhase;
  readonly tool: string;
  readonly run_id: string | null;
  readonly tool_use_id: string | null;
  readonly idempotency_key: string | null;
  readonly epoch: number | null;
  readonly input: Readonly<Record<string, unknown>>;
}

/** Appends one line. Synchronous: it is in the kernel before the tool goes on, so a killed process does not lose it. */
export function writeLedger(file: string, line: LedgerLine): void {
  appendFileSync(file, `${JSON.stringify(line)}\n`, { flag: 'a' });
}

/** Every line so far; a file that is not there yet has none. A reader may come upon a line that is being written: it counts once its end is there. */
export function readLedger(file: string): LedgerLine[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8').split('\n').slice(0, -1).map((line) => JSON.parse(line) as LedgerLine);
}
