/** What runs have used, summed by tenant, UTC day, agent and model. Sums outlive the runs. */
import type { Usage } from '@treadle/core';

/** What an ended run adds: its own part, without its sub-agents', which count for themselves. */
export interface RunUse {
  readonly tenant: string;
  readonly agent: string;
  /** UTC, `YYYY-MM-DD`: that on which the run ended. */
  readonly day: string;
  /** By model; empty where none was asked. */
  readonly models: Readonly<Record<string, Usage>>;
}

/** Days as in `RunUse`, both included. */
export interface UsageQuery { readonly tenant: string; readonly from_day: string; readonly to_day: string }

/** `model` null: all runs of the agent, whatever they asked; its usage is nothing, since the models' rows have it. */
export interface UsageRow {
  readonly day: string;
  readonly agent: string;
  readonly model: string | null;
  readonly runs: number;
  readonly usage: Usage;
}
