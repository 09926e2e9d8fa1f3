/**
 * A sample of the runs that ended here is folded again from the archive. One run a round, and what waits is bounded: it costs the
 * same however many runs there are.
 */
import { auditRun, type Archive } from '@treadle/engine';
import type { Logger, Metrics } from '@treadle/telemetry';

const mostWaiting = 100;

export interface Audits {
  /** A run has ended in this process. */
  ended(run_id: string): void;
  /** Audits one of them, if its document is in the archive by now. */
  round(): Promise<void>;
}

export function createAudits({ archive, metrics, logger }: { readonly archive: Pick<Archive, 'events' | 'getRun'>; readonly metrics: Metrics; readonly logger: Logger }): Audits {
  const waiting: string[] = [];
  return {
    ended: (run_id) => {
      // The place of any is as good: a busy worker audits a sample, not its first runs.
      if (waiting.length < mostWaiting) waiting.push(run_id);
      else waiting[Math.floor(Math.random() * mostWaiting)] = run_id;
    },
    round: async () => {
      const run_id = waiting.shift();
      if (run_id === undefined) return;
      const outcome = await auditRun(archive, run_id);
      if (outcome === null) return;
      metrics.replayAudits.inc({ result: outcome.result });
      if (outcome.result !== 'identical') logger.error({ run_id, ...outcome }, 'the archived log of a run does not give what the run came to');
    },
  };
}
