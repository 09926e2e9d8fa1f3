/** A worker's share in the schedules: those whose time has come make their runs, and what was changed of them goes to the archive. */
import { agentSpecOf, agentVersionOf, chainSpecOf, type LoadedConfig } from '@treadle/config';
import { cronTimes } from '@treadle/cron';
import { archiveSchedules, fireSchedules, type Archive, type CreateDeps, type Fired, type FireDeps, type ScheduleStore } from '@treadle/engine';
import type { Logger, Metrics } from '@treadle/telemetry';
import type { Ticks } from './ticks.ts';

const every = { fire: 1000, archive: 1000 } as const;
/** Runs that one round makes at most, of one shard; as many again a second later. */
const mostAtOnce = 200;

export interface SchedulesSetup {
  readonly schedules: ScheduleStore;
  readonly archive: Archive;
  /** As for any new run. */
  readonly creating: CreateDeps;
  readonly config: LoadedConfig;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly retention_ms: number;
  readonly full: () => string | null;
}

export function addSchedules(ticks: Ticks, setup: SchedulesSetup): void {
  const { schedules, archive, creating, config, retention_ms, full } = setup;
  const deps: FireDeps = { ...creating, schedules, archive, cron: cronTimes, retention_ms, full, agent: agentsOf(config), observe: (fired) => { tell(setup, fired); } };
  for (let shard = 0; shard < creating.shards; shard++) {
    ticks.add(`schedules ${shard}`, every.fire, () => fireSchedules(deps, shard, { limit: mostAtOnce, concurrency: 8, retry_ms: 5000 }));
    ticks.add(`schedules to archive ${shard}`, every.archive, () => archiveSchedules({ schedules, archive }, shard, { limit: 50, retry_ms: 5000 }));
  }
}

/** Agents with a chain of their own or another one, as a request that names one gets it: its version is that of the whole. */
export function agentsOf(config: LoadedConfig): FireDeps['agent'] {
  return (name, chainName) => {
    const spec = agentSpecOf(config, name);
    if (spec === undefined) return 'agent';
    if (chainName === null) return { spec, version: agentVersionOf(spec) };
    const chain = chainSpecOf(config, chainName);
    if (chain === undefined) return 'chain';
    const other = { ...spec, chain };
    return { spec: other, version: agentVersionOf(other) };
  };
}

/** Counted by the process that has moved the schedule on; there is one for each time. */
function tell({ metrics, logger }: SchedulesSetup, { schedule, skipped, outcome, created }: Fired): void {
  const fields = { schedule_id: schedule.id, tenant: schedule.tenant };
  metrics.scheduleRuns.inc({ outcome: 'skipped' }, skipped);
  if (skipped > 0) logger.warn({ ...fields, skipped }, 'times of a schedule were missed');
  if (outcome.type === 'fired') {
    metrics.scheduleRuns.inc({ outcome: 'fired' });
    if (created) metrics.runsCreated.inc({ agent: schedule.definition.run.agent });
    logger.info({ ...fields, run_id: outcome.run_id }, 'a schedule has made a run');
  } else if (outcome.type === 'failed') {
    metrics.scheduleRuns.inc({ outcome: 'failed' });
    logger.warn({ ...fields, code: outcome.error.code, due_at: new Date(outcome.error.due_ms).toISOString() }, 'a schedule could not make its run');
  }
}
