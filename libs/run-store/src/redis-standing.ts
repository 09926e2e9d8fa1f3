/**
 * What the Redis that answers now keeps of the promises: the one that was looked at when this process started may have been set up anew, or
 * another may have taken its place behind the same address.
 *
 * Owns: the last answer. Redis is asked at most once in `everyMs`, however often readiness is.
 */
import { inspectRedis, type RedisProblem } from './inspect-redis.ts';
import type { RedisClient } from './redis-connection.ts';

export interface Standing {
  /** For which no run should be trusted to it. */
  readonly problems: readonly string[];
  /** By which something would be lost, at an event that they name. */
  readonly warnings: readonly string[];
}

export interface RedisStanding {
  /** Never throws, and answers within 2 s. Of a Redis that does not answer it says what it said before: that it is silent others say. */
  look(): Promise<Standing>;
}

const silenceMs = 1500;

export function createRedisStanding(redis: RedisClient, { monotonicMs, everyMs = 10_000 }: { readonly monotonicMs: () => number; readonly everyMs?: number }): RedisStanding {
  let last: Standing = { problems: [], warnings: [] };
  let askedMs = -Infinity;
  const inspect = async (): Promise<void> => {
    const { problems } = await inspectRedis(redis);
    const worded = (severity: RedisProblem['severity']): string[] => problems.filter((each) => each.severity === severity).map(({ problem, mend }) => `Redis: ${problem} (${mend})`);
    last = { problems: worded('error'), warnings: worded('warning') };
  };
  return {
    look: async () => {
      if (monotonicMs() - askedMs >= everyMs) {
        askedMs = monotonicMs();
        const { promise: late, resolve } = Promise.withResolvers<void>();
        const timer = setTimeout(resolve, silenceMs);
        // What could not be asked is asked with the next look.
        await Promise.race([inspect().catch(() => { askedMs = -Infinity; }), late]).finally(() => { clearTimeout(timer); });
      }
      return last;
    },
  };
}
