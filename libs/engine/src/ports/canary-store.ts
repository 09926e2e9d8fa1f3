/**
 * What all processes know together about the trial of a new model: where it has got to, which runs take part in it, how they came out,
 * what was decided and on which numbers.
 *
 * K1  One trial per chain. A definition with another model begins a new one, at stage 0; the same model keeps its place.
 * K2  A run takes part in the stage in which it was created, in one arm, for ever; asked again for the same run, the answer is the same.
 *     A new stage begins with no runs: what was not reported by then counts nowhere.
 * K3  A run's outcome counts once, in the arm it was given, whoever reports it and how often.
 * K4  Of several that decide on the same state one succeeds, and the others are told `conflict`: the version says which state was seen.
 * K5  The last 100 decisions are kept, newest first, each with the numbers it was made on.
 * K6  What is kept of runs is bounded: the newest of each arm (`mostRuns`).
 */
import type { CanaryArm, ErrorType, StopReason } from '@treadle/core';

export interface CanaryBounds {
  /** How much more often the canary's runs may fail than the others, as a difference of rates: 0.02 = two points. */
  readonly error_rate_delta: number;
  readonly latency_ratio: number;
  readonly cost_ratio: number;
}

export interface CanaryDefinition {
  readonly model: string;
  /** Percent of new runs; begins with 0, rises. */
  readonly stages: readonly number[];
  /** Ended runs of the canary before it is promoted. */
  readonly min_runs: number;
  readonly bounds: CanaryBounds;
}

/** `paused`: nothing is promoted but by hand; what is worse is rolled back all the same. `rolled_back`: at stage 0, until somebody moves it. */
export type CanaryStatus = 'active' | 'paused' | 'rolled_back';

export interface CanaryState {
  readonly chain: string;
  readonly definition: CanaryDefinition;
  /** One of `definition.stages`. */
  readonly stage: number;
  readonly status: CanaryStatus;
  /** When the stage began, epoch ms of the store's clock. */
  readonly since_ms: number;
  /** Raised by every change. */
  readonly version: number;
}

/** `none`: there is no trial of this model. */
export type Assignment = { readonly type: 'assigned'; readonly arm: CanaryArm; readonly stage: number } | { readonly type: 'none' };

export interface AssignRun {
  readonly chain: string;
  readonly model: string;
  readonly run_id: string;
  /** Where the run falls among all, 0 to below 100: it is the canary's where this is below the stage. */
  readonly bucket: number;
  /** Epoch ms before which it may not begin; its age counts from there, else from now. */
  readonly run_at_ms: number | null;
}

/** `neutral`: its end says nothing about a model (cancelled, an operator's deadline, a fault of the infrastructure). */
export type CanaryVerdict = 'completed' | 'failed' | 'neutral';

export interface CanaryOutcome {
  readonly chain: string;
  readonly run_id: string;
  readonly ended_ms: number;
  readonly verdict: CanaryVerdict;
  readonly stop_reason: StopReason;
  readonly errors: Readonly<Partial<Record<ErrorType, number>>>;
  readonly validation_failures: number;
  readonly tool_calls: number;
  readonly tool_errors: number;
  /** Seconds in workers' hands: model and tools. */
  readonly active_s: number;
  readonly cost_usd: number;
}

/** A run that takes part in the stage. */
export interface CanaryRun {
  readonly arm: CanaryArm;
  readonly start_ms: number;
  /** Null while it goes on. */
  readonly ended: {
    readonly at_ms: number; readonly failed: boolean; readonly erred: boolean; readonly invalid: boolean; readonly tool_failed: boolean;
    readonly active_s: number; readonly cost_usd: number;
  } | null;
}

/** Sums over the ended runs of an arm in the stage. */
export interface ArmTotals {
  readonly ended: number;
  readonly completed: number;
  readonly failed: number;
  readonly stop_reasons: Readonly<Record<string, number>>;
  readonly errors: Readonly<Record<string, number>>;
  readonly validation_failures: number;
  readonly tool_calls: number;
  readonly tool_errors: number;
  readonly active_s: number;
  readonly cost_usd: number;
}

export const noTotals: ArmTotals = {
  ended: 0, completed: 0, failed: 0, stop_reasons: {}, errors: {}, validation_failures: 0, tool_calls: 0, tool_errors: 0, active_s: 0, cost_usd: 0,
};

export interface CanaryReading {
  readonly state: CanaryState;
  readonly now_ms: number;
  readonly runs: readonly CanaryRun[];
  readonly totals: Readonly<Record<CanaryArm, ArmTotals>>;
  /** Newest first. */
  readonly decisions: readonly CanaryDecision[];
}

export type CanaryMove = 'promote' | 'rollback' | 'pause' | 'set';

export interface CanaryDecision {
  readonly id: string;
  readonly at_ms: number;
  readonly decision: CanaryMove;
  /** `judge`, or who asked for it. */
  readonly by: string;
  readonly model: string;
  readonly from_stage: number;
  readonly to_stage: number;
  readonly status: CanaryStatus;
  readonly reason: string;
  /** What it was made on. */
  readonly numbers: Readonly<Record<string, unknown>>;
}

export interface CanaryStore {
  /** Begins a trial, or leaves it where it is (K1). */
  declare(chain: string, definition: CanaryDefinition): Promise<'begun' | 'kept'>;
  /** The arm of a new run (K2). */
  assign(run: AssignRun): Promise<Assignment>;
  /** Of a run that was assigned and then not created: it takes no part. */
  withdraw(chain: string, run_id: string): Promise<void>;
  /** `not_counted`: the run takes no part in the stage (any more). */
  report(outcome: CanaryOutcome): Promise<'counted' | 'again' | 'not_counted'>;
  /** Whether somebody should judge now: of all who ask within `every_ms` one is told so; nobody where there is nothing to judge. */
  due(chain: string, every_ms: number): Promise<boolean>;
  /** Null where the chain has no trial. Runs are read only where they are asked for: they are many. */
  read(chain: string, wanted: { readonly decisions: number; readonly runs: boolean }): Promise<CanaryReading | null>;
  /** One atomic step: the move and its record (K4, K5). Sent again with the same id it is the same decision. */
  decide(chain: string, seen_version: number, decision: CanaryDecision): Promise<'decided' | 'conflict'>;
}

/** Runs of each arm that are kept. */
export const mostRuns: Readonly<Record<CanaryArm, number>> = { canary: 1000, control: 2000 };
/** Decisions that are kept. */
export const mostDecisions = 100;

/** What is to be done about a trial, as a pure function of what is known. */
export type CanaryJudge = (reading: CanaryReading) => CanaryJudgement;

export interface CanaryJudgement {
  readonly decision: 'hold' | 'promote' | 'rollback';
  readonly reason: string;
  readonly to_stage: number;
  readonly numbers: Readonly<Record<string, unknown>>;
}
