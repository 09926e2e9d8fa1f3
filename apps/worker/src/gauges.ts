/** What a worker measures beside its turns: itself, its Redis, and facts of the whole fleet that every worker tells alike. */
import type { Settings } from '@treadle/config';
import type { RunStore } from '@treadle/engine';
import { oldestWaiting, queueDepths } from '@treadle/queue';
import type { RedisClient, RedisClock } from '@treadle/run-store';
import type { Metrics } from '@treadle/telemetry';
import type { Presence } from './presence.ts';
import type { Ticks } from './ticks.ts';

/** How often, ms. */
const every = { presence: 5000, queues: 5000, runs: 5000, archiveBacklog: 2000, roundTrip: 1000 } as const;
/** Runs that one look at the archive's backlog goes through, in one script. */
const backlogLooks = 300;

interface Gauges {
  readonly settings: Settings; readonly store: RunStore; readonly clock: RedisClock; readonly metrics: Metrics; readonly redis: RedisClient; readonly presence: Presence;
}

/** `full`: in words why no new run is to be made now, by what waits for the archive; null where one is. */
export function addGauges(ticks: Ticks, gauges: Gauges): { readonly full: () => string | null } {
  const { settings, store, clock, metrics, redis, presence } = gauges;
  const shards = Array.from({ length: settings.shards }, (_, shard) => shard);
  let waiting = 0;
  ticks.add('presence', every.presence, () => presence.beat());
  ticks.add('queues', every.queues, () => lookAtQueues(gauges));
  ticks.add('runs', every.runs, async () => { await lookAtRuns(gauges, shards); });
  ticks.add('archive backlog', every.archiveBacklog, async () => {
    const backlogs = await Promise.all(shards.map((shard) => store.archiveBacklog(shard, { looks: backlogLooks })));
    const oldest = Math.min(...backlogs.map(({ oldest_ts }) => oldest_ts ?? Infinity));
    waiting = backlogs.reduce((sum, { events }) => sum + events, 0);
    metrics.archiveBacklog.set(waiting);
    metrics.archiveLag.set(oldest === Infinity ? 0 : Math.max(0, clock.nowMs() / 1000 - oldest));
  });
  ticks.add('round trip', every.roundTrip, async () => {
    const startMs = performance.now();
    await redis.ping();
    metrics.redisRoundTrip.observe((performance.now() - startMs) / 1000);
  });
  return { full: () => settings.archiveBacklog === 0 || waiting <= settings.archiveBacklog ? null : `${waiting} events wait for the archive` };
}

async function lookAtQueues({ settings, clock, metrics, redis, presence }: Gauges): Promise<void> {
  for (const { shard, waiting, active } of await queueDepths(redis, { prefix: settings.prefix, shards: settings.shards })) {
    const queue = queueOf(shard);
    const oldestMs = await oldestWaiting(redis, { prefix: settings.prefix, shard });
    metrics.queueDepth.set({ queue, state: 'waiting' }, waiting);
    metrics.queueDepth.set({ queue, state: 'active' }, active);
    metrics.queueOldestWait.set({ queue }, oldestMs === null ? 0 : Math.max(0, clock.nowMs() - oldestMs) / 1000);
    // Where the fleet takes nothing, it never ends: infinite.
    metrics.queueDrain.set({ queue }, waiting === 0 ? 0 : waiting / presence.pace(shard));
  }
}

async function lookAtRuns({ store, metrics }: Gauges, shards: readonly number[]): Promise<void> {
  const active = await Promise.all(shards.map((shard) => store.activeRuns(shard)));
  for (const status of ['queued', 'running', 'paused'] as const) metrics.runsActive.set({ status }, active.reduce((sum, each) => sum + each[status], 0));
  metrics.toolCallsInDoubt.set(active.reduce((sum, each) => sum + each.in_doubt, 0));
  metrics.webhookPending.set(active.reduce((sum, each) => sum + each.webhooks, 0));
  active.forEach(({ due }, shard) => { metrics.queueDepth.set({ queue: queueOf(shard), state: 'delayed' }, due); });
}

function queueOf(shard: number): string {
  return `turns-${shard}`;
}

/** Turns that ended were counted by their event; a drain hands its job back, and the next delivery is counted. */
export function countDelivery(metrics: Metrics, how: string, agent: string): void {
  if (how === 'done' || how === 'drain') return;
  metrics.turns.inc({ agent, outcome: how === 'fenced' ? 'fenced' : 'failed' });
}
