/**
 * The arms of a trial at equal age. Failures end early and long runs late, so of runs that have just begun only the failures are known:
 * whoever counts what has ended counts too many. Here a run is looked at when it has reached a given age, as it was at that age: one that
 * still goes on then has not failed by then. Both arms are asked the same question about the same age.
 */
import type { CanaryArm } from '@treadle/core';
import type { CanaryRun } from '@treadle/engine';

/** Seconds since a run could begin. What goes wrong fast is seen soon, what goes wrong late is seen as well. */
export const agesS = [10, 60, 600, 3600, 86_400] as const;

export const measures = ['failed', 'erred', 'invalid', 'tool_failed'] as const;
/** Of a run: it failed, had a model error, had a validation failure, had a tool error. */
export type Measure = (typeof measures)[number];

export interface ArmAtAge {
  /** Runs that have reached the age. */
  readonly runs: number;
  /** Of them, those that had ended by that age. */
  readonly ended: number;
  /** Of these, those of which it is true. */
  readonly having: Readonly<Record<Measure, number>>;
  /** Of the completed ones: natural logarithms. */
  readonly ln_active_s: readonly number[];
  readonly ln_cost_usd: readonly number[];
}

export interface AtAge { readonly age_s: number; readonly arms: Readonly<Record<CanaryArm, ArmAtAge>> }

/** By age, the youngest first. */
export function atEqualAge(runs: readonly CanaryRun[], now_ms: number): AtAge[] {
  return agesS.map((age_s) => ({ age_s, arms: { canary: armAt(runs, 'canary', now_ms, age_s * 1000), control: armAt(runs, 'control', now_ms, age_s * 1000) } }));
}

/** Logarithms of what took no measurable time, too. */
const leastActiveS = 0.001;

function armAt(runs: readonly CanaryRun[], arm: CanaryArm, now_ms: number, age_ms: number): ArmAtAge {
  const having = { failed: 0, erred: 0, invalid: 0, tool_failed: 0 };
  const [ln_active_s, ln_cost_usd]: [number[], number[]] = [[], []];
  let [reached, ended] = [0, 0];
  for (const run of runs) {
    if (run.arm !== arm || run.start_ms > now_ms - age_ms) continue;
    reached++;
    if (run.ended === null || run.ended.at_ms - run.start_ms > age_ms) continue;
    ended++;
    for (const measure of measures) if (run.ended[measure]) having[measure]++;
    if (run.ended.failed) continue;
    ln_active_s.push(Math.log(Math.max(leastActiveS, run.ended.active_s)));
    if (run.ended.cost_usd > 0) ln_cost_usd.push(Math.log(run.ended.cost_usd));
  }
  return { runs: reached, ended, having, ln_active_s, ln_cost_usd };
}
