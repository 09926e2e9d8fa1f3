/**
 * This worker among the others: it says every few seconds what it has in hand, and learns how fast the fleet takes jobs.
 *
 * Owns: the counts of jobs taken in the last minute. States: running → draining → left.
 */
import type { JobConsumer, SeenWorker, WorkerRegistry, WorkerReport } from '@treadle/engine';
import type { Metrics } from '@treadle/telemetry';

/** Over which a pace is measured. */
const paceMs = 60_000;

export interface Presence {
  beat(): Promise<void>;
  /** Jobs a second that the fleet has taken of late, of one shard. */
  pace(shard: number): number;
  drains(): void;
  leave(): Promise<void>;
}

export interface PresenceDeps {
  readonly registry: WorkerRegistry;
  readonly consumer: Pick<JobConsumer, 'load'>;
  readonly metrics: Metrics;
  readonly report: Pick<WorkerReport, 'name' | 'version' | 'agent_versions' | 'concurrency' | 'started_at_ms'>;
  /** Told of all workers at each beat. */
  readonly onHeard?: (workers: readonly SeenWorker[]) => void;
  /** Default the process's monotonic clock. */
  readonly monotonicMs?: () => number;
}

export function createPresence({ registry, consumer, metrics, report, onHeard, monotonicMs = () => performance.now() }: PresenceDeps): Presence {
  const counts: { readonly atMs: number; readonly taken: readonly number[] }[] = [];
  let state: WorkerReport['state'] = 'running';
  let paces: readonly number[] = [];
  metrics.turnSlots.set(report.concurrency);

  /** Since the oldest count within the minute. */
  function ownPace(taken: readonly number[]): readonly number[] {
    const atMs = monotonicMs();
    counts.push({ atMs, taken });
    // One that is a little older stays, so that a whole minute is covered.
    while (counts.length > 2 && counts[1]!.atMs <= atMs - paceMs) counts.shift();
    const first = counts[0]!;
    const seconds = (atMs - first.atMs) / 1000;
    return taken.map((count, shard) => (seconds > 0 ? (count - (first.taken[shard] ?? 0)) / seconds : 0));
  }

  return {
    beat: async () => {
      const load = consumer.load();
      const turns_in_flight = load.reduce((sum, { in_hand }) => sum + in_hand, 0);
      metrics.turnsInFlight.set(turns_in_flight);
      const taken_per_s = ownPace(load.map(({ taken }) => taken));
      const all = await registry.beat({ ...report, state, turns_in_flight, taken_per_s });
      onHeard?.(all);
      paces = taken_per_s.map((_, shard) => all.reduce((sum, worker) => sum + (worker.taken_per_s[shard] ?? 0), 0));
    },
    pace: (shard) => paces[shard] ?? 0,
    drains: () => { state = 'draining'; },
    leave: () => registry.leave(report.name),
  };
}
