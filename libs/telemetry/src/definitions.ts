/**
 * Every metric: name, help, labels, who has it. Label values are closed sets or names from the configuration, never ids or free text.
 *
 * A `fleet` gauge is a fact about the whole installation (a queue's depth), and every worker says the same: `max` over the workers is the
 * number, `sum` would count it once per worker. Everything else is about one process, and sums.
 */

export type MetricsRole = 'api' | 'worker';

export interface MetricDefinition {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  readonly buckets?: readonly number[];
  /** Which processes have it; both where nothing is said. */
  readonly role?: MetricsRole;
  /** The same number on every worker. */
  readonly fleet?: true;
}

/** Seconds, doubling: agents' turns are long. */
export const longBuckets = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36] as const;
/** What a model has answered is never there sooner; by model and by agent every bucket is many series. */
export const replyBuckets = longBuckets.slice(2);
/** Seconds, for what should take milliseconds. */
export const shortBuckets = [0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 4.096] as const;
/** Seconds, doubling, to nine hours: runs wait for providers and for people. */
export const hourBuckets = [0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768] as const;

export const metricDefinitions = {
  runsCreated: { type: 'counter', name: 'treadle_runs_created_total', help: 'Runs accepted.', labels: ['agent'] },
  runsEnded: { type: 'counter', name: 'treadle_runs_ended_total', help: 'Runs ended, by why.', labels: ['agent', 'status', 'stop_reason'], role: 'worker' },
  scheduleRuns: { type: 'counter', name: 'treadle_schedule_runs_total', help: 'Times of schedules that have passed: fired (a run was made), skipped (missed), failed (no run could be made; the schedule says why).', labels: ['outcome'], role: 'worker' },
  runLifetime: { type: 'histogram', name: 'treadle_run_lifetime_seconds', help: 'From the acceptance of a run to its end, whatever it waited for.', labels: ['status'], buckets: hourBuckets, role: 'worker' },
  runsActive: { type: 'gauge', name: 'treadle_runs_active', help: 'Runs that have not ended: queued, running, paused.', labels: ['status'], role: 'worker', fleet: true },
  turns: { type: 'counter', name: 'treadle_turns_total', help: 'Deliveries of turns: ended, fenced (somebody else has the run), failed (lease lost, store unclear, a fault); not those that a drain hands back.', labels: ['agent', 'outcome'], role: 'worker' },
  turnDuration: { type: 'histogram', name: 'treadle_turn_duration_seconds', help: 'From the start of a turn to its end. Turns that ended with a failed request are in treadle_turn_failure_seconds.', labels: ['agent'], buckets: replyBuckets, role: 'worker' },
  turnFailure: { type: 'histogram', name: 'treadle_turn_failure_seconds', help: 'From the start of a turn to its end, for turns that ended with a failed request to a model.', labels: [], buckets: longBuckets, role: 'worker' },
  turnDelay: { type: 'histogram', name: 'treadle_turn_delay_seconds', help: 'How long turns were put off, each time: before another try, for a provider\'s rates or quota, for a breaker, for one of a model\'s slots, for a worker that has what the run needs, for the archive. Not the waits for people.', labels: [], buckets: hourBuckets, role: 'worker' },
  turnOverhead: { type: 'histogram', name: 'treadle_turn_overhead_seconds', help: 'A turn without its model and tools.', labels: [], buckets: shortBuckets, role: 'worker' },
  queueWait: { type: 'histogram', name: 'treadle_queue_wait_seconds', help: 'From when a job may run to its claim.', labels: [], buckets: longBuckets, role: 'worker' },
  queueDepth: { type: 'gauge', name: 'treadle_queue_depth', help: 'A shard\'s jobs that wait and that workers have in hand, and its runs that wait for a time: waiting, active, delayed.', labels: ['queue', 'state'], role: 'worker', fleet: true },
  queueOldestWait: { type: 'gauge', name: 'treadle_queue_oldest_wait_seconds', help: 'How long the job that has waited longest has waited.', labels: ['queue'], role: 'worker', fleet: true },
  queueDrain: { type: 'gauge', name: 'treadle_queue_drain_seconds', help: 'How long the waiting jobs would take at the pace at which the fleet has taken jobs in the last minute; +Inf where it takes none.', labels: ['queue'], role: 'worker', fleet: true },
  turnsInFlight: { type: 'gauge', name: 'treadle_turns_in_flight', help: 'Jobs in this worker\'s hands.', labels: [], role: 'worker' },
  turnSlots: { type: 'gauge', name: 'treadle_turn_slots', help: 'Jobs that this worker takes at most (WORKER_CONCURRENCY).', labels: [], role: 'worker' },
  modelRequests: { type: 'counter', name: 'treadle_model_requests_total', help: 'Requests to models: replied, failed, skipped, aborted.', labels: ['chain', 'model', 'outcome', 'error_type'], role: 'worker' },
  modelDuration: { type: 'histogram', name: 'treadle_model_duration_seconds', help: 'From a request to the end of its reply. Requests without one are in treadle_model_failure_seconds.', labels: ['model'], buckets: replyBuckets, role: 'worker' },
  modelFailure: { type: 'histogram', name: 'treadle_model_failure_seconds', help: 'From a request to its end without a reply: failed, timed out or aborted.', labels: [], buckets: longBuckets, role: 'worker' },
  modelFirstToken: { type: 'histogram', name: 'treadle_model_first_token_seconds', help: 'From a request to its first text.', labels: ['model'], buckets: replyBuckets, role: 'worker' },
  modelTokens: { type: 'counter', name: 'treadle_model_tokens_total', help: 'Tokens: input, output, cached (a part of the input), wasted (of replies that could not be used; in none of the others).', labels: ['model', 'direction'], role: 'worker' },
  modelCost: { type: 'counter', name: 'treadle_model_cost_usd_total', help: 'Cost of the tokens, in US dollars.', labels: ['model'], role: 'worker' },
  modelFallbacks: { type: 'counter', name: 'treadle_model_fallbacks_total', help: 'Hops to another model of the chain.', labels: ['chain', 'from_model', 'to_model', 'error_type'], role: 'worker' },
  modelInFlight: { type: 'gauge', name: 'treadle_model_in_flight', help: 'Requests that this process has at a model, or leave to send; once a second.', labels: ['model'], role: 'worker' },
  modelAllowance: { type: 'gauge', name: 'treadle_model_allowance', help: 'How many requests to a model may be in flight in this process: one more with each reply, half with each time-out; models that are silent share.', labels: ['model'], role: 'worker' },
  chainActiveModel: { type: 'gauge', name: 'treadle_chain_active_model', help: '1 for the model of a chain that was asked last by this process, 0 for those before it.', labels: ['chain', 'model'], role: 'worker' },
  chainModelInfo: { type: 'gauge', name: 'treadle_chain_model_info', help: '1 for each model of a chain, at its place in the configuration; a model on trial is last.', labels: ['chain', 'position', 'model'], fleet: true },
  canaryWeight: { type: 'gauge', name: 'treadle_canary_weight', help: 'Percent of new runs that begin on the model on trial.', labels: ['chain', 'model'], fleet: true },
  canaryDecisions: { type: 'counter', name: 'treadle_canary_decisions_total', help: 'Decisions about models on trial: promote, rollback, pause, set. A rollback is worth an alert.', labels: ['chain', 'decision'] },
  breakerState: { type: 'gauge', name: 'treadle_breaker_state', help: 'Circuit breakers: 0 closed, 1 half-open, 2 open.', labels: ['breaker', 'error_type'], role: 'worker', fleet: true },
  breakerTransitions: { type: 'counter', name: 'treadle_breaker_transitions_total', help: 'Circuit breakers that became closed, half_open or open.', labels: ['breaker', 'error_type', 'to'], role: 'worker' },
  recoveries: { type: 'counter', name: 'treadle_recoveries_total', help: 'Failures that a run went on from; site `none`: the same model was asked again.', labels: ['site', 'action'], role: 'worker' },
  validationErrors: { type: 'counter', name: 'treadle_validation_errors_total', help: 'Answers sent back to the model.', labels: ['validator', 'error_type'], role: 'worker' },
  contextTruncated: { type: 'counter', name: 'treadle_context_truncated_total', help: 'Requests of which a provider cut off a part.', labels: ['model'], role: 'worker' },
  toolCalls: { type: 'counter', name: 'treadle_tool_calls_total', help: 'Tool calls: ok, error, unknown, denied, cancelled, deduplicated. The first 64 tools that a process calls have their names, others are other.', labels: ['tool', 'outcome'], role: 'worker' },
  toolDuration: { type: 'histogram', name: 'treadle_tool_duration_seconds', help: 'Duration of tool calls.', labels: ['tool'], buckets: longBuckets, role: 'worker' },
  toolDeduplicated: { type: 'counter', name: 'treadle_tool_deduplicated_total', help: 'Calls whose result an earlier delivery of the turn had recorded, and which were not run again.', labels: ['tool'], role: 'worker' },
  toolCallsInDoubt: { type: 'gauge', name: 'treadle_tool_calls_in_doubt', help: 'Calls that may or may not have happened, for which runs wait until a person says.', labels: [], role: 'worker', fleet: true },
  commitsFenced: { type: 'counter', name: 'treadle_commits_fenced_total', help: 'Writes refused because a newer claim exists.', labels: [], role: 'worker' },
  turnsRedelivered: { type: 'counter', name: 'treadle_turns_redelivered_total', help: 'Turns begun again after a delivery that did not finish.', labels: [], role: 'worker' },
  eventAppend: { type: 'histogram', name: 'treadle_event_append_seconds', help: 'From sending events to their durable acceptance.', labels: [], buckets: shortBuckets, role: 'worker' },
  archiveLag: { type: 'gauge', name: 'treadle_archive_lag_seconds', help: 'Age of the oldest event that is not in the archive, of the 300 runs of each shard whose turn it is next; 0 where none waits.', labels: [], role: 'worker', fleet: true },
  archiveBacklog: { type: 'gauge', name: 'treadle_archive_backlog_events', help: 'Events that are not in the archive.', labels: [], role: 'worker', fleet: true },
  archiveSegments: { type: 'counter', name: 'treadle_archive_segments_total', help: 'Segments written (ok), made of others (merged), or not written (failed).', labels: ['outcome'], role: 'worker' },
  replayAudits: { type: 'counter', name: 'treadle_replay_audits_total', help: 'Archived logs of ended runs that were folded again: identical, different, failed.', labels: ['result'], role: 'worker' },
  webhookDeliveries: { type: 'counter', name: 'treadle_webhook_deliveries_total', help: 'Attempts to tell somebody of an ended run: delivered, failed (it is sent again), dead (given up; a person can send it again).', labels: ['outcome'], role: 'worker' },
  webhookPending: { type: 'gauge', name: 'treadle_webhook_pending', help: 'Ended runs of which somebody is still to be told.', labels: [], role: 'worker', fleet: true },
  sseClients: { type: 'gauge', name: 'treadle_sse_clients', help: 'Open event streams.', labels: [], role: 'api' },
  eventLoopLag: { type: 'gauge', name: 'treadle_event_loop_lag_seconds', help: 'Event loop delay, 99th percentile of the last 5 s.', labels: [] },
  redisRoundTrip: { type: 'histogram', name: 'treadle_redis_round_trip_seconds', help: 'From a PING to its answer, once a second.', labels: [], buckets: shortBuckets },
} as const satisfies Record<string, MetricDefinition>;
