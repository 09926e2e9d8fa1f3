/** How the turn queue is named in Redis: one queue per shard, in the hash slot of the shard's runs. */

/** The name of every shard's queue; the shard is in the prefix. */
export const queueName = 'turns';

/** BullMQ's `prefix` of a shard: the hash tag that all keys of the shard carry. */
export function shardPrefix(prefix: string, shard: number): string {
  return `{${prefix}:${shard.toString(16).padStart(2, '0')}}`;
}

export function queueKey(prefix: string, shard: number, part: string): string {
  return `${shardPrefix(prefix, shard)}:${queueName}:${part}`;
}
