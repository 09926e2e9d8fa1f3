/** Every metric: name, help, labels. Label values are closed sets or names from the configuration, never ids or free text. */

export interface MetricDefinition {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  readonly buckets?: readonly number[];
}

/** Seconds, doubling: agents' turns are long. */
export const longBuckets = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36] as const;
/** Seconds, for what should take milliseconds. */
export const shortBuckets = [0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 4.096] as const;

export const metricDefinitions = {
  runsCreated: { type: 'counter', name: 'treadle_runs_created_total', help: 'Runs accepted.', labels: ['agent'] },
  runsEnded: { type: 'counter', name: 'treadle_runs_ended_total', help: 'Runs ended, by why.', labels: ['agent', 'status', 'stop_reason'] },
  turns: { type: 'counter', name: 'treadle_turns_total', help: 'Turns, by how they came out: ended, fenced, failed.', labels: ['agent', 'outcome'] },
  turnDuration: { type: 'histogram', name: 'treadle_turn_duration_seconds', help: 'From the start of a turn to its end.', labels: ['agent'], buckets: longBuckets },
  turnOverhead: { type: 'histogram', name: 'treadle_turn_overhead_seconds', help: 'A turn without its model and tools.', labels: [], buckets: shortBuckets },
  queueWait: { type: 'histogram', name: 'treadle_queue_wait_seconds', help: 'From when a job may run to its claim.', labels: [], buckets: longBuckets },
  queueDepth: { type: 'gauge', name: 'treadle_queue_depth', help: 'Jobs in a queue.', labels: ['queue', 'state'] },
  modelRequests: { type: 'counter', name: 'treadle_model_requests_total', help: 'Requests to models: replied, failed, skipped, aborted.', labels: ['chain', 'model', 'outcome', 'error_type'] },
  modelDuration: { type: 'histogram', name: 'treadle_model_duration_seconds', help: 'From a request to the end of its reply.', labels: ['model'], buckets: longBuckets },
  modelFirstToken: { type: 'histogram', name: 'treadle_model_first_token_seconds', help: 'From a request to its first text.', labels: ['model'], buckets: longBuckets },
  modelTokens: { type: 'counter', name: 'treadle_model_tokens_total', help: 'Tokens: input, output, cached, wasted.', labels: ['model', 'direction'] },
  modelCost: { type: 'counter', name: 'treadle_model_cost_usd_total', help: 'Cost of the tokens, in US dollars.', labels: ['model'] },
  modelFallbacks: { type: 'counter', name: 'treadle_model_fallbacks_total', help: 'Hops to another model of the chain.', labels: ['chain', 'from_model', 'to_model', 'error_type'] },
  chainActiveModel: { type: 'gauge', name: 'treadle_chain_active_model', help: '1 for the model of a chain that was asked last by this process, 0 for those before it.', labels: ['chain', 'model'] },
  chainModelInfo: { type: 'gauge', name: 'treadle_chain_model_info', help: '1 for each model of a chain, at its place in the configuration; a model on trial is last.', labels: ['chain', 'position', 'model'] },
  canaryWeight: { type: 'gauge', name: 'treadle_canary_weight', help: 'Percent of new runs that begin on the model on trial.', labels: ['chain', 'model'] },
  canaryDecisions: { type: 'counter', name: 'treadle_canary_decisions_total', help: 'Decisions about models on trial: promote, rollback, pause, set. A rollback is worth an alert.', labels: ['chain', 'decision'] },
  breakerState: { type: 'gauge', name: 'treadle_breaker_state', help: 'Circuit breakers: 0 closed, 1 half-open, 2 open.', labels: ['breaker', 'error_type'] },
  breakerTransitions: { type: 'counter', name: 'treadle_breaker_transitions_total', help: 'Circuit breakers that became closed, half_open or open.', labels: ['breaker', 'error_type', 'to'] },
  recoveries: { type: 'counter', name: 'treadle_recoveries_total', help: 'Failures that became continuations.', labels: ['site', 'action'] },
  validationErrors: { type: 'counter', name: 'treadle_validation_errors_total', help: 'Answers sent back to the model.', labels: ['validator', 'error_type'] },
  contextTruncated: { type: 'counter', name: 'treadle_context_truncated_total', help: 'Requests of which a provider cut off a part.', labels: ['model'] },
  toolCalls: { type: 'counter', name: 'treadle_tool_calls_total', help: 'Tool calls: ok, error, unknown, denied, cancelled, deduplicated.', labels: ['tool', 'outcome'] },
  toolDuration: { type: 'histogram', name: 'treadle_tool_duration_seconds', help: 'Duration of tool calls.', labels: ['tool'], buckets: longBuckets },
  commitsFenced: { type: 'counter', name: 'treadle_commits_fenced_total', help: 'Writes refused because a newer claim exists.', labels: [] },
  turnsRedelivered: { type: 'counter', name: 'treadle_turns_redelivered_total', help: 'Turns begun again after a delivery that did not finish.', labels: [] },
  eventAppend: { type: 'histogram', name: 'treadle_event_append_seconds', help: 'From sending events to their durable acceptance.', labels: [], buckets: shortBuckets },
  archiveLag: { type: 'gauge', name: 'treadle_archive_lag_seconds', help: 'Age of the oldest event that is not in the archive.', labels: [] },
  archiveBacklog: { type: 'gauge', name: 'treadle_archive_backlog_events', help: 'Events that are not in the archive.', labels: [] },
  archiveSegments: { type: 'counter', name: 'treadle_archive_segments_total', help: 'Segments written (ok), made of others (merged), or not written (failed).', labels: ['outcome'] },
  replayAudits: { type: 'counter', name: 'treadle_replay_audits_total', help: 'Archived logs of ended runs that were folded again: identical, different, failed.', labels: ['result'] },
  sseClients: { type: 'gauge', name: 'treadle_sse_clients', help: 'Open event streams.', labels: [] },
  eventLoopLag: { type: 'gauge', name: 'treadle_event_loop_lag_seconds', help: 'Event loop delay, 99th percentile of the last 5 s.', labels: [] },
} as const satisfies Record<string, MetricDefinition>;
