/**
 * The store's clock in this process: Redis' TIME when it was last asked, carried on by the monotonic clock.
 *
 * 1. `nowMs` never goes back: where Redis' clock is found to be behind, it stands still until that has caught up.
 *    The nodes of a Cluster are asked in no order: their clocks must agree, as the machines' do that run NTP.
 * 2. A failed refresh changes nothing, and neither does an answer that took long (Redis was away): nobody knows which moment it tells.
 */
import { performance } from 'node:perf_hooks';
import type { Clock } from '@treadle/engine';
import type { RedisClient } from './redis-connection.ts';

/** An answer after this is not believed. */
const slowMs = 1000;

export interface RedisClock extends Clock {
  /** Asks Redis again; drift between two calls is that of the two clocks. Throws what the connection throws. */
  refresh(): Promise<void>;
}

/** Asks Redis once before it answers; throws what the connection throws. */
export async function createRedisClock(redis: RedisClient): Promise<RedisClock> {
  let offsetMs = 0;
  let latestMs = 0;
  let known = false;

  async function refresh(): Promise<void> {
    const sentMs = performance.now();
    const [seconds, micros] = await redis.time();
    if (known && performance.now() - sentMs > slowMs) return;
    known = true;
    // The server read its clock somewhere between question and answer; the middle is off by half of that at most.
    offsetMs = Number(seconds) * 1000 + Number(micros) / 1000 - (sentMs + performance.now()) / 2;
  }

  await refresh();
  return {
    refresh,
    monotonicMs: () => performance.now(),
    nowMs: () => {
      latestMs = Math.max(latestMs, performance.now() + offsetMs);
      return latestMs;
    },
  };
}
