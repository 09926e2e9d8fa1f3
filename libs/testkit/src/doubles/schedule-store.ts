/** Schedules in memory: the port's promises (C1 to C5) in plain code that can be read against the scripts. One shard. */
import type { Schedule, ScheduleAdvance, ScheduleStore } from '@treadle/engine';

interface Record { schedule: Schedule; change_id: string; look_ms: number | null; archive_ms: number | null }
interface Removed { readonly tenant: string; readonly removed_at_ms: number; readonly version: number; archive_ms: number | null }

export function createMemoryScheduleStore(nowMs: () => number): ScheduleStore {
  const records = new Map<string, Record>();
  const removed = new Map<string, Removed>();
  const look = ({ paused, next_ms }: Schedule): number | null => (paused ? null : next_ms);

  function begin(schedule: Schedule, archive_ms: number | null): void {
    records.set(schedule.id, { schedule, change_id: '', look_ms: look(schedule), archive_ms });
  }

  function advance({ id, from_ms, next_ms, skipped, outcome }: ScheduleAdvance): 'advanced' | 'moved' {
    const record = records.get(id);
    if (record?.schedule.next_ms !== from_ms) return 'moved';
    const before = record.schedule;
    record.schedule = {
      ...before, next_ms, skipped: before.skipped + skipped,
      ...(outcome.type === 'fired' ? { last: { due_ms: outcome.due_ms, run_id: outcome.run_id }, last_error: null, fired: before.fired + 1 } : {}),
      ...(outcome.type === 'failed' ? { last_error: outcome.error, failed: before.failed + 1 } : {}),
    };
    record.look_ms = look(record.schedule);
    return 'advanced';
  }

  function takeDue<T>(from: Map<string, T>, time: (each: T) => number | null, putOff: (each: T) => void, limit: number): string[] {
    return [...from].filter(([, each]) => (time(each) ?? Infinity) <= nowMs()).slice(0, limit).map(([id, each]) => { putOff(each); return id; });
  }

  return {
    create: async ({ not_after_ms, most, ...schedule }) => {
      if (removed.has(schedule.id)) return 'removed';
      if (records.has(schedule.id)) return 'exists';
      if (nowMs() > not_after_ms) return 'too_late';
      if ([...records.values()].filter((each) => each.schedule.tenant === schedule.tenant).length >= most) return 'too_many';
      begin({ ...schedule, created_at_ms: nowMs(), version: 1, last: null, fired: 0, skipped: 0, failed: 0, last_error: null }, nowMs());
      return 'created';
    },
    schedule: async (id) => records.get(id)?.schedule ?? null,
    change: async ({ id, tenant, change_id, version, definition, paused, next_ms, not_after_ms }) => {
      const record = records.get(id);
      if (record?.schedule.tenant !== tenant) return 'missing';
      if (record.change_id === change_id) return 'changed';
      if (nowMs() > not_after_ms) return 'too_late';
      if (record.schedule.version !== version) return 'conflict';
      record.schedule = { ...record.schedule, definition, paused, version: version + 1, ...(next_ms === 'as_it_is' ? {} : { next_ms }) };
      Object.assign(record, { change_id, look_ms: look(record.schedule), archive_ms: nowMs() });
      return 'changed';
    },
    remove: async ({ id, tenant, not_after_ms }) => {
      const gone = removed.get(id);
      const record = records.get(id);
      if ((gone?.tenant ?? record?.schedule.tenant) !== tenant) return { type: 'missing' };
      if (gone !== undefined) return { type: 'removed', removed_at_ms: gone.removed_at_ms };
      if (nowMs() > not_after_ms) return { type: 'too_late' };
      removed.set(id, { tenant, removed_at_ms: nowMs(), version: record!.schedule.version + 1, archive_ms: nowMs() });
      records.delete(id);
      return { type: 'removed', removed_at_ms: nowMs() };
    },
    list: async ({ tenant, before_id, limit }) => {
      const ids = [...records.values()].filter(({ schedule }) => schedule.tenant === tenant && (before_id === null || schedule.id < before_id)).map(({ schedule }) => schedule.id).sort().reverse();
      return { ids: ids.slice(0, limit), next_before_id: ids.length > limit ? ids[limit - 1]! : null };
    },
    due: async (_shard, { limit, retry_ms }) => ({ now_ms: nowMs(), ids: takeDue(records, (each) => each.look_ms, (each) => { each.look_ms = nowMs() + retry_ms; }, limit) }),
    advance: async (asked) => advance(asked),
    leave: async (id, from_ms) => {
      const record = records.get(id);
      if (record !== undefined && !record.schedule.paused && record.schedule.next_ms === from_ms) record.look_ms = nowMs();
    },
    dueForArchive: async (_shard, { limit, retry_ms }) => {
      const putOff = (each: { archive_ms: number | null }): void => { each.archive_ms = nowMs() + retry_ms; };
      return [...takeDue(records, (each) => each.archive_ms, putOff, limit), ...takeDue(removed, (each) => each.archive_ms, putOff, limit)].slice(0, limit);
    },
    duty: async (id) => {
      const gone = removed.get(id);
      if (gone !== undefined) return { type: 'remove', id, tenant: gone.tenant, version: gone.version, removed_at_ms: gone.removed_at_ms };
      const record = records.get(id);
      return record === undefined ? null : { type: 'put', schedule: record.schedule };
    },
    archived: async (id, version) => {
      const known = removed.get(id) ?? records.get(id);
      if (known === undefined) return;
      const current = 'schedule' in known ? known.schedule.version : known.version;
      known.archive_ms = current === version ? null : nowMs();
    },
    restore: async (schedule) => {
      if (records.has(schedule.id) || removed.has(schedule.id)) return 'exists';
      begin({ ...schedule, last: null, fired: 0, skipped: 0, failed: 0, last_error: null }, null);
      return 'restored';
    },
  };
}
