/**
 * The duties of an ended run, each idempotent by run id. The `finish` job is added by the commit of `run_end`, and again by
 * the pump until `finished` has said that all is done.
 */
import { archiveRun, type ArchiveDeps } from './archive-run.ts';
import type { TurnStore } from './ports/run-store.ts';

/** An archive that is away does not hold the run back: archiving has its own schedule, and its own retries. */
export async function finishRun(deps: ArchiveDeps & { readonly store: Pick<TurnStore, 'finished'> }, run_id: string): Promise<void> {
  await archiveRun(deps, run_id).catch(() => undefined);
  await deps.store.finished(run_id);
}
