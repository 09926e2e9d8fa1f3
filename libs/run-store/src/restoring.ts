/** Putting back what the archive knows, after the store was lost. */
import { shardOf } from '@treadle/core';
import type { StoreUpkeep } from '@treadle/engine';
import { asReply, unknownReply } from './replies.ts';
import { keepSessionMs } from './session-directory.ts';
import type { StoreParts } from './store-parts.ts';

export function createRestoring({ run, keys, jobs, options }: StoreParts): Pick<StoreUpkeep, 'restore' | 'restoreSession'> {
  return {
    async restore(restored) {
      const { run_id, session_id, tenant, changes, events } = restored;
      const shard = shardOf(run_id);
      const fields = Object.entries(changes.fields).flat();
      const ledger = restored.ledger.flatMap(({ tool_use_id, entry }) => [tool_use_id, JSON.stringify(entry)]);
      const header = {
        run_id, tenant, agent: restored.agent, tags: JSON.stringify(restored.tags), priority: restored.priority, session: session_id, status: restored.status,
        // Jobs from before have lower numbers.
        epoch: restored.epoch, job_n: Math.max(1, restored.epoch), last_ts: String(restored.last_ts), event_epoch: restored.event_epoch, archived_seq: restored.archived_seq,
        generation: String(changes.generation), open_calls: JSON.stringify(restored.open_calls), pending: JSON.stringify(restored.pending), job: restored.job,
        tally: keys.tally(shard), grace_ms: options.graceMs, archive_after_ms: options.archiveAfterMs, keep_session_ms: keepSessionMs,
        counts: { events: events.length, fields: fields.length, messages: changes.messages.length, ledger: ledger.length },
      };
      const reply = asReply(await run('restore', {
        keys: [...keys.run(run_id), keys.index(shard, tenant), keys.session(session_id), keys.sessionQueue(session_id), keys.sessions(shard, tenant), ...jobs.keys(shard)],
        args: [JSON.stringify(header), keys.ctlSpelling(shard), ...events, ...fields, ...changes.messages, ...ledger],
      }));
      if (reply[0] !== 'restored' && reply[0] !== 'exists') throw unknownReply('restore', reply);
      return reply[0];
    },
    async restoreSession({ session_id, tenant, last }) {
      await run('restore_session', { keys: [keys.session(session_id), keys.sessions(shardOf(session_id), tenant)], args: [session_id, tenant, last, keepSessionMs] });
    },
  };
}
