/** Deleting runs, and remembering that they were. */
import { shardOf, type RunStatus } from '@treadle/core';
import type { RemoveReply, RemoveRun, RunDirectory } from '@treadle/engine';
import { asReply, unknownReply } from './replies.ts';
import type { StoreParts } from './store-parts.ts';

export function createRunRemoval({ run, keys }: StoreParts): Pick<RunDirectory, 'remove' | 'removed'> {
  return {
    remove: async ({ run_id, tenant, not_after_ms }: RemoveRun): Promise<RemoveReply> => {
      const shard = shardOf(run_id);
      const args = [JSON.stringify({ run_id, tenant, not_after_ms, webhooks: keys.webhooks(shard) }), keys.sessionSpelling(shard)];
      const reply = asReply(await run('remove', { keys: [...keys.run(run_id), keys.index(shard, tenant)], args }));
      switch (reply[0]) {
        case 'removed': return { type: 'removed', deleted_at_ms: Number(reply[1]) };
        case 'not_ended': return { type: 'not_ended', status: reply[1] as RunStatus };
        case 'missing': case 'too_late': return { type: reply[0] };
        default: throw unknownReply('remove', reply);
      }
    },

    removed: async (run_id) => {
      const reply = asReply(await run('removed', { keys: keys.run(run_id), args: [] }));
      return reply[0] === 'no' ? null : { tenant: reply[1] as string, deleted_at_ms: Number(reply[2]) };
    },
  };
}
