/** `limits` of an agent: for each a value, or `{default, max}`. */
import { defaultLimits, limitNames, mostOf, type LimitName, type Limits } from '@treadle/core';
import { z } from 'zod';

/** What a limit may be. */
export interface LimitRule {
  /** `count`: whole numbers; `seconds`, `amount`: above zero; `part`: of a whole. */
  readonly kind: 'count' | 'seconds' | 'amount' | 'part';
  readonly lowest: number;
  readonly highest: number;
  /** Null may stand for no limit. */
  readonly nullable: boolean;
}

const count = (lowest: number): LimitRule => ({ kind: 'count', lowest, highest: 1_000_000_000, nullable: false });
/** As many as a timer can hold. */
const seconds: LimitRule = { kind: 'seconds', lowest: 0, highest: 2_147_483, nullable: false };

/** Counts that may be zero: none allowed at all. A first call can be no loop, so `loop_limit` begins at two. */
export const limitRules: Readonly<Record<LimitName, LimitRule>> = {
  max_turns: count(1), tool_budget: count(0), max_reasks: count(0), invalid_call_limit: count(1), max_consecutive_errors: count(0),
  turn_timeout_s: seconds, session_timeout_s: seconds, max_observation_bytes: count(1),
  max_retries: count(0), max_continuations: count(0), max_extra_turns: count(0), same_error_limit: count(1), loop_limit: count(2),
  compact_at: { kind: 'part', lowest: 0.1, highest: 1, nullable: false },
  max_total_tokens: { ...count(1), highest: Number.MAX_SAFE_INTEGER, nullable: true },
  max_cost_usd: { kind: 'amount', lowest: 0, highest: 1_000_000_000, nullable: true },
  // A run holds a line on each of its sub-agents, and a tree of them is shown whole.
  max_depth: { ...count(0), highest: 20 }, max_children: { ...count(0), highest: 1000 },
};

function valueOf({ kind, lowest, highest }: LimitRule) {
  switch (kind) {
    case 'count': return z.int().min(lowest).max(highest);
    case 'part': return z.number().min(lowest).max(highest);
    case 'seconds': case 'amount': return z.number().gt(lowest).max(highest);
  }
}

function limit(name: LimitName) {
  const rule = limitRules[name];
  const one = rule.nullable ? valueOf(rule).nullable() : valueOf(rule);
  const parts = { first: one.optional(), default: one.optional(), max: one.optional() };
  const { first: _, ...usual } = parts;
  const range = (z.strictObject(name === 'turn_timeout_s' ? parts : usual) as z.ZodObject<typeof parts, z.core.$strict>).superRefine(({ max, ...values }, context) => {
    if (max === undefined || max === null) return;
    for (const [key, value] of Object.entries<number | null | undefined>(values)) {
      if (value !== undefined && mostOf(value) > max) context.addIssue({ code: 'custom', path: [key], message: `expected at most max (${max})` });
    }
  });
  return z.union([one, range]).optional();
}

type Shape = Record<LimitName, ReturnType<typeof limit>>;
const supported = Object.fromEntries(limitNames.map((name) => [name, limit(name)])) as Shape;

export const limitsSchema = z.strictObject(supported);
export type LimitsConfig = z.output<typeof limitsSchema>;

/** The message zod has for a union says nothing; this says what a limit may look like. */
export function limitForms(name: string): string {
  const rule = Object.hasOwn(limitRules, name) ? limitRules[name as LimitName] : undefined;
  if (rule === undefined) return 'expected a limit';
  const { kind, lowest, highest, nullable } = rule;
  const value = kind === 'part' ? `a number from ${lowest} to ${highest}` : kind === 'count' ? `a whole number from ${lowest}` : 'a positive number';
  return `expected ${value}${nullable ? ', null' : ''} or {${name === 'turn_timeout_s' ? 'first, ' : ''}default, max}`;
}

/** What stands for a limit that the agent does not name. */
export function unsetLimit<Name extends LimitName>(name: Name): Limits[Name] {
  return defaultLimits[name];
}
