/**
 * What the host counts, never the model. An agent states for each limit a default and a maximum; a run may set anything
 * up to that maximum.
 */

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
  readonly turn_timeout_s: number;
  /** Active time of the run: inside claims only. Time in the queue, in waits and in pauses does not count. */
  readonly session_timeout_s: number;
  /** Per tool result, in bytes of UTF-8. */
  readonly max_observation_bytes: number;
}

export type LimitName = keyof Limits;

export const defaultLimits: Limits = {
  max_turns: 50, tool_budget: 200, max_reasks: 2, invalid_call_limit: 5, max_consecutive_errors: 3,
  turn_timeout_s: 180, session_timeout_s: 600, max_observation_bytes: 32_768,
};

export const limitNames = Object.keys(defaultLimits) as LimitName[];

/** Limits of the contract that a later release enforces. They are refused, never accepted and ignored. */
export const limitsNotSupported = [
  'max_retries', 'max_continuations', 'max_extra_turns', 'same_error_limit', 'loop_limit', 'max_total_tokens', 'max_cost_usd',
  'max_depth', 'max_children', 'compact_at',
] as const;

/** What an agent allows for one limit. */
export interface LimitRange { readonly default: number; readonly max: number }
export type AgentLimits = Readonly<Record<LimitName, LimitRange>>;

export type LimitsOutcome =
  | { readonly type: 'ok'; readonly limits: Limits }
  | { readonly type: 'above_maximum'; readonly limit: LimitName; readonly max: number };

/** The limits of one run: what it asked for, where the agent allows it, else the agent's defaults. */
export function limitsOfRun(agent: AgentLimits, asked: Partial<Limits>): LimitsOutcome {
  const limits: Record<LimitName, number> = { ...defaultLimits };
  for (const name of limitNames) {
    const wanted = asked[name];
    if (wanted !== undefined && wanted > agent[name].max) return { type: 'above_maximum', limit: name, max: agent[name].max };
    limits[name] = wanted ?? agent[name].default;
  }
  return { type: 'ok', limits };
}
