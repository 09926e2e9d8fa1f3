/**
 * The duties of an ended run, each idempotent by run id. The `finish` job is added by the commit of `run_end`, and again by
 * the pump until `finished` has said that all is done. Archiving is not among them: it has its own schedule (`archiveDue`), so
 * that an archive that hangs holds no worker's slot.
 *
 * A run that takes part in the trial of a model reports how it came out before it is finished, so that no end is lost; judging comes
 * after, and a judge that fails keeps back nobody's session. What a run has used is counted by `finished` itself, and what somebody is to be told
 * of it is written down there; telling is a duty of its own (webhook-dispatcher.ts).
 */
import { initialState, ownUsage, restoreState, type RunState } from '@treadle/core';
import { canaryOutcome, judgeWhenDue, type CanaryDeps } from './canary.ts';
import type { RunDirectory, TurnStore } from './ports/run-store.ts';
import type { RunUse } from './ports/usage-sums.ts';
import { deliveryOf } from './webhook-body.ts';

export interface FinishDeps {
  readonly store: Pick<TurnStore, 'finished'> & Pick<RunDirectory, 'read'>;
  readonly canary?: CanaryDeps & { readonly onFailed: (error: unknown) => void };
}

export async function finishRun({ store, canary }: FinishDeps, run_id: string): Promise<void> {
  const snapshot = await store.read(run_id, 'messages');
  const state = snapshot === null ? null : restoreState(initialState, snapshot.stored);
  const outcome = canary === undefined || state === null ? null : canaryOutcome(state);
  const counted = canary !== undefined && outcome !== null && await canary.canaries.report(outcome) !== 'not_counted';
  await store.finished(run_id, state === null ? null : useOf(state), state === null ? null : deliveryOf(state, snapshot?.archived_seq ?? 0));
  if (counted) await judgeWhenDue(canary, outcome.chain).catch(canary.onFailed);
}

/** What the run adds to the sums; null before its end. The day is that of its last event, whenever this is asked. */
function useOf(state: RunState): RunUse | null {
  const { tenant, agent, ended_at } = state;
  return ended_at === null ? null : { tenant, agent, day: new Date(ended_at * 1000).toISOString().slice(0, 10), models: ownUsage(state) };
}
