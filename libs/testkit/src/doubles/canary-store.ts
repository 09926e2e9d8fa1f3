/** The canary store's double: what the port promises, in memory, by a clock that tests move. */
import type { CanaryArm } from '@treadle/core';
import {
  mostDecisions, mostRuns, noTotals, type ArmTotals, type CanaryDecision, type CanaryOutcome, type CanaryRun, type CanaryState, type CanaryStore,
} from '@treadle/engine';

interface Trial {
  state: CanaryState;
  runs: Map<string, CanaryRun>;
  totals: Record<CanaryArm, ArmTotals>;
  judged_ms: number;
  decisions: readonly CanaryDecision[];
}

export function createMemoryCanaryStore(clock: { nowMs(): number } = { nowMs: () => Date.now() }): CanaryStore {
  const trials = new Map<string, Trial>();

  function begin(trial: Trial, changes: Partial<CanaryState>): void {
    const begins = changes.stage !== undefined && changes.stage !== trial.state.stage;
    trial.state = { ...trial.state, ...changes, version: trial.state.version + 1, ...(begins ? { since_ms: clock.nowMs() } : {}) };
    if (!begins) return;
    Object.assign(trial, { runs: new Map(), totals: { canary: noTotals, control: noTotals }, judged_ms: -Infinity });
  }

  return {
    declare: async (chain, definition) => {
      const trial = trials.get(chain);
      if (trial !== undefined && trial.state.definition.model === definition.model && definition.stages.includes(trial.state.stage)) {
        if (JSON.stringify(trial.state.definition) !== JSON.stringify(definition)) begin(trial, { definition });
        return 'kept';
      }
      const state: CanaryState = { chain, definition, stage: 0, status: 'active', since_ms: clock.nowMs(), version: (trial?.state.version ?? 0) + 1 };
      trials.set(chain, { state, runs: new Map(), totals: { canary: noTotals, control: noTotals }, judged_ms: -Infinity, decisions: trial?.decisions ?? [] });
      return 'begun';
    },
    assign: async ({ chain, model, run_id, bucket, run_at_ms }) => {
      const trial = trials.get(chain);
      if (trial?.state.definition.model !== model) return { type: 'none' };
      const { stage, status } = trial.state;
      const known = trial.runs.get(run_id);
      const arm = known?.arm ?? (bucket < stage ? 'canary' : 'control');
      if (known !== undefined || status === 'rolled_back' || stage >= 100) return { type: 'assigned', arm, stage };
      trial.runs.set(run_id, { arm, start_ms: Math.max(clock.nowMs(), run_at_ms ?? 0), ended: null });
      forgetOldest(trial.runs, arm);
      return { type: 'assigned', arm, stage };
    },
    withdraw: async (chain, run_id) => {
      const runs = trials.get(chain)?.runs;
      if (runs?.get(run_id)?.ended === null) runs.delete(run_id);
    },
    report: async (outcome) => {
      const trial = trials.get(outcome.chain);
      const run = trial?.runs.get(outcome.run_id);
      if (trial === undefined || run === undefined) return 'not_counted';
      if (run.ended !== null) return 'again';
      if (outcome.verdict === 'neutral') trial.runs.delete(outcome.run_id);
      else trial.runs.set(outcome.run_id, { ...run, ended: endOf(outcome) });
      trial.totals = { ...trial.totals, [run.arm]: withOutcome(trial.totals[run.arm], outcome) };
      return 'counted';
    },
    due: async (chain, every_ms) => {
      const trial = trials.get(chain);
      if (trial === undefined || trial.state.status === 'rolled_back' || trial.state.stage >= 100 || clock.nowMs() - trial.judged_ms < every_ms) return false;
      trial.judged_ms = clock.nowMs();
      return true;
    },
    read: async (chain, { decisions, runs }) => {
      const trial = trials.get(chain);
      if (trial === undefined) return null;
      return { state: trial.state, now_ms: clock.nowMs(), runs: runs ? [...trial.runs.values()] : [], totals: trial.totals, decisions: trial.decisions.slice(0, decisions) };
    },
    decide: async (chain, seen_version, decision) => {
      const trial = trials.get(chain);
      if (trial !== undefined && trial.decisions[0]?.id === decision.id) return 'decided';
      if (trial?.state.version !== seen_version) return 'conflict';
      begin(trial, { stage: decision.to_stage, status: decision.status });
      trial.decisions = [decision, ...trial.decisions].slice(0, mostDecisions);
      return 'decided';
    },
  };
}

function forgetOldest(runs: Map<string, CanaryRun>, arm: CanaryArm): void {
  if (runs.size <= mostRuns[arm]) return;
  const mine = [...runs].filter(([, run]) => run.arm === arm);
  if (mine.length <= mostRuns[arm]) return;
  const [oldest] = mine.reduce((first, each) => each[1].start_ms < first[1].start_ms ? each : first);
  runs.delete(oldest);
}

function endOf({ ended_ms, verdict, errors, validation_failures, tool_errors, active_s, cost_usd }: CanaryOutcome): CanaryRun['ended'] {
  return {
    at_ms: ended_ms, failed: verdict === 'failed', erred: Object.keys(errors).length > 0, invalid: validation_failures > 0, tool_failed: tool_errors > 0, active_s, cost_usd };
}

function withOutcome(totals: ArmTotals, outcome: CanaryOutcome): ArmTotals {
  const { verdict, stop_reason } = outcome;
  return {
    ended: totals.ended + 1, completed: totals.completed + (verdict === 'completed' ? 1 : 0), failed: totals.failed + (verdict === 'failed' ? 1 : 0),
    stop_reasons: { ...totals.stop_reasons, [stop_reason]: (totals.stop_reasons[stop_reason] ?? 0) + 1 },
    errors: Object.entries(outcome.errors).reduce((errors, [type, count]) => ({ ...errors, [type]: (errors[type] ?? 0) + count }), { ...totals.errors }),
    validation_failures: totals.validation_failures + outcome.validation_failures, tool_calls: totals.tool_calls + outcome.tool_calls,
    tool_errors: totals.tool_errors + outcome.tool_errors, active_s: totals.active_s + outcome.active_s, cost_usd: totals.cost_usd + outcome.cost_usd,
  };
}
