/**
 * The store is lost: every schedule is put back from the archive, with its next time counted from now.
 *
 * 1  A schedule that the store has, or knows as removed, is left alone; so asking twice is harmless. Removed ones are not in the archive's listing.
 * 2  The latest time that has passed is made up for, as after any outage, unless the archive has its run. Where the archive lags behind the runs (`async`) that run
 *    may have been made and lost: it is made again only where repeats are accepted.
 */
import { scheduledRunId } from './fire-schedules.ts';
import type { ArchivedScheduleDocument } from './archive-schedules.ts';
import type { Archive } from './ports/archive.ts';
import type { Clock } from './ports/clock.ts';
import type { CronTimes } from './ports/cron-times.ts';
import type { ScheduleUpkeep } from './ports/schedule-store.ts';

export interface RestoreSchedulesDeps {
  readonly schedules: Pick<ScheduleUpkeep, 'restore'>;
  readonly archive: Pick<Archive, 'schedules' | 'events'>;
  readonly cron: CronTimes;
  readonly clock: Pick<Clock, 'nowMs'>;
}

export interface RestoredSchedules {
  readonly found: number;
  readonly restored: number;
  readonly present: number;
  readonly failed: readonly { readonly schedule_id: string; readonly problem: string }[];
}

/** Throws what the store or the archive throws when they are away: asked again, it goes on. */
export async function restoreSchedules(deps: RestoreSchedulesDeps, options: { readonly accept_repeats: boolean; readonly strict: boolean; readonly shards: number }): Promise<RestoredSchedules> {
  const counts = { found: 0, restored: 0, present: 0, failed: [] as { schedule_id: string; problem: string }[] };
  const repeats = options.accept_repeats || options.strict;
  for await (const { id, document } of deps.archive.schedules()) {
    counts.found++;
    const outcome = Number.parseInt(id.slice(-2), 16) >= options.shards ? { problem: `its shard has no worker: TREADLE_SHARDS is ${options.shards}` } : await restoreOne(deps, document, repeats);
    if (typeof outcome === 'string') counts[outcome === 'restored' ? 'restored' : 'present']++;
    else counts.failed.push({ schedule_id: id, ...outcome });
  }
  return counts;
}

async function restoreOne(deps: RestoreSchedulesDeps, document: string, repeats: boolean): Promise<'restored' | 'exists' | { readonly problem: string }> {
  const archived = JSON.parse(document) as ArchivedScheduleDocument;
  const reading = deps.cron(archived.definition.cron, archived.definition.timezone);
  if (reading.type === 'invalid') return { problem: reading.problem };
  const now_ms = deps.clock.nowMs();
  const { id, definition: { catch_up_s }, next_ms: first } = archived;
  // What lay before the first time that the archive knows of was dealt with when it was written.
  const passed = reading.rule.latest(now_ms);
  const madeUpFor = repeats && first !== null && passed !== null && passed >= first && now_ms - passed <= catch_up_s * 1000
    && (await deps.archive.events(scheduledRunId(id, passed), 0, 1)).length === 0;
  const next_ms = first === null ? null : madeUpFor ? passed : first > now_ms ? first : reading.rule.next(now_ms);
  return deps.schedules.restore({ ...archived, next_ms, last: null, fired: 0, skipped: 0, failed: 0, last_error: null });
}
