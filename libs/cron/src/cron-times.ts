/** Cron expressions and time zones, by croner. What it would take and a schedule must not is refused here. */
import { Cron } from 'croner';
import type { CronReading } from '@treadle/engine';

const nicknames = /^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$/i;
const form = 'expected five fields: minute, hour, day of month, month, day of week (or @hourly, @daily, @weekly, @monthly, @yearly)';
/** Longer ones say nothing that shorter ones cannot. */
const maxLength = 200;

/** Names what is wrong by its field: an expression that croner cannot read, or that stands for more than one time a minute. */
export function cronTimes(cron: string, timezone: string): CronReading {
  const problem = problemOf(cron);
  if (problem !== null) return { type: 'invalid', field: 'cron', problem };
  if (!isZone(timezone)) return { type: 'invalid', field: 'timezone', problem: 'expected the IANA name of a time zone, e.g. Europe/Berlin' };
  try {
    const parsed = new Cron(cron.trim(), { timezone, mode: '5-part', fixedTimeRule: 'no-wildcard', paused: true });
    // Whole seconds: croner's previous runs lie before the one that it is told, rounded up.
    const rule = {
      next: (after_ms: number): number | null => parsed.nextRun(new Date(after_ms))?.getTime() ?? null,
      latest: (until_ms: number): number | null => parsed.previousRuns(1, new Date(Math.floor(until_ms / 1000) * 1000 + 1000))[0]?.getTime() ?? null,
    };
    return { type: 'rule', rule };
  } catch (error) {
    return { type: 'invalid', field: 'cron', problem: `${form}; ${said(error)}` };
  }
}

function problemOf(cron: string): string | null {
  const text = cron.trim();
  if (text === '' || text.length > maxLength) return form;
  if (text.startsWith('@')) return nicknames.test(text) ? null : form;
  const fields = text.split(/\s+/).length;
  if (fields === 6 || fields === 7) return `${form}; seconds and years are not taken: a schedule runs at most once a minute`;
  if (fields !== 5) return form;
  // It would stand for the moment of reading, and be another one for every reader.
  return text.includes('?') ? `${form}; for "any" write *, not ?` : null;
}

function isZone(timezone: string): boolean {
  // Offsets are no zones: they know no summer time.
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{1,63}$/.test(timezone)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: timezone });
    return true;
  } catch {
    return false;
  }
}

function said(error: unknown): string {
  const text = error instanceof Error ? error.message.replace(/^Cron\w+: /, '') : String(error);
  return text.slice(0, 1).toLowerCase() + text.slice(1);
}
