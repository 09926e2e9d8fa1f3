/** A tenant's runs over all shards, newest first. Ids sort by time, so pages of shards merge by id. */
import type { ListRuns } from '@treadle/engine';
import { asReply } from './replies.ts';
import type { StoreParts } from './store-parts.ts';

/** Most runs that one shard looks at for one page; a page can be short, or empty, and still have a next one. */
const scanLimit = 1000;

export interface ShardPage {
  readonly run_ids: readonly string[];
  /** The id looked at last; null when the shard has no more. */
  readonly scanned_to: string | null;
}

export async function scanPerShard(parts: StoreParts, query: ListRuns): Promise<ShardPage[]> {
  const { run, keys, options } = parts;
  const body = JSON.stringify({
    before: query.before_id ?? undefined, limit: query.limit, scan: scanLimit,
    status: query.status ?? undefined, live: query.live === true, agent: query.agent ?? undefined, tag: query.tag ?? undefined, session: query.session_id ?? undefined,
  });
  return Promise.all(Array.from({ length: options.shards }, async (_, shard) => {
    const reply = asReply(await run('list', { keys: [keys.index(shard, query.tenant)], args: [body, keys.ctlSpelling(shard)] }));
    return { scanned_to: reply[1] === '' ? null : reply[1] as string, run_ids: reply.slice(2) as string[] };
  }));
}

/** Only what lies at or above the newest place where some shard stopped is complete; the rest belongs to a later page. */
export function mergePages(pages: readonly ShardPage[], limit: number): { run_ids: string[]; next_before_id: string | null } {
  const stops = pages.flatMap(({ scanned_to }) => scanned_to ?? []).sort();
  const horizon = stops.at(-1) ?? null;
  const complete = pages.flatMap(({ run_ids }) => run_ids).filter((id) => horizon === null || id >= horizon).sort().reverse();
  const run_ids = complete.slice(0, limit);
  return { run_ids, next_before_id: complete.length > limit ? run_ids.at(-1) ?? null : horizon };
}
