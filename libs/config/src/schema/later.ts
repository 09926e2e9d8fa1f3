/**
 * Parts of the configuration that a later release will carry out. They are refused by name, never accepted and ignored:
 * somebody who writes `max_concurrent_runs: 5` must not believe in it today.
 */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';

export const notSupportedYet = 'not supported yet';

/** A key that may be absent or say what holds anyway (`neutral`). */
export function later(...neutral: readonly unknown[]) {
  return z.unknown().superRefine((value, context) => {
    if (value === undefined || neutral.some((each) => isDeepStrictEqual(each, value))) return;
    context.addIssue({ code: 'custom', message: `${notSupportedYet}${hint(neutral)}` });
  }).optional().meta(neutral.length === 0 ? { not: {}, description: notSupportedYet } : { enum: [...neutral], description: `Other values are ${notSupportedYet}.` });
}

function hint(neutral: readonly unknown[]): string {
  if (neutral.length === 0) return '';
  return `; only ${neutral.map((each) => JSON.stringify(each)).join(' or ')} may stand here`;
}
