/**
 * Which limit of the host a run has reached. Of several the first counts, in the order of the contract: limits before repeated
 * errors.
 */
import { reserved } from './children.ts';
import type { RunState } from './state.ts';
import type { StopReason } from './stop-reason.ts';
import { addUsage } from './usage.ts';

/** What forbids another turn; null where nothing does. */
export function limitDue(state: RunState): StopReason | null {
  const { limits } = state;
  if (state.active_s >= limits.session_timeout_s) return 'session_timeout';
  if (state.turn_number >= limits.max_turns) return 'max_turns';
  if (state.tool_calls > limits.tool_budget) return 'tool_budget';
  return budgetDue(state) ?? (sameErrorDue(state) ? 'same_error' : null);
}

export type BudgetReason = 'token_budget' | 'cost_budget';

/** Tokens and money; checked before tools are run, too. */
export function budgetDue(state: RunState): BudgetReason | null {
  const left = budgetLeft(state);
  if (left.tokens <= 0) return 'token_budget';
  return left.cost_usd <= 0 ? 'cost_budget' : null;
}

/** What the run may still use, beside what is reserved for its sub-agents; `Infinity` where there is no limit. */
export function budgetLeft(state: RunState): { readonly tokens: number; readonly cost_usd: number } {
  const { max_total_tokens, max_cost_usd } = state.limits;
  const used = addUsage(state.usage, state.turn_usage);
  const held = reserved(state);
  return {
    tokens: (max_total_tokens ?? Infinity) - (used.input_tokens + used.output_tokens + used.wasted_tokens + held.tokens),
    cost_usd: (max_cost_usd ?? Infinity) - (used.cost_usd + held.cost_usd),
  };
}

function sameErrorDue(state: RunState): boolean {
  const counts = new Map<string, number>();
  for (const { print } of state.error_prints) counts.set(print, (counts.get(print) ?? 0) + 1);
  return [...counts.values()].some((count) => count >= state.limits.same_error_limit);
}
