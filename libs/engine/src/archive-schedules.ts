/**
 * Carries what schedules are into the archive, so that they outlive the store; where they stand (the next time, what was fired) is not in it.
 *
 * 1  What has changed stays due until that very version is there; a version that was overtaken meanwhile does no harm, since each lies under a key of its own.
 * 2  A removal is in the archive for good: nothing that was on its way brings the schedule back.
 */
import { ArchiveFailed, type Archive } from './ports/archive.ts';
import type { Schedule, ScheduleUpkeep } from './ports/schedule-store.ts';

export interface ArchiveSchedulesDeps {
  readonly schedules: Pick<ScheduleUpkeep, 'dueForArchive' | 'duty' | 'archived'>;
  readonly archive: Pick<Archive, 'putSchedule' | 'removeSchedule'>;
}

/** What the archive keeps of a schedule. */
export type ArchivedScheduleDocument = Pick<Schedule, 'id' | 'tenant' | 'definition' | 'paused' | 'created_at_ms' | 'version' | 'next_ms'>;

/**
 * What the archive refuses of one schedule holds back no other; where the archive itself fails no further one is begun. Throws the first failure: the
 * next round tries again.
 */
export async function archiveSchedules(deps: ArchiveSchedulesDeps, shard: number, round: { readonly limit: number; readonly retry_ms: number }): Promise<void> {
  let refusal: ArchiveFailed | null = null;
  for (const id of await deps.schedules.dueForArchive(shard, round)) {
    try {
      await archiveSchedule(deps, id);
    } catch (error) {
      if (!(error instanceof ArchiveFailed && error.kind === 'refused')) throw error;
      refusal ??= error;
    }
  }
  if (refusal !== null) throw refusal;
}

async function archiveSchedule({ schedules, archive }: ArchiveSchedulesDeps, id: string): Promise<void> {
  const duty = await schedules.duty(id);
  if (duty === null) {
    await schedules.archived(id, 0);
  } else if (duty.type === 'remove') {
    await archive.removeSchedule({ id, tenant: duty.tenant, deleted_at: new Date(duty.removed_at_ms).toISOString() });
    await schedules.archived(id, duty.version);
  } else {
    const { tenant, definition, paused, created_at_ms, version, next_ms } = duty.schedule;
    await archive.putSchedule({ id, version, document: JSON.stringify({ id, tenant, definition, paused, created_at_ms, version, next_ms } satisfies ArchivedScheduleDocument) });
    await schedules.archived(id, version);
  }
}
