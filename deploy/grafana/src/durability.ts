/** Is what was accepted safe, and is what was archived true. */
import { dashboard } from './dashboard.ts';
import { fleet, latency, metric, orZero, rate, series, stat } from './panels.ts';

export const durabilityDashboard = () => dashboard({
  uid: 'durability', title: 'Durability', description: 'The log in Redis, the archive, and what is checked of both.', variables: [],
  rows: [
    { title: 'Now', panels: [
      stat({ title: 'Archive lag', description: 'Age of the oldest event that is not in the archive. A run\'s events are archived 5 s after the first that waits, and when it ends: up to 10 s are usual, 0 where nothing waits.', unit: 's', width: 6, thresholds: [60, 300], queries: [[fleet('treadle_archive_lag_seconds'), '']] }),
      stat({ title: 'Events to archive', description: 'Events that only Redis has.', unit: 'short', width: 6, queries: [[fleet('treadle_archive_backlog_events'), '']] }),
      stat({ title: 'Logs that differ', description: 'Archived logs that did not give what the run came to, in the last day. Must be 0.', unit: 'short', width: 6, thresholds: [1, 1], queries: [[orZero(`sum(increase(${metric('treadle_replay_audits_total', 'result="different"')}[1d]))`), '']] }),
      stat({ title: 'In doubt', description: 'Calls for which runs wait until a person says whether they happened.', unit: 'short', width: 6, thresholds: [1, 5], queries: [[fleet('treadle_tool_calls_in_doubt'), '']] }),
    ] },
    { title: 'Redis', panels: [
      latency({ title: 'Append', description: 'From sending events to their durable acceptance, the fsync included.', width: 12, thresholds: [0.05, 0.5] }, 'treadle_event_append_seconds'),
      latency({ title: 'Round trip', description: 'Of a PING: what an append takes beyond it is the disk.', width: 12, thresholds: [0.01, 0.1] }, 'treadle_redis_round_trip_seconds'),
    ] },
    { title: 'Archive', panels: [
      series({ title: 'Lag', description: 'Age of the oldest event that is not in the archive. A run\'s events are archived 5 s after the first that waits, and when it ends: up to 10 s are usual, 0 where nothing waits.', unit: 's', thresholds: [60, 300], queries: [[fleet('treadle_archive_lag_seconds'), 'lag']] }),
      series({ title: 'Backlog', description: 'Events that are not in the archive.', unit: 'short', queries: [[fleet('treadle_archive_backlog_events'), 'events']] }),
      series({ title: 'Segments', description: 'Written, merged, and not written.', unit: 'ops', queries: [[rate('treadle_archive_segments_total', { by: ['outcome'] }), '{{outcome}}']] }),
    ] },
    { title: 'Checks', panels: [
      series({ title: 'Replay audits', description: 'Archived logs of ended runs that were folded again.', unit: 'ops', queries: [[rate('treadle_replay_audits_total', { by: ['result'] }), '{{result}}']] }),
      series({ title: 'Taken over', description: 'Turns begun again, writes refused to the old claim.', unit: 'ops', queries: [[rate('treadle_turns_redelivered_total'), 'redelivered'], [rate('treadle_commits_fenced_total'), 'fenced']] }),
      series({ title: 'Unknown outcomes', description: 'Calls of which a crash, a time-out or an abort hid whether they happened.', unit: 'ops', queries: [[rate('treadle_tool_calls_total', { by: ['tool'], where: ['outcome="unknown"'] }), '{{tool}}']] }),
    ] },
  ],
});
