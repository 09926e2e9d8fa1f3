/** `limits` of an agent: for each a number, or `{default, max}`. */
import { defaultLimits, limitNames, limitsNotSupported, type LimitName } from '@treadle/core';
import { z } from 'zod';
import { later, notSupportedYet } from './later.ts';

/** Limits that may be zero: none allowed at all. */
const mayBeZero: readonly LimitName[] = ['tool_budget', 'max_reasks', 'max_consecutive_errors'];
const seconds: readonly LimitName[] = ['turn_timeout_s', 'session_timeout_s'];
/** Seconds that a timer can hold. */
const maxSeconds = 2_147_483;

function limit(name: LimitName) {
  const lowest = mayBeZero.includes(name) ? 0 : 1;
  const one = seconds.includes(name) ? z.number().positive().max(maxSeconds) : z.int().min(lowest).max(1_000_000_000);
  const range = z.strictObject({ default: one.optional(), max: one.optional(), ...(name === 'turn_timeout_s' ? { first: later() } : {}) })
    .superRefine((given, context) => {
      if (given.default !== undefined && given.max !== undefined && given.default > given.max) {
        context.addIssue({ code: 'custom', path: ['default'], message: `expected at most max (${given.max})` });
      }
    });
  return z.union([one, range]).optional();
}

type Shape = Record<LimitName, ReturnType<typeof limit>>;
const supported = Object.fromEntries(limitNames.map((name) => [name, limit(name)])) as Shape;
const unlimited: readonly string[] = ['max_total_tokens', 'max_cost_usd'];
const refused = Object.fromEntries(limitsNotSupported.map((name) => [name, unlimited.includes(name) ? later(null) : later()])) as
  Record<(typeof limitsNotSupported)[number], ReturnType<typeof later>>;

export const limitsSchema = z.strictObject({ ...supported, ...refused });
export type LimitsConfig = z.output<typeof limitsSchema>;

/** The message zod has for a union says nothing; this says what a limit may look like. */
export const limitForms = `expected a positive number or {default, max}; {first, default} is ${notSupportedYet}`;

/** What stands for a limit that the agent does not name. */
export function unsetLimit(name: LimitName): number {
  return defaultLimits[name];
}
