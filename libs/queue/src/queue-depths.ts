/** How many jobs each shard's queue holds, and how long they have waited. */
import type { Cluster, Redis } from 'ioredis';
import { queueKey } from './queue-names.ts';

/** One server, or a Cluster: a shard's keys lie in one slot. */
export type RedisClient = Redis | Cluster;

export interface QueueDepth {
  readonly shard: number;
  /** Ready to be taken. */
  readonly waiting: number;
  /** In some worker's hands. */
  readonly active: number;
}

/** Throws what the connection throws. */
export async function queueDepths(redis: RedisClient, options: { readonly prefix: string; readonly shards: number }): Promise<QueueDepth[]> {
  return Promise.all(Array.from({ length: options.shards }, async (_, shard) => {
    const key = (part: string): string => queueKey(options.prefix, shard, part);
    const [wait, prioritized, active] = await Promise.all([redis.llen(key('wait')), redis.zcard(key('prioritized')), redis.llen(key('active'))]);
    return { shard, waiting: wait + prioritized, active };
  }));
}

/** BullMQ orders by priority first, then by age: a class of priority is this wide (its `getPriorityScore`). */
const classWidth = 2 ** 32;

/** When the job of a shard was added that waits longest, epoch ms by the store's clock; null where none waits. Throws what the connection throws. */
export async function oldestWaiting(redis: RedisClient, { prefix, shard }: { readonly prefix: string; readonly shard: number }): Promise<number | null> {
  const key = (part: string): string => queueKey(prefix, shard, part);
  const ids: string[] = [];
  const waiting = await redis.lindex(key('wait'), -1);
  if (waiting !== null) ids.push(waiting);
  // The first of each class is its oldest.
  for (let from = 0; ;) {
    const [id, score] = await redis.zrangebyscore(key('prioritized'), from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1);
    if (id === undefined) break;
    ids.push(id);
    from = (Math.floor(Number(score) / classWidth) + 1) * classWidth;
  }
  const added = await Promise.all(ids.map((id) => redis.hget(key(id), 'timestamp')));
  const times = added.flatMap((time) => (time === null ? [] : [Number(time)]));
  return times.length === 0 ? null : Math.min(...times);
}
