/**
 * Follows the shards' feeds: which runs have new events. One blocked read per shard, on a connection of its own.
 *
 * Owns, per shard, the id read last. Feed ids are dense (n-0), so that whatever is missing is seen.
 * 1. Reading begins after the feed's tail at that moment: a concrete id, never `$`, which loses what comes between two calls.
 * 2. A lost connection, a gap between two ids (trimmed), and a feed that is shorter than what was read (data was lost) each
 *    call `onGap`; reading resumes from the last id, or from the tail where the feed is shorter.
 * 3. Handlers must not throw; what they throw ends the follower.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { EventFeed } from '@treadle/engine';
import { createKeys } from './keys.ts';
import type { RedisClient } from './redis-connection.ts';

type Handlers = Parameters<EventFeed['follow']>[0];

/** Less than the silence after which a connection counts as dead. */
const blockMs = 5000;
const pauseMs = 200;

/** `connect` makes a connection of the role `blocking`; the feed closes it. */
export function createEventFeed(deps: { readonly connect: () => RedisClient }, options: { readonly prefix: string; readonly shards: number }): EventFeed {
  const keys = createKeys(options.prefix);
  return {
    follow: async (handlers, signal) => {
      const shards = Array.from({ length: options.shards }, (_, shard) => shard);
      // One that fails ends the others: half a feed would look like a whole one.
      const failed = new AbortController();
      const stop = AbortSignal.any([signal, failed.signal]);
      await Promise.all(shards.map(async (shard) => {
        try {
          await followShard(deps.connect, keys.feed(shard), { handlers, signal: stop });
        } catch (error) {
          failed.abort();
          throw error;
        }
      }));
    },
  };
}

async function followShard(connect: () => RedisClient, feed: string, { handlers, signal }: { handlers: Handlers; signal: AbortSignal }): Promise<void> {
  if (signal.aborted) return;
  const redis = connect();
  const stop = (): void => { redis.disconnect(); };
  signal.addEventListener('abort', stop, { once: true });
  let last: number | null = null;
  try {
    while (!signal.aborted) {
      const seen: number | null = await reconnected(redis, feed, signal);
      if (seen === null) return;
      if (last !== null) handlers.onGap();
      last = await readOn(redis, feed, { last: last === null ? seen : Math.min(last, seen), handlers, signal });
    }
  } finally {
    signal.removeEventListener('abort', stop);
    redis.disconnect();
  }
}

/** The number at the feed's tail, as soon as Redis answers. Null when aborted. */
async function reconnected(redis: RedisClient, feed: string, signal: AbortSignal): Promise<number | null> {
  while (!signal.aborted) {
    try {
      const [entry] = await redis.xrevrange(feed, '+', '-', 'COUNT', 1);
      return entry === undefined ? 0 : numberOf(entry[0]);
    } catch {
      // Away; the connection says so to whoever made it.
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }
  return null;
}

/** Reads until a read fails or the signal aborts; answers the number read last. */
async function readOn(
  redis: RedisClient, feed: string, { last: first, handlers, signal }: { last: number; handlers: Handlers; signal: AbortSignal },
): Promise<number> {
  let last = first;
  while (!signal.aborted) {
    let reply;
    try {
      reply = await redis.xread('COUNT', 1000, 'BLOCK', blockMs, 'STREAMS', feed, `${last}-0`);
    } catch {
      return last;
    }
    for (const [id, fields] of reply?.[0]?.[1] ?? []) {
      const n = numberOf(id);
      if (n !== last + 1) handlers.onGap();
      last = n;
      handlers.onNotice({ run_id: fields[1]!, last_seq: Number(fields[3]) });
    }
  }
  return last;
}

function numberOf(id: string): number {
  return Number.parseInt(id, 10);
}
