/**
 * Which process dies where: one file per run in a folder outside of the product, which survives whoever dies.
 *
 * Owns: `armed/`, `hits/` and `fired/` in the folder. A point fires once per subject (a run, or an idempotency key before there
 * is a run), at its `nth` time, counted over all processes.
 */
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CrashPoint } from './points.ts';

export interface Arming { readonly point: CrashPoint; readonly nth: number }

export interface Armed {
  arm(subject: string, arming: Arming): void;
  /** The point that the subject is armed for and that has not fired. */
  pending(subject: string): CrashPoint | null;
  /** Ends this very process, with SIGKILL, where the subject is armed for this point and its time has come. */
  at(point: CrashPoint, subject: string): void;
  /** Points that have fired, by subject. */
  fired(): ReadonlyMap<string, CrashPoint>;
}

export function openArmed(folder: string): Armed {
  const path = (kind: 'armed' | 'hits' | 'fired', subject: string): string => join(folder, kind, subject);
  for (const kind of ['armed', 'hits', 'fired']) mkdirSync(join(folder, kind), { recursive: true });
  const known = new Map<string, Arming>();

  function armingOf(subject: string): Arming | null {
    if (subject === '') return null;
    // One that is not armed may be, later.
    if (!known.has(subject) && existsSync(path('armed', subject))) known.set(subject, JSON.parse(readFileSync(path('armed', subject), 'utf8')) as Arming);
    const arming = known.get(subject) ?? null;
    return arming === null || existsSync(path('fired', subject)) ? null : arming;
  }

  return {
    arm: (subject, arming) => { writeFileSync(path('armed', subject), JSON.stringify(arming)); },
    pending: (subject) => armingOf(subject)?.point ?? null,
    at: (point, subject) => {
      const arming = armingOf(subject);
      if (arming?.point !== point) return;
      appendFileSync(path('hits', subject), '.');
      if (statSync(path('hits', subject)).size < arming.nth) return;
      writeFileSync(path('fired', subject), point);
      process.kill(process.pid, 'SIGKILL');
    },
    fired: () => new Map(readdirSync(join(folder, 'fired')).map((subject) => [subject, readFileSync(path('fired', subject), 'utf8') as CrashPoint])),
  };
}
