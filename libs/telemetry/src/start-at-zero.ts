/** A counter that begins with its first event shows no rise then, and what alerts wait for is that first one: it begins at 0 with the process. */
import { statusOfStopReason } from '@treadle/core';
import type { Metrics } from './metrics.ts';

export function startAtZero(metrics: Metrics, agents: readonly string[]): void {
  for (const agent of agents) {
    for (const [stop_reason, status] of Object.entries(statusOfStopReason)) metrics.runsEnded.inc({ agent, status, stop_reason }, 0);
    for (const outcome of ['ended', 'fenced', 'failed']) metrics.turns.inc({ agent, outcome }, 0);
  }
  for (const result of ['identical', 'different', 'failed']) metrics.replayAudits.inc({ result }, 0);
  for (const outcome of ['fired', 'skipped', 'failed']) metrics.scheduleRuns.inc({ outcome }, 0);
  for (const outcome of ['delivered', 'failed', 'dead']) metrics.webhookDeliveries.inc({ outcome }, 0);
  for (const outcome of ['ok', 'merged', 'failed']) metrics.archiveSegments.inc({ outcome }, 0);
}
