/**
 * `strict`: what a run has committed is in the archive before a tool of it is begun, and before anything more of it is done.
 *
 * 1  The claimant archives its own run, after the commit: a fenced worker leaves nothing under a key that the next one needs.
 * 2  An archive that is away costs no run anything: after a short wait in place the run is put off (a wait like any other, E5), without
 *    an event and without blame, as often as it takes.
 */
import { archiveUpTo, type ArchiveDeps } from './archive-run.ts';
import type { RunHold, Written } from './hold.ts';
import type { Randomness } from './ports/clock.ts';
import { StoreAway } from './ports/run-store.ts';

/** False where the archive does not have it within a few seconds. */
export type ArchiveFirst = (run_id: string, seq: number) => Promise<boolean>;

const patienceMs = 5000;
const putOffMs = 2000;

/** Throws `StoreAway`; what is wrong with the archive is told to `onFailure`. */
export function archiveFirst(deps: ArchiveDeps, onFailure: (error: unknown) => void): ArchiveFirst {
  return async (run_id, seq) => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => { timer = setTimeout(() => { resolve(false); }, patienceMs); });
    const done = archiveUpTo(deps, run_id, seq).then(() => true, (error: unknown) => {
      if (error instanceof StoreAway) throw error;
      onFailure(error);
      return false;
    });
    try {
      return await Promise.race([done, late]);
    } finally {
      clearTimeout(timer);
      done.catch(() => undefined);
    }
  };
}

export interface StrictDeps { readonly archiveFirst?: ArchiveFirst; readonly random: Randomness }

/**
 * Null: go on, everything is in the archive (or nobody asks for that). Otherwise what came of putting the run off: `inbox_changed` means
 * that commands must be decided about first.
 */
export async function putOffUntilArchived(deps: StrictDeps, hold: RunHold): Promise<Written | null> {
  if (deps.archiveFirst === undefined || hold.signal.aborted) return null;
  if (await deps.archiveFirst(hold.claim.run_id, hold.state.last_seq) || hold.signal.aborted) return null;
  return hold.putOff(Math.round(putOffMs * (1 + deps.random.jitter())));
}
