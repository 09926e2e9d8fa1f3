/** Background duties, for a worker's ticks. */
import type { StoreUpkeep } from '@treadle/engine';
import { asReply, unknownReply } from './replies.ts';
import type { StoreParts } from './store-parts.ts';

/** A segment is one object in the archive, held in memory while it is written and read back. */
const segmentBytes = 8 * 1024 * 1024;

export function createStoreUpkeep(parts: StoreParts): Omit<StoreUpkeep, 'restore' | 'restoreSession'> {
  const { run, keys, jobs, options } = parts;
  return {
    pump: async (shard, { limit, grace_ms }) => {
      const reply = asReply(await run('pump', {
        keys: [...keys.shard(shard), ...jobs.keys(shard)],
        args: [limit, grace_ms, keys.ctlSpelling(shard), keys.indexSpelling(shard)],
      }));
      return { woken: Number(reply[1]), nudged: Number(reply[2]) };
    },
    dueForArchive: async (shard, { limit, retry_ms }) => {
      const reply = asReply(await run('due_for_archive', { keys: keys.shard(shard), args: [limit, retry_ms] }));
      return reply.slice(1) as string[];
    },
    seal: async (run_id, max_events) => {
      const reply = asReply(await run('seal', { keys: keys.run(run_id), args: [run_id, max_events, segmentBytes] }));
      switch (reply[0]) {
        case 'nothing': return null;
        case 'sealed': return { run_id, first_seq: Number(reply[1]), last_seq: Number(reply[2]), ended: reply[3] === 1 };
        default: throw unknownReply('seal', reply);
      }
    },
    archived: async ({ run_id, first_seq, last_seq }, { keep_events, retention_ms }) => {
      const args = [run_id, first_seq, last_seq, keep_events, retention_ms, options.archiveAfterMs];
      return asReply(await run('archived', { keys: keys.run(run_id), args }))[0] === 'not_sealed' ? 'overtaken' : 'archived';
    },
    archiveBacklog: async (shard, { looks }) => {
      const reply = asReply(await run('archive_backlog', { keys: keys.shard(shard), args: [looks, keys.ctlSpelling(shard), keys.eventsSpelling(shard)] }));
      const [runs, looked, events] = [Number(reply[1]), Number(reply[2]), Number(reply[3])];
      return { events: looked === 0 ? 0 : Math.round(events * runs / looked), oldest_ts: reply[4] === '' ? null : Number(reply[4]) };
    },
    activeRuns: async (shard) => {
      const [, queued, running, paused, in_doubt, due, webhooks] = asReply(await run('active_runs', { keys: [keys.tally(shard), keys.shard(shard)[0]!], args: [] })).map(Number);
      return { queued: queued!, running: running!, paused: paused!, in_doubt: in_doubt!, due: due!, webhooks: webhooks! };
    },
    archiveDuty: async (run_id) => {
      const reply = asReply(await run('archive_duty', { keys: keys.run(run_id), args: [run_id] }));
      switch (reply[0]) {
        case 'none': case 'merge': return { type: reply[0] };
        case 'remove': return { type: 'remove', tenant: reply[1] as string, deleted_at_ms: Number(reply[2]) };
        default: throw unknownReply('archive_duty', reply);
      }
    },
    archiveDutyDone: async (run_id, duty, { settle_ms }) => {
      await run('archive_duty_done', { keys: keys.run(run_id), args: [run_id, duty, settle_ms, options.keepReservationMs] });
    },
  };
}
