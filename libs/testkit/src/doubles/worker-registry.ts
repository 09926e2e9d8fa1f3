/** Who works, in memory. The clock is the test's. */
import type { SeenWorker, WorkerRegistry } from '@treadle/engine';

export interface MemoryWorkerRegistry extends WorkerRegistry { passTime(ms: number): void }

export function createMemoryWorkerRegistry({ forgetMs = 60_000 }: { readonly forgetMs?: number } = {}): MemoryWorkerRegistry {
  const workers = new Map<string, SeenWorker>();
  let nowMs = 1_700_000_000_000;
  const list = () => [...workers.values()].filter((worker) => worker.last_seen_ms + forgetMs >= nowMs).sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    beat: (report) => {
      workers.set(report.name, { ...report, last_seen_ms: nowMs });
      return Promise.resolve(list());
    },
    leave: (name) => {
      workers.delete(name);
      return Promise.resolve();
    },
    list: () => Promise.resolve(list()),
    passTime: (ms) => { nowMs += ms; },
  };
}
