/**
 * What the host counts, never the model. An agent states for each limit a default and a maximum; a run may set anything
 * up to that maximum.
 */

/** Seconds. A first turn may need more time than those after it: a model has to be loaded, a cache filled. */
export interface TurnTimeout { readonly first: number; readonly default: number }

/** Units are in the names; counts have none. */
export interface Limits {
  /** Passes of the loop, recoveries included. */
  readonly max_turns: number;
  /** Every call of an accepted reply, unknown and denied ones included. A batch that does not fit is not executed at all. */
  readonly tool_budget: number;
  /** How often an empty reply is asked again. */
  readonly max_reasks: number;
  /** Calls in a row that no tool could take (unknown name, bad arguments). */
  readonly invalid_call_limit: number;
  /** So many failures in a row are recovered from; the next one ends the run. */
  readonly max_consecutive_errors: number;
  /** Model and tools of one turn, monotonic. */
  readonly turn_timeout_s: number | TurnTimeout;
  /** Active time of the run: inside claims only. Time in the queue, in waits and in pauses does not count. */
  readonly session_timeout_s: number;
  /** Per tool result, in bytes of UTF-8. */
  readonly max_observation_bytes: number;
  /** Rounds of feedback by validators; not reset by a turn. */
  readonly max_retries: number;
  /** Continuations of an answer that the output limit cut. */
  readonly max_continuations: number;
  /** Extra turns that stop hooks may ask for. */
  readonly max_extra_turns: number;
  /** The same error so often within 20 turns. */
  readonly same_error_limit: number;
  /** Identical calls in a row: then one corrective note, then the end. */
  readonly loop_limit: number;
  /** Compaction begins at this part of the context window, 0 to 1. */
  readonly compact_at: number;
  /** Input, output and wasted tokens of the run and its sub-agents; null = no limit. */
  readonly max_total_tokens: number | null;
  /** US dollars, of the run and its sub-agents; null = no limit. */
  readonly max_cost_usd: number | null;
  /** Levels of sub-agents below the run; 0 = it may start none. */
  readonly max_depth: number;
  /** Sub-agents that the run may start, over its whole life. */
  readonly max_children: number;
}

export type LimitName = keyof Limits;
/** The limits that may be left unset. */
export type UnsettableLimit = 'max_total_tokens' | 'max_cost_usd';

export const defaultLimits: Limits = {
  max_turns: 50, tool_budget: 200, max_reasks: 2, invalid_call_limit: 5, max_consecutive_errors: 3,
  turn_timeout_s: 180, session_timeout_s: 600, max_observation_bytes: 32_768,
  max_retries: 3, max_continuations: 4, max_extra_turns: 3, same_error_limit: 5, loop_limit: 4, compact_at: 0.8,
  max_total_tokens: null, max_cost_usd: null, max_depth: 3, max_children: 10,
};

export const limitNames = Object.keys(defaultLimits) as LimitName[];

/** What an agent allows for one limit. */
export interface LimitRange<Value = number, Max = Value> { readonly default: Value; readonly max: Max }
export type AgentLimits = { readonly [Name in LimitName]: LimitRange<Limits[Name], Exclude<Limits[Name], TurnTimeout>> };

/** Seconds that this turn of a run may take. */
export function turnTimeoutOf({ turn_timeout_s }: Pick<Limits, 'turn_timeout_s'>, turn: number): number {
  if (typeof turn_timeout_s === 'number') return turn_timeout_s;
  return turn === 1 ? turn_timeout_s.first : turn_timeout_s.default;
}

/** The most that a limit asks for. Null, no limit, is more than any. */
export function mostOf(value: Limits[LimitName]): number {
  if (value === null) return Infinity;
  return typeof value === 'number' ? value : Math.max(value.first, value.default);
}

export type LimitsOutcome =
  | { readonly type: 'ok'; readonly limits: Limits }
  | { readonly type: 'above_maximum'; readonly limit: LimitName; readonly max: number };

/** The limits of one run: what it asked for, where the agent allows it, else the agent's defaults. */
export function limitsOfRun(agent: AgentLimits, asked: Partial<Limits>): LimitsOutcome {
  const limits: Record<LimitName, Limits[LimitName]> = { ...defaultLimits };
  for (const name of limitNames) {
    // A spec that was pinned before there was this limit does not have it.
    const { default: usual, max } = (agent as Partial<AgentLimits>)[name] ?? { default: defaultLimits[name], max: mostOf(defaultLimits[name]) };
    const wanted = asked[name];
    if (wanted !== undefined && max !== null && mostOf(wanted) > max) return { type: 'above_maximum', limit: name, max };
    limits[name] = wanted === undefined ? usual : wanted;
  }
  return { type: 'ok', limits: limits as unknown as Limits };
}
