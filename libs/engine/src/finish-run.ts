/**
 * The duties of an ended run, each idempotent by run id. The `finish` job is added by the commit of `run_end`, and again by
 * the pump until `finished` has said that all is done. Archiving is not among them: it has its own schedule (`archiveDue`), so
 * that an archive that hangs holds no worker's slot.
 */
import type { TurnStore } from './ports/run-store.ts';

export async function finishRun(deps: { readonly store: Pick<TurnStore, 'finished'> }, run_id: string): Promise<void> {
  await deps.store.finished(run_id);
}
