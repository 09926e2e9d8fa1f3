/**
 * What each event adds to the metrics. Called once per write, by the process whose commit it was, after the commit: an event
 * read from the log later must not be counted again.
 */
import { assertNever, asWaste, type CompactionLevel, type RecoveryAction, type RunEvent, type RunState, type UnusualOutcome, type Usage } from '@treadle/core';
import type { Metrics } from './metrics.ts';

/** What the event itself does not say. All of it comes from the run's pinned spec and state. */
export interface EventContext {
  readonly agent: string;
  readonly chain: string;
  /** The model that was asked last; null before the first request. */
  readonly model: string | null;
  /** Names of the chain's models. */
  readonly models: readonly string[];
  /** Names of the run's pinned tools; others are counted as `other`, since models invent names. */
  readonly tools: readonly string[];
  /** Tools of the turn's calls that an earlier delivery has recorded; null where the turn goes on after a pause or a wait, and none was lost. */
  readonly recorded: readonly string[] | null;
  /** When the run was accepted, seconds. */
  readonly created_at: number;
  /** A request failed in the same write: a turn that ends with it is a failed one. */
  readonly failed: boolean;
}

export interface Write { readonly events: readonly RunEvent[]; readonly before: RunState; readonly after: RunState }

/** What one write adds, all in all. */
export function observeWrite(metrics: Metrics, { events, before, after }: Write): void {
  const resumed = events.some((event) => event.type === 'state_change' && event.new === 'running');
  const context: EventContext = {
    agent: after.agent, chain: after.spec?.chain.name ?? '', model: after.model, models: (after.spec?.chain.models ?? []).map((model) => model.name),
    tools: (after.tools ?? []).map((tool) => tool.name), recorded: resumed ? null : before.calls.filter((call) => call.settled).map((call) => call.tool_name),
    created_at: after.created_at, failed: events.some((event) => event.type === 'error'),
  };
  for (const event of events) observeEvent(metrics, event, context);
}

type EventOf<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>;

/** Exhaustive: a new event type without an answer here does not compile. */
export function observeEvent(metrics: Metrics, event: RunEvent, context: EventContext): void {
  const { agent } = context;
  switch (event.type) {
    case 'run_created': return metrics.runsCreated.inc({ agent: event.agent });
    // A sub-agent is created by the worker that has the run which starts it.
    case 'child_run': return event.status === 'queued' ? metrics.runsCreated.inc({ agent: event.agent }) : undefined;
    case 'turn_start': return event.attempt > 1 ? observeRedelivery(metrics, context) : undefined;
    case 'model_request': return observeRequest(metrics, event, context);
    case 'assistant_text': return event.usage === undefined ? undefined : observeReply(metrics, event.usage, context);
    case 'tool_use': return event.usage === undefined ? undefined : observeReply(metrics, event.usage, context);
    case 'tool_result': return observeToolResult(metrics, event, context);
    case 'error': return observeError(metrics, event, context);
    case 'turn_end':
      metrics.turns.inc({ agent, outcome: 'ended' });
      return context.failed ? metrics.turnFailure.observe(event.duration) : metrics.turnDuration.observe({ agent }, event.duration);
    case 'run_end':
      metrics.runLifetime.observe({ status: event.status }, Math.max(0, event.ts - context.created_at));
      return metrics.runsEnded.inc({ agent, status: event.status, stop_reason: event.stop_reason });
    // Nothing is counted by these: their effects are, by other events.
    case 'user_message': case 'state_change': case 'assistant_thinking': case 'tools_changed': case 'steer':
    case 'final_response': case 'history_repaired': case 'run_updated': case 'image_removed': case 'session_history': case 'outcome_resolved':
    case 'approval_requested': case 'approval_resolved': return;
    case 'validation_error': return metrics.validationErrors.inc({ validator: event.validator_name, error_type: metrics.words.known(event.error_type) });
    case 'max_iterations': return event.usage === undefined ? undefined : observeReply(metrics, event.usage, byModel(context, event.model));
    case 'compaction':
      metrics.recoveries.inc({ site: event.site, action: compactionActions[event.level] });
      return event.usage === undefined ? undefined : observeReply(metrics, event.usage, byModel(context, event.model));
    case 'stop_hook': return event.prompt === '' || event.decision === 'skipped' ? undefined : metrics.recoveries.inc({ site: 'stop_hook', action: 'extra_turn' });
    case 'context_truncated': return metrics.contextTruncated.inc({ model: event.model });
    default: return assertNever(event);
  }
}

function observeRedelivery(metrics: Metrics, { recorded, tools }: EventContext): void {
  if (recorded === null) return;
  metrics.turnsRedelivered.inc();
  for (const name of recorded) {
    const tool = toolLabel(metrics, tools, name);
    metrics.toolDeduplicated.inc({ tool });
    metrics.toolCalls.inc({ tool, outcome: 'deduplicated' });
  }
}

function observeRequest(metrics: Metrics, event: EventOf<'model_request'>, { models }: EventContext): void {
  for (const model of models) metrics.chainActiveModel.set({ chain: event.chain, model }, model === event.model ? 1 : 0);
  for (const { model } of event.skipped) metrics.modelRequests.inc({ chain: event.chain, model, outcome: 'skipped', error_type: 'none' });
}

/** Of a request that was aborted: mostly no event tells of it. */
export function observeAborted(metrics: Metrics, { chain, model }: { readonly chain: string; readonly model: string }): void {
  metrics.modelRequests.inc({ chain, model, outcome: 'aborted', error_type: 'aborted' });
}

/** The first event of a reply carries its usage, so it stands for the reply. */
function observeReply(metrics: Metrics, usage: Usage, { chain, model }: EventContext): void {
  const name = model ?? 'other';
  metrics.modelRequests.inc({ chain, model: name, outcome: 'replied', error_type: 'none' });
  observeUsage(metrics, usage, name);
}

/** A summary may have been made by another model than the one which the turns go to; older events do not say. */
function byModel(context: EventContext, model: string | undefined): EventContext {
  return model === undefined ? context : { ...context, model };
}

function observeError(metrics: Metrics, event: EventOf<'error'>, { chain }: EventContext): void {
  const { error_type, model, site, action, from_model, to_model } = event;
  // What was aborted was counted when it was.
  if (error_type !== 'aborted') metrics.modelRequests.inc({ chain, model, outcome: 'failed', error_type });
  if (action !== 'fail') metrics.recoveries.inc({ site: site ?? 'none', action });
  if (from_model !== undefined && to_model !== undefined) metrics.modelFallbacks.inc({ chain, from_model, to_model, error_type });
  if (event.usage !== undefined) observeUsage(metrics, asWaste(event.usage), model);
}

function observeUsage(metrics: Metrics, usage: Usage, model: string): void {
  const directions = { input: usage.input_tokens, output: usage.output_tokens, cached: usage.cached_tokens, wasted: usage.wasted_tokens };
  for (const [direction, tokens] of Object.entries(directions)) if (tokens > 0) metrics.modelTokens.inc({ model, direction }, tokens);
  if (usage.cost_usd > 0) metrics.modelCost.inc({ model }, usage.cost_usd);
}

const compactionActions: Record<CompactionLevel, RecoveryAction> = {
  results: 'compact', images: 'compact', summary: 'compact', snip: 'aggressive_snip', emergency_snip: 'emergency_snip',
};

function toolLabel(metrics: Metrics, tools: readonly string[], name: string): string {
  return tools.includes(name) ? metrics.toolNames.known(name) : 'other';
}

const outcomeLabels: Record<UnusualOutcome, string> = { unknown: 'unknown', not_started: 'cancelled', cancelled: 'cancelled', denied: 'denied' };

function observeToolResult(metrics: Metrics, event: EventOf<'tool_result'>, { tools }: EventContext): void {
  const tool = toolLabel(metrics, tools, event.tool_name);
  const outcome = event.outcome === undefined ? (event.is_error ? 'error' : 'ok') : outcomeLabels[event.outcome];
  metrics.toolCalls.inc({ tool, outcome });
  metrics.toolDuration.observe({ tool }, event.duration);
}
