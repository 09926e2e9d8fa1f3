/** How many jobs each shard's queue holds, for metrics. */
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
