/** Putting back what the archive knows, after the store was lost, or its last writes were. */
import { shardOf } from '@treadle/core';
import type { RestoredRun, StoreUpkeep, TurnStore } from '@treadle/engine';
import { asReply, unknownReply } from './replies.ts';
import { commandHeader } from './run-directory.ts';
import { keepSessionMs } from './session-directory.ts';
import type { StoreParts } from './store-parts.ts';

export function createRestoring({ run, keys, jobs, options }: StoreParts): Pick<StoreUpkeep, 'restore' | 'restoreSession'> & Pick<TurnStore, 'writeBack'> {
  return {
    async restore(restored) {
      const { run_id, session_id, tenant } = restored;
      const shard = shardOf(run_id);
      const { header, payload } = argsOf(restored, keys, options);
      const more = {
        tenant, agent: restored.agent, priority: restored.priority, session: session_id, job: restored.job, keep_session_ms: keepSessionMs,
        // Jobs from before have lower numbers.
        epoch: restored.epoch, job_n: Math.max(1, restored.epoch),
      };
      const reply = asReply(await run('restore', {
        keys: [...keys.run(run_id), keys.index(shard, tenant), keys.session(session_id), keys.sessionQueue(session_id), keys.sessions(shard, tenant), ...jobs.keys(shard)],
        args: [JSON.stringify({ ...header, ...more }), keys.ctlSpelling(shard), ...payload],
      }));
      if (reply[0] !== 'restored' && reply[0] !== 'exists') throw unknownReply('restore', reply);
      return reply[0];
    },
    async writeBack({ claim, expected_seq, store_id, run: archived, commands_applied, next, tell }) {
      const { header, payload } = argsOf(archived, keys, options);
      const more = { epoch: claim.epoch, claim_id: claim.claim_id, expected_seq, store_id, commands_applied, next, took_over: 'no', tell: tell.map((told) => ({ keys: keys.commands(told.run_id), command: commandHeader({ ...told, not_after_ms: Number.MAX_SAFE_INTEGER }, options) })) };
      const reply = asReply(await run('write_back', {
        keys: [...keys.run(claim.run_id), ...jobs.keys(shardOf(claim.run_id))], args: [JSON.stringify({ ...header, ...more }), ...payload],
      }));
      if (reply[0] !== 'written' && reply[0] !== 'fenced') throw unknownReply('write_back', reply);
      return reply[0];
    },
    async restoreSession({ session_id, tenant, last }) {
      await run('restore_session', { keys: [keys.session(session_id), keys.sessions(shardOf(session_id), tenant)], args: [session_id, tenant, last, keepSessionMs] });
    },
  };
}

/** What both scripts are told of a run: events, fields, messages and ledger follow in this order. */
function argsOf(restored: Omit<RestoredRun, 'epoch' | 'job'>, keys: StoreParts['keys'], options: StoreParts['options']): { readonly header: Record<string, unknown>; readonly payload: string[] } {
  const { changes, events } = restored;
  const fields = Object.entries(changes.fields).flat();
  const ledger = restored.ledger.flatMap(({ tool_use_id, entry }) => [tool_use_id, JSON.stringify(entry)]);
  const header = {
    run_id: restored.run_id, tags: JSON.stringify(restored.tags), status: restored.status, last_ts: String(restored.last_ts), event_epoch: restored.event_epoch,
    archived_seq: restored.archived_seq, generation: String(changes.generation), open_calls: JSON.stringify(restored.open_calls), pending: JSON.stringify(restored.pending),
    tally: keys.tally(shardOf(restored.run_id)), grace_ms: options.graceMs, archive_after_ms: options.archiveAfterMs,
    counts: { events: events.length, fields: fields.length, messages: changes.messages.length, ledger: ledger.length },
  };
  return { header, payload: [...events, ...fields, ...changes.messages, ...ledger] };
}
