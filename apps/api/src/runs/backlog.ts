/**
 * A bound for what waits for the archive. An archive that is away fails no run, but what it does not take stays in Redis: before that is
 * full, new runs are refused, so that those under way can end.
 *
 * Owns: the last look and its timer. A store that is away changes nothing: requests find that out themselves.
 */
import type { StoreUpkeep } from '@treadle/engine';

export interface BacklogGuard {
  /** In words for people why no new run is taken; null where one is. */
  full(): string | null;
  look(): Promise<void>;
  stop(): void;
}

/** Runs that one look goes through in each shard, in one script. */
const looks = 300;
const everyMs = 2000;

/** `most` 0: no bound. */
export function createBacklogGuard(store: Pick<StoreUpkeep, 'archiveBacklog'>, options: { readonly shards: number; readonly most: number }): BacklogGuard {
  let events = 0;
  const look = async (): Promise<void> => {
    const backlogs = await Promise.all(Array.from({ length: options.shards }, (_, shard) => store.archiveBacklog(shard, { looks })));
    events = backlogs.reduce((sum, backlog) => sum + backlog.events, 0);
  };
  const timer = options.most === 0 ? null : setInterval(() => { look().catch(() => undefined); }, everyMs).unref();
  return {
    look,
    full: () => options.most === 0 || events <= options.most ? null : `${events} events wait for the archive, more than ${options.most}: no new runs are taken until it takes them.`,
    stop: () => { if (timer !== null) clearInterval(timer); },
  };
}
