/** Is work being done, how long does it wait, and for what. */
import { dashboard } from './dashboard.ts';
import { fleet, latency, metric, rate, series, stat } from './panels.ts';

const agent = ['agent=~"$agent"'];

export const fleetDashboard = () => dashboard({
  uid: 'fleet', title: 'Fleet', description: 'Runs, turns, queues and the processes that carry them.', variables: [['agent', 'treadle_runs_created_total']],
  rows: [
    { title: 'Now', panels: [
      ...(['queued', 'running', 'paused'] as const).map((status) => stat({ title: `Runs ${status}`, description: `Runs that are ${status}.`, unit: 'short', queries: [[fleet('treadle_runs_active', { where: [`status="${status}"`] }), '']] })),
      stat({ title: 'Workers', description: 'Worker processes that answer.', unit: 'short', queries: [[`count(${metric('treadle_turn_slots')}) or vector(0)`, '']] }),
      stat({ title: 'Saturation', description: 'Turns in flight of those that all workers take at once.', unit: 'percentunit', thresholds: [0.8, 0.95], queries: [[`sum(${metric('treadle_turns_in_flight')}) / sum(${metric('treadle_turn_slots')})`, '']] }),
      stat({ title: 'Longest wait', description: 'How long the job that has waited longest has waited.', unit: 's', thresholds: [30, 300], queries: [[fleet('treadle_queue_oldest_wait_seconds'), '']] }),
    ] },
    { title: 'Runs', panels: [
      series({ title: 'Runs by status', description: 'Runs that have not ended.', unit: 'short', stacked: true, width: 12, queries: [[fleet('treadle_runs_active', { by: ['status'] }), '{{status}}']] }),
      series({ title: 'Accepted and ended', description: 'Where more are accepted than end for long, the queue grows. Of schedules (all agents): times that made a run, were missed, or could make none.', unit: 'ops', width: 12, queries: [[rate('treadle_runs_created_total', { where: agent }), 'accepted'], [rate('treadle_runs_ended_total', { where: agent }), 'ended'], [rate('treadle_schedule_runs_total', { by: ['outcome'] }), 'schedules: {{outcome}}']] }),
      series({ title: 'Ended, by stop reason', description: 'What ended runs; everything but `answered` is worth knowing.', unit: 'ops', stacked: true, width: 12, queries: [[rate('treadle_runs_ended_total', { by: ['status', 'stop_reason'], where: agent }), '{{status}}: {{stop_reason}}']] }),
      latency({ title: 'Duration of runs', description: 'From acceptance to end, with all that they waited for: workers, providers, people. Of all agents.', width: 12 }, 'treadle_run_lifetime_seconds', { by: ['status'], quantiles: [0.5, 0.95] }),
    ] },
    { title: 'Turns', panels: [
      series({ title: 'Turns', description: 'Deliveries of turns, by how they came out; a turn whose request failed has ended, too.', unit: 'ops', stacked: true, queries: [[rate('treadle_turns_total', { by: ['outcome'], where: agent }), '{{outcome}}']] }),
      latency({ title: 'Duration of turns', description: 'Model and tools included. Turns whose request to a model failed are not in it.' }, 'treadle_turn_duration_seconds', { where: agent }),
      latency({ title: 'Duration of failed turns', description: 'Turns that ended with a request that failed, of all agents. Short: refused at once; long: a model that hangs holds slots.' }, 'treadle_turn_failure_seconds'),
      latency({ title: 'Overhead of turns', description: 'Everything but model and tools.', thresholds: [0.25, 1] }, 'treadle_turn_overhead_seconds'),
      series({ title: 'Redelivered', description: 'Turns begun again because a worker died, stood still or was stopped.', unit: 'ops', queries: [[rate('treadle_turns_redelivered_total'), 'redelivered']] }),
      series({ title: 'Fenced', description: 'Writes refused because a newer claim exists. A few go with deaths of workers; many mean leases too short for the machines.', unit: 'ops', queries: [[rate('treadle_commits_fenced_total'), 'fenced']] }),
    ] },
    { title: 'Queues', panels: [
      latency({ title: 'Wait in the queue', description: 'From when a job may run to its claim.', thresholds: [5, 60] }, 'treadle_queue_wait_seconds'),
      series({ title: 'Jobs by state', description: 'Jobs that wait for a worker, that workers have in hand (active), and runs that wait for a time, such as a provider\'s (delayed).', unit: 'short', queries: [[fleet('treadle_queue_depth', { by: ['queue', 'state'] }), '{{queue}} {{state}}']] }),
      latency({ title: 'Put off', description: 'How long turns were put off, each time: before another try, for a provider\'s rates or quota, for a breaker, for one of a model\'s slots, for a worker that has what the run needs, for the archive. They hold no slot meanwhile. Waits for people are not in it.' }, 'treadle_turn_delay_seconds'),
      series({ title: 'Longest wait', description: 'How long the job has waited that waits longest now.', unit: 's', width: 12, thresholds: [30, 300], queries: [[fleet('treadle_queue_oldest_wait_seconds', { by: ['queue'] }), '{{queue}}']] }),
      series({ title: 'Time to drain', description: 'At the pace of the last minute, if nothing came. No line: nothing is taken at all.', unit: 's', width: 12, thresholds: [300, 1800], queries: [[fleet('treadle_queue_drain_seconds', { by: ['queue'] }), '{{queue}}']] }),
    ] },
    { title: 'Webhooks', panels: [
      series({ title: 'Webhooks', description: 'Attempts to tell somebody of an ended run. Failed ones are made again, for about a day; dead ones wait for a person.', unit: 'ops', stacked: true, width: 12, queries: [[rate('treadle_webhook_deliveries_total', { by: ['outcome'] }), '{{outcome}}']] }),
      series({ title: 'Still to be told', description: 'Ended runs whose receiver has not taken it yet. Where it rises, a receiver is away, or too slow.', unit: 'short', width: 12, queries: [[fleet('treadle_webhook_pending'), 'pending']] }),
    ] },
    { title: 'Processes', panels: [
      series({ title: 'Saturation by worker', description: 'Turns in flight of those taken at once. Full ones need company.', unit: 'percentunit', width: 12, thresholds: [0.8, 0.95], queries: [[`${metric('treadle_turns_in_flight')} / ${metric('treadle_turn_slots')}`, '{{instance}}']] }),
      series({ title: 'Event loop lag', description: '99th percentile of 5 s. A process that lags renews leases late.', unit: 's', width: 12, thresholds: [0.1, 0.5], queries: [[metric('treadle_event_loop_lag_seconds'), '{{instance}}']] }),
      latency({ title: 'Round trip by process', description: 'Of a PING to Redis, 95th percentile. One that is slow alone has a slow host or computes; all of them: Redis, or what lies before it.', width: 12, thresholds: [0.01, 0.1] }, 'treadle_redis_round_trip_seconds', { by: ['instance'], quantiles: [0.95] }),
      series({ title: 'Event streams', description: 'Clients that follow runs live.', unit: 'short', width: 12, queries: [[`sum(${metric('treadle_sse_clients')})`, 'streams']] }),
    ] },
  ],
});
