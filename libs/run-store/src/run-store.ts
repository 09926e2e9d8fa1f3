/**
 * Run state, log, ledger and inbox in Redis; refuses stale writers.
 *
 * Owns the keys in keys.ts, and writes them through the scripts in scripts/ alone. Holds nothing in memory: two stores over
 * one Redis are one store. The port's S1 to S13 hold as follows.
 * S1, S4, S5  one script per call; it reads the control record first and writes only after its last check (Lua is not rolled back)
 * S2, S7      ctl remembers the last commit, `commands` the accepted ids: the client may send an unanswered call again
 * S3          only the script `claim` raises the epoch
 * S6, S8      the scripts ask Redis for the time
 * S9          the server's `appendfsync always`; see inspect-redis.ts for what else is lost when
 * S13, W1     `finished` notes in ctl that a run was counted, beside the sums, and that its delivery was written, beside the delivery
 */
import type { RunStore } from '@treadle/engine';
import type { JobFragment } from './job-fragment.ts';
import { createKeys } from './keys.ts';
import type { RedisClient } from './redis-connection.ts';
import { createRestoring } from './restoring.ts';
import { createRunDirectory } from './run-directory.ts';
import { createScriptRunner } from './script-runner.ts';
import type { StoreParts } from './store-parts.ts';
import { createStoreUpkeep } from './store-upkeep.ts';
import { createTurnStore } from './turn-store.ts';
import { createWebhookOutbox } from './webhook-outbox.ts';

export interface RunStoreOptions {
  /** Of every key: letters, digits, `_ . : -`. */
  readonly prefix: string;
  /** How many shards there are, 1 to 256; `list` asks them all. */
  readonly shards: number;
  /** When the pump looks for a job for the first time after it was added. Default 10,000. */
  readonly graceMs?: number;
  /** How long events are gathered before they are due for the archive. Default 5,000. */
  readonly archiveAfterMs?: number;
  /** Most commands that wait in an inbox. Default 1,000. */
  readonly inboxLimit?: number;
  /** How long an idempotency key is remembered. Default 7 days. */
  readonly keepReservationMs?: number;
  /** How long what runs of a day have used is kept. Default 100. */
  readonly keepUsageDays?: number;
}

/** Auto-pipelining must be off in `redis`: it made every call slower. Reads the script files; throws where one is missing. */
export function createRunStore(deps: { readonly redis: RedisClient; readonly jobs: JobFragment }, options: RunStoreOptions): RunStore {
  const parts: StoreParts = {
    run: createScriptRunner(deps.redis, deps.jobs.lua),
    keys: createKeys(options.prefix),
    jobs: deps.jobs,
    options: {
      shards: options.shards, graceMs: options.graceMs ?? 10_000, archiveAfterMs: options.archiveAfterMs ?? 5000,
      inboxLimit: options.inboxLimit ?? 1000, keepReservationMs: options.keepReservationMs ?? 7 * 24 * 3_600_000, keepUsageDays: options.keepUsageDays ?? 100,
    },
  };
  const now = async (): Promise<number> => {
    const [seconds, micros] = await deps.redis.time();
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  };
  return { ...createTurnStore(parts), ...createRunDirectory(parts, now), ...createStoreUpkeep(parts), ...createRestoring(parts), ...createWebhookOutbox(parts) };
}
