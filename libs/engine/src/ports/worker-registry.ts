/**
 * Who works: each worker says every few seconds that it is there and what it has in hand. Nothing depends on it but what people and
 * dashboards are shown; leases and claims know nothing of it.
 *
 * R1  `beat` answers with all that were heard of lately, this one included, as of one moment.
 * R2  Who was silent for `forgetMs` is not answered any more; times are the store's.
 */
export interface WorkerReport {
  /** As in events. */
  readonly name: string;
  readonly version: string;
  /** Of the agents of its configuration. Absent: an older worker, which says nothing of them. */
  readonly agent_versions?: readonly string[];
  readonly state: 'running' | 'draining';
  /** Jobs at once, at most, and now. */
  readonly concurrency: number;
  readonly turns_in_flight: number;
  /** Jobs taken a second in the last minute, by shard. */
  readonly taken_per_s: readonly number[];
  /** Epoch ms. */
  readonly started_at_ms: number;
}

export interface SeenWorker extends WorkerReport { readonly last_seen_ms: number }

export interface WorkerRegistry {
  beat(report: WorkerReport): Promise<readonly SeenWorker[]>;
  leave(name: string): Promise<void>;
  list(): Promise<readonly SeenWorker[]>;
}
