/** The shards' queues as a queue board shows them: to be looked at only, since the run store's scripts alone may add or remove jobs. */
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { Queue } from 'bullmq';
import type { RedisClient } from './queue-depths.ts';
import { queueName, shardPrefix } from './queue-names.ts';

export interface BoardQueues {
  readonly queues: readonly BullMQAdapter[];
  /** The connection is the caller's. */
  close(): Promise<void>;
}

export function boardQueues({ redis, prefix, shards, onError }: { readonly redis: RedisClient; readonly prefix: string; readonly shards: number; readonly onError: (error: Error) => void }): BoardQueues {
  const queues = Array.from({ length: shards }, (_, shard) => {
    // What it would write of itself into its `meta` is the consumer's.
    const queue = new Queue(queueName, { connection: redis, prefix: shardPrefix(prefix, shard), skipMetasUpdate: true });
    queue.on('error', onError);
    return { shard, queue };
  });
  return {
    queues: queues.map(({ shard, queue }) => new BullMQAdapter(queue, { readOnlyMode: true, prefix: `shard ${shard}: ` })),
    close: async () => { await Promise.all(queues.map(({ queue }) => queue.close())); },
  };
}
