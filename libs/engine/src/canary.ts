/**
 * The trial of a new model, as far as runs and people move it: a run's outcome is reported when it ends, then somebody judges.
 * Judging reads, decides and writes what was decided in one compare-and-set, so however many judge at once, one decision comes of it.
 */
import { assertNever, specOf, statusOfStopReason, type RunState, type StopReason } from '@treadle/core';
import type { CanaryDecision, CanaryJudge, CanaryMove, CanaryOutcome, CanaryReading, CanaryState, CanaryStore, CanaryVerdict } from './ports/canary-store.ts';

export interface CanaryDeps {
  readonly canaries: CanaryStore;
  readonly judge: CanaryJudge;
  readonly uuid: () => string;
  /** Told of every decision that was made here. */
  readonly onDecided: (chain: string, decision: CanaryDecision) => void;
}

/** Between two looks of all processes at one trial, ms. */
const judgeEveryMs = 1000;

/** Judges where it is time to. */
export async function judgeWhenDue(deps: CanaryDeps, chain: string): Promise<CanaryDecision | null> {
  return await deps.canaries.due(chain, judgeEveryMs) ? judgeCanary(deps, chain) : null;
}

/** The decision that was made; null where the trial stays as it is, or somebody else was quicker. */
export async function judgeCanary(deps: CanaryDeps, chain: string): Promise<CanaryDecision | null> {
  const reading = await deps.canaries.read(chain, { decisions: 0, runs: true });
  if (reading === null) return null;
  const { decision, reason, to_stage, numbers } = deps.judge(reading);
  if (decision === 'hold') return null;
  const status = decision === 'rollback' ? 'rolled_back' : reading.state.status;
  return decided(deps, reading, { decision, by: 'judge', to_stage, status, reason, numbers });
}

export type CanaryOrder = { readonly action: CanaryMove; readonly stage?: number; readonly by: string };

/** `missing`: the chain has no trial; `no_stage`: there is no such stage, or none to be promoted to. */
export type OrderOutcome = { readonly type: 'decided'; readonly decision: CanaryDecision } | { readonly type: 'missing' | 'no_stage' | 'conflict' };

/** Tries of a person's order, when others decide meanwhile. */
const orderTries = 5;

/** A person's word: recorded with the numbers of the moment, whatever a judge would say. */
export async function orderCanary(deps: CanaryDeps, chain: string, order: CanaryOrder): Promise<OrderOutcome> {
  for (let tries = 0; tries < orderTries; tries++) {
    const reading = await deps.canaries.read(chain, { decisions: 0, runs: true });
    if (reading === null) return { type: 'missing' };
    const target = targetOf(reading.state, order);
    if (target === null) return { type: 'no_stage' };
    const { numbers } = deps.judge(reading);
    const decision = await decided(deps, reading, { decision: order.action, by: order.by, ...target, reason: 'by_hand', numbers });
    if (decision !== null) return { type: 'decided', decision };
  }
  return { type: 'conflict' };
}

function targetOf({ definition, stage, status }: CanaryState, { action, stage: asked }: CanaryOrder): Pick<CanaryDecision, 'status'> & { to_stage: number } | null {
  switch (action) {
    case 'pause': return { to_stage: stage, status: status === 'rolled_back' ? status : 'paused' };
    case 'rollback': return { to_stage: 0, status: 'rolled_back' };
    case 'promote': {
      const next = definition.stages.find((each) => each > stage);
      return next === undefined ? null : { to_stage: next, status: 'active' };
    }
    case 'set': return asked !== undefined && definition.stages.includes(asked) ? { to_stage: asked, status: 'active' } : null;
    default: return assertNever(action);
  }
}

type Move = Pick<CanaryDecision, 'decision' | 'by' | 'to_stage' | 'status' | 'reason' | 'numbers'>;

async function decided(deps: CanaryDeps, { state, now_ms }: CanaryReading, move: Move): Promise<CanaryDecision | null> {
  const decision: CanaryDecision = { id: deps.uuid(), at_ms: now_ms, model: state.definition.model, from_stage: state.stage, ...move };
  if (await deps.canaries.decide(state.chain, state.version, decision) === 'conflict') return null;
  deps.onDecided(state.chain, decision);
  return decision;
}

/** What a run's end says about the model that it was to begin with; null where it takes part in no trial, or has not ended. */
export function canaryOutcome(state: RunState): CanaryOutcome | null {
  const { chain } = specOf(state);
  if (chain.canary === undefined || state.stop_reason === null || state.ended_at === null) return null;
  // A run that had to do without its first model, for a turn or from the start, owes its answer to another: it is charged where it was
  // assigned. Otherwise a model would pass that never answers, and of which an open breaker keeps the later runs away.
  const hopped = state.left_first_model;
  const verdict = verdicts(state.stop_reason);
  return {
    chain: chain.name, run_id: state.run_id, ended_ms: Math.round(state.ended_at * 1000), verdict: verdict === 'completed' && hopped ? 'failed' : verdict,
    stop_reason: state.stop_reason, errors: state.errors_by_type, validation_failures: state.retries, tool_calls: state.tool_calls,
    tool_errors: state.tool_errors, active_s: state.active_s, cost_usd: state.usage.cost_usd,
  };
}

/** Ends that are no model's doing: people, deadlines of waiting, and what went wrong around the run. */
const neutral: readonly StopReason[] = ['interrupted', 'start_deadline', 'approval_timeout', 'poisoned', 'infrastructure', 'state_lost'];

function verdicts(reason: StopReason): CanaryVerdict {
  if (neutral.includes(reason)) return 'neutral';
  return statusOfStopReason[reason] === 'completed' ? 'completed' : 'failed';
}
