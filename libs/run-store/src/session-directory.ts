/** Sessions: each lives in the shard that its id names, as its runs do. */
import { shardOf } from '@treadle/core';
import type { RunDirectory } from '@treadle/engine';
import { asReply, unknownReply } from './replies.ts';
import { mergePages } from './run-list.ts';
import type { StoreParts } from './store-parts.ts';

/** A session that nobody has used for so long is forgotten. */
export const keepSessionMs = 30 * 24 * 3_600_000;

export function createSessionDirectory({ run, keys, options }: StoreParts): Pick<RunDirectory, 'createSession' | 'session' | 'listSessions'> {
  return {
    async createSession({ id, tenant, not_after_ms }) {
      const reply = asReply(await run('create_session', { keys: [keys.session(id), keys.sessions(shardOf(id), tenant)], args: [id, tenant, not_after_ms, keepSessionMs] }));
      if (reply[0] !== 'created' && reply[0] !== 'too_late') throw unknownReply('create_session', reply);
      return reply[0];
    },

    async session(session_id) {
      const reply = asReply(await run('session', { keys: [keys.session(session_id)], args: [keys.ctlSpelling(shardOf(session_id))] }));
      if (reply[0] === 'missing') return null;
      const named = (text: unknown): string | null => (text === '' ? null : text as string);
      return { tenant: reply[1] as string, current: named(reply[2]), last: named(reply[3]) };
    },

    async listSessions({ tenant, before_id, limit }) {
      const pages = await Promise.all(Array.from({ length: options.shards }, async (_, shard) => {
        const reply = asReply(await run('list_sessions', { keys: [keys.sessions(shard, tenant)], args: [before_id ?? '', limit, keys.sessionSpelling(shard)] }));
        return { scanned_to: reply[1] === '' ? null : reply[1] as string, run_ids: reply.slice(2) as string[] };
      }));
      const { run_ids: session_ids, next_before_id } = mergePages(pages, limit);
      return { session_ids, next_before_id };
    },
  };
}
