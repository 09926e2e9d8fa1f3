/** Whether a process could work now: every shard's Redis answers. In a Cluster one node can be away while the others answer. */
import { createKeys } from './keys.ts';
import type { RedisClient } from './redis-connection.ts';

/** A probe is answered within seconds, whatever the connection would wait for. */
const silenceMs = 1500;

/** Empty when all is well. Never throws, and answers within 2 s. */
export async function readinessProblems(redis: RedisClient, options: { readonly prefix: string; readonly shards: number }): Promise<string[]> {
  const keys = createKeys(options.prefix);
  const silent = await Promise.all(Array.from({ length: options.shards }, async (_, shard) => (await answers(redis, keys.feed(shard)) ? [] : [shard])));
  const shards = silent.flat();
  if (shards.length === 0) return [];
  return shards.length === options.shards ? ['Redis does not answer'] : shards.map((shard) => `shard ${shard}: its node of the Redis Cluster does not answer`);
}

async function answers(redis: RedisClient, key: string): Promise<boolean> {
  let late: NodeJS.Timeout | undefined;
  const silence = new Promise<boolean>((resolve) => { late = setTimeout(() => { resolve(false); }, silenceMs); });
  try {
    return await Promise.race([redis.exists(key).then(() => true, () => false), silence]);
  } finally {
    clearTimeout(late);
  }
}
