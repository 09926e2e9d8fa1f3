/**
 * The judge of a trial: what is known in, hold, promote or roll back out, with the reason and the numbers.
 *
 * Rollback  It is certain that a rate of the canary's runs (failed, with a model error, with a validation failure, with a tool error) is
 *           above that of the others by more than `error_rate_delta`, at some equal age; or that time or cost of its completed runs is
 *           more than its ratio allows. "Certain" is said by sequential tests (confidence.ts) that hold at all looks together. All of
 *           them, in all stages, share `alpha`: an equal model is ever rolled back with a chance below it.
 * Promotion `min_runs` runs of the canary have ended by some equal age, nothing above is certain, and what was measured at the widest such
 *           age lies within the bounds.
 * Stage 0   nothing is compared: when `min_runs` runs of the chain have ended there is something to compare with, and the trial goes on.
 */
import type { CanaryJudgement, CanaryReading } from '@treadle/engine';
import { evidenceOfWorse, meanWithin, sampleOf } from './confidence.ts';
import { agesS, atEqualAge, measures, type ArmAtAge, type AtAge, type Measure } from './equal-age.ts';

/** Chance that an equal model is ever rolled back. */
export const alpha = 0.015;
/** What part of it each test may use up. Failures are what a trial is about. */
const shares: Readonly<Record<Measure | 'latency' | 'cost', number>> = { failed: 0.6, erred: 0.08, invalid: 0.08, tool_failed: 0.08, latency: 0.08, cost: 0.08 };
/** Runs of the canary below which nothing is certain, whatever the numbers say; never more than `min_runs`. */
export const leastRuns = 10;

const reasons: Readonly<Record<Measure, string>> = { failed: 'failures', erred: 'model_errors', invalid: 'validation_failures', tool_failed: 'tool_errors' };

export function judgeTrial({ state, runs, totals, now_ms }: CanaryReading): CanaryJudgement {
  const { stage, status, definition } = state;
  const { stages, min_runs, bounds } = definition;
  const next = stages.find((each) => each > stage);
  const ages = atEqualAge(runs, now_ms);
  const ratios = { latency: ratioOf(ages, 'latency', state.definition), cost: ratioOf(ages, 'cost', state.definition) };
  const worse = stage === 0 || stage === 100 ? null : worseRate(ages, state.definition) ?? worseRatio(ratios, bounds);
  const numbers = { min_runs, bounds, alpha, totals, at_equal_age: ages.map(shown), ...ratios, ...(worse === null ? {} : { worse }) };
  const hold = (reason: string): CanaryJudgement => ({ decision: 'hold', reason, to_stage: stage, numbers });
  const promote = (reason: string): CanaryJudgement => next === undefined ? hold('last_stage') : { decision: 'promote', reason, to_stage: next, numbers };
  if (status === 'rolled_back') return hold('rolled_back');
  if (worse !== null) return { decision: 'rollback', reason: worse.what, to_stage: 0, numbers };
  if (status === 'paused') return hold('paused');
  if (stage === 100) return hold('last_stage');
  if (stage === 0) return totals.control.ended >= min_runs ? promote('baseline') : hold('too_few_runs');
  const widest = ages.findLast(({ arms }) => arms.canary.ended >= min_runs && arms.control.runs > 0);
  if (widest === undefined) return hold('too_few_runs');
  return isWithin(widest.arms, ratios, bounds) ? promote('within_bounds') : hold('not_within_bounds_yet');
}

/** `evidence` and what it takes to be certain: natural logarithms. */
interface Worse { readonly what: string; readonly age_s?: number; readonly evidence?: number; readonly certain_from?: number; readonly at_least?: number; readonly bound: number }

type Definition = CanaryReading['state']['definition'];

/** Every age, and every stage at which arms are compared, is a sequence of its own. */
function alphaFor(what: keyof typeof shares, { stages }: Definition): number {
  return alpha * shares[what] / (agesS.length * stages.filter((stage) => stage > 0 && stage < 100).length);
}

function worseRate(ages: readonly AtAge[], definition: Definition): Worse | null {
  const { min_runs, bounds: { error_rate_delta: bound } } = definition;
  for (const { age_s, arms: { canary, control } } of ages) {
    if (canary.runs < Math.min(leastRuns, min_runs)) continue;
    for (const measure of measures) {
      const evidence = evidenceOfWorse({ hits: canary.having[measure], n: canary.runs }, { hits: control.having[measure], n: control.runs }, bound);
      const certain_from = -Math.log(alphaFor(measure, definition));
      if (evidence >= certain_from) return { what: reasons[measure], age_s, evidence, certain_from, bound };
    }
  }
  return null;
}

/** Of geometric means: what one slow run in a hundred costs does not decide. */
interface Ratio { readonly canary: number | null; readonly control: number | null; readonly ratio: number | null; readonly at_least: number | null }

const noRatio: Ratio = { canary: null, control: null, ratio: null, at_least: null };

/** At the widest age that enough runs of both arms have reached. */
function ratioOf(ages: readonly AtAge[], what: 'latency' | 'cost', definition: Definition): Ratio {
  const { min_runs } = definition;
  const field = what === 'latency' ? 'ln_active_s' : 'ln_cost_usd';
  const enough = (arm: ArmAtAge): boolean => arm.runs >= min_runs && arm[field].length >= Math.max(2, min_runs / 2);
  const widest = ages.findLast(({ arms }) => enough(arms.canary) && enough(arms.control));
  if (widest === undefined) return noRatio;
  const [canary, control] = [sampleOf(widest.arms.canary[field]), sampleOf(widest.arms.control[field])];
  const each = alphaFor(what, definition) / 2;
  const ln = canary.mean - control.mean;
  const at_least = Math.exp(ln - meanWithin(canary, each, min_runs) - meanWithin(control, each, min_runs));
  return { canary: Math.exp(canary.mean), control: Math.exp(control.mean), ratio: Math.exp(ln), at_least };
}

interface Ratios { readonly latency: Ratio; readonly cost: Ratio }
type Bounds = Definition['bounds'];

function worseRatio({ latency, cost }: Ratios, bounds: Bounds): Worse | null {
  if (latency.at_least !== null && latency.at_least > bounds.latency_ratio) return { what: 'latency', at_least: latency.at_least, bound: bounds.latency_ratio };
  if (cost.at_least !== null && cost.at_least > bounds.cost_ratio) return { what: 'cost', at_least: cost.at_least, bound: bounds.cost_ratio };
  return null;
}

/** As measured, without any margin: certainty in this direction would take thousands of runs. */
function isWithin({ canary, control }: AtAge['arms'], { latency, cost }: Ratios, bounds: Bounds): boolean {
  return canary.having.failed / canary.runs - control.having.failed / control.runs <= bounds.error_rate_delta
    && (latency.ratio ?? 0) <= bounds.latency_ratio && (cost.ratio ?? 0) <= bounds.cost_ratio;
}

function shown({ age_s, arms }: AtAge) {
  const arm = ({ runs, ended, having }: ArmAtAge) => ({ runs, ended, ...having });
  return { age_s, canary: arm(arms.canary), control: arm(arms.control) };
}
