/**
 * Asking a model: the transcript is mended and made to fit first, in the same turn.
 */
import { compactionLevels, fitFor, planLevel, summaryOf, type Fit } from './compaction.ts';
import { lookAhead } from './codec.ts';
import { chooseLarger, chooseModel, type Choosing, type Skipped } from './choose-model.ts';
import { endRun } from './ending.ts';
import type { CompactionLevel, EventBody } from './events.ts';
import { park } from './pausing.ts';
import { repairOf } from './repair.ts';
import { estimateTokens } from './request.ts';
import { specOf, type RunState } from './state.ts';
import type { StopReason } from './stop-reason.ts';
import type { Decision, Prices } from './turn-input.ts';

export interface Asking extends Choosing {
  /** Levels of compaction before this one have been tried. */
  readonly from?: CompactionLevel;
  /** Seconds that this claim has used of a turn which is open. */
  readonly elapsed_s?: number;
}

/** `opening` are the turn's first events: they are left out where nobody can be asked, and the run waits without a turn. */
export function callModel(state: RunState, opening: readonly EventBody[], { unavailable, prices, from, elapsed_s = 0 }: Asking): Decision {
  const choice = chooseModel(state, { unavailable, prices });
  if (choice.type === 'wait') return park(state, [], { ...choice, elapsed_s });
  if (choice.type === 'none') return end(lookAhead(state, opening), opening, choice.budget ?? 'model_unavailable');
  return request({ ...state, position: choice.position }, opening, { skipped: choice.skipped, from, prices });
}

interface Requesting { readonly skipped: readonly Skipped[]; readonly from: CompactionLevel | undefined; readonly prices: Prices | undefined }

function request(state: RunState, opening: readonly EventBody[], { skipped, from, prices }: Requesting): Decision {
  const { chain } = specOf(state);
  const model = chain.models[state.position];
  const before = lookAhead(state, opening);
  if (model === undefined) return end(before, opening, 'model_unavailable');

  const events: EventBody[] = [...opening];
  const repair = repairOf(before.transcript.messages);
  if (repair !== null) {
    events.push({ type: 'history_repaired', generation: before.transcript.generation + 1, removed: repair.removed, replaced: [], problem: repair.problem });
  }
  const fitted = fit(lookAhead(state, events), from);
  events.push(...fitted.events);
  if (fitted.summarise !== null) return { events, effect: fitted.summarise };
  const now = lookAhead(state, events);
  // A request that was refused for its length is never sent again as it was.
  const unchanged = before.compact_next !== null && now.transcript.generation === before.transcript.generation;
  if (unchanged || estimateTokens(now, model.name) > model.context_window) return tooLarge(now, events, prices);
  events.push({
    type: 'model_request', model: model.name, provider: model.provider, chain: chain.name, position: state.position, canary: chain.canary?.model === model.name,
    skipped, estimated_tokens: estimateTokens(now, model.name), message_count: now.transcript.messages.length,
  });
  return { events, effect: { type: 'call_model', model } };
}

/** Nothing more can be left out: a model with a larger window, or the end. */
function tooLarge(state: RunState, events: readonly EventBody[], prices: Prices | undefined): Decision {
  const { models } = specOf(state).chain;
  const choice = chooseLarger(state, prices);
  const here = models[state.position];
  const larger = choice.type === 'model' ? models[choice.position] : undefined;
  if (larger === undefined || here === undefined || choice.type !== 'model') return end(state, events, choice.type === 'none' && choice.budget !== undefined ? choice.budget : 'context_exhausted');
  const hop: EventBody = {
    type: 'error', error_type: 'context_overflow', action: 'fallback', site: 'fallback_model', model: here.name, from_model: here.name, to_model: larger.name,
    detail: 'the conversation does not fit into the window of this model', retry_in: 0, consecutive_errors: state.consecutive_errors };
  return prefixed([...events, hop], request(lookAhead(state, [hop]), [], { skipped: choice.skipped, from: undefined, prices }));
}

function prefixed(events: readonly EventBody[], decision: Decision): Decision {
  return { ...decision, events: [...events, ...decision.events] };
}

function end(state: RunState, events: readonly EventBody[], reason: StopReason): Decision {
  return prefixed(events, endRun(state, reason, { elapsed_s: 0, turn_open: state.turn_open }));
}

interface Fitted { readonly events: readonly EventBody[]; readonly summarise: Decision['effect'] | null }

/** Goes through the levels until the request fits; a summary needs a model, so the decision stops there. */
function fit(state: RunState, from: CompactionLevel | undefined): Fitted {
  const model = specOf(state).chain.models[state.position];
  const wanted = model === undefined ? null : fitFor(state, model);
  const start = from ?? wanted?.from;
  if (model === undefined || wanted === null || start === undefined) return { events: [], summarise: null };
  const events: EventBody[] = [];
  for (const level of compactionLevels.slice(compactionLevels.indexOf(start))) {
    const now = lookAhead(state, events);
    if (estimateTokens(now, model.name) <= wanted.target) break;
    if (level === 'emergency_snip' && estimateTokens(now, model.name) <= wanted.enough) break;
    const summary = level === 'summary' ? summaryEffect(now, wanted) : null;
    if (summary !== null) return { events, summarise: summary };
    const event = level === 'summary' ? null : planLevel(now, model, level, wanted);
    if (event !== null) events.push(event);
  }
  return { events, summarise: null };
}

/** Seconds for a summary. */
const summaryTimeoutS = 60;

function summaryEffect(state: RunState, wanted: Fit): Decision['effect'] | null {
  const model = specOf(state).chain.models[state.position];
  const summary = model === undefined ? null : summaryOf(state, model);
  if (model === undefined || summary === null) return null;
  const max_output_tokens = Math.max(256, Math.min(model.max_output_tokens, Math.floor(model.context_window * 0.05)));
  return { type: 'summarise', purpose: { type: 'compaction', site: wanted.site }, model, messages: summary.messages, max_output_tokens, timeout_s: summaryTimeoutS };
}
