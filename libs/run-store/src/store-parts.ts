/** What the three sides of the store share. */
import type { JobFragment } from './job-fragment.ts';
import type { Keys } from './keys.ts';
import type { RunScript } from './script-runner.ts';

export interface StoreParts {
  readonly run: RunScript;
  readonly keys: Keys;
  readonly jobs: JobFragment;
  readonly options: {
    readonly shards: number;
    readonly graceMs: number;
    readonly archiveAfterMs: number;
    readonly inboxLimit: number;
    readonly keepReservationMs: number;
    readonly keepUsageDays: number;
  };
}
