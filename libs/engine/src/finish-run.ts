/**
 * The duties of an ended run, each idempotent by run id. The `finish` job is added by the commit of `run_end`, and again by
 * the pump until `finished` has said that all is done. Archiving is not among them: it has its own schedule (`archiveDue`), so
 * that an archive that hangs holds no worker's slot.
 *
 * A run that takes part in the trial of a model reports how it came out before it is finished, so that no end is lost; judging comes
 * after, and a judge that fails keeps back nobody's session.
 */
import { initialState, restoreState } from '@treadle/core';
import { canaryOutcome, judgeWhenDue, type CanaryDeps } from './canary.ts';
import type { RunDirectory, TurnStore } from './ports/run-store.ts';

export interface FinishDeps {
  readonly store: Pick<TurnStore, 'finished'> & Pick<RunDirectory, 'read'>;
  readonly canary?: CanaryDeps & { readonly onFailed: (error: unknown) => void };
}

export async function finishRun({ store, canary }: FinishDeps, run_id: string): Promise<void> {
  const snapshot = canary === undefined ? null : await store.read(run_id, 'messages');
  const outcome = snapshot === null ? null : canaryOutcome(restoreState(initialState, snapshot.stored));
  const counted = canary !== undefined && outcome !== null && await canary.canaries.report(outcome) !== 'not_counted';
  await store.finished(run_id);
  if (counted) await judgeWhenDue(canary, outcome.chain).catch(canary.onFailed);
}
