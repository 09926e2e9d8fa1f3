/**
 * Asks a model for one reply, showing its text as it comes.
 */
import { modelRequest, noJudgement, specOf, type Effect, type ModelReply, type ModelSpec, type TurnInput } from '@treadle/core';
import type { TurnDeps, TurnTimer } from './execute-turn.ts';
import type { RunHold } from './hold.ts';
import { withImages } from './load-images.ts';
import type { ModelCall, ModelOutcome, Permit } from './ports/model-gateway.ts';
import { traced } from './ports/tracer.ts';

export interface ModelTurn {
  readonly hold: RunHold;
  readonly model: ModelSpec;
  readonly timer: TurnTimer;
  /** Leave to ask, where it was given for this very model. */
  readonly permit: Permit | null;
}

/** What came of it, as the next input of `decide`. Never throws for what a model does. */
export async function callModel(deps: TurnDeps, { hold, model, timer, permit }: ModelTurn): Promise<TurnInput> {
  const text = deps.increments.open(hold);
  try {
    const request = await withImages(deps.archive, hold.claim.run_id, modelRequest(hold.state, model));
    const outcome = await ask(deps, { hold, purpose: 'reply' }, { request, signal: hold.signal, onText: (increment) => text.add(increment), ...(permit === null ? {} : { permit }) });
    const shown_text = await text.close();
    const elapsed_s = timer.elapsedS;
    if (outcome.type === 'replied' && hold.timedOut === null) {
      return { type: 'model_replied', ...modelsTold(deps, hold), reply: outcome.reply, judgement: noJudgement, shown_text, elapsed_s, commands: [] };
    }
    if (outcome.type === 'failed' && outcome.failure.error_type === 'aborted' && hold.timedOut === null) deps.onAborted?.(model.name, hold.state);
    const failure = outcome.type === 'failed' ? outcome.failure : lateReply(outcome.reply);
    return { type: 'model_failed', ...modelsTold(deps, hold), failure, elapsed_s, timed_out: hold.timedOut, jitter: deps.random.jitter(), commands: [] };
  } finally {
    await text.close();
  }
}

function ask(deps: TurnDeps, { hold, purpose }: { readonly hold: RunHold; readonly purpose: 'reply' | 'summary' }, call: ModelCall): Promise<ModelOutcome> {
  const span = hold.span.begin({ type: 'model_call', state: hold.state, request: call.request, purpose });
  return traced(span, () => deps.models.call(call).catch(brokenGateway), (outcome) => ({ type: 'model_call', outcome }));
}

/** What `decide` is told of the models that it may choose from. */
export function modelsTold({ models, clock, prices }: Pick<TurnDeps, 'models' | 'clock' | 'prices'>, hold: RunHold) {
  return { unavailable: models.unavailable(specOf(hold.state).chain.models), now_s: clock.nowMs() / 1000, prices };
}

export interface Summarising { readonly hold: RunHold; readonly effect: Extract<Effect, { type: 'summarise' }>; readonly timer: TurnTimer }

/**
 * Asks for a summary, without tools and unseen by clients. It has time of its own: the run's limit may be what is summed up.
 * Its failure is no failure of the run.
 */
export async function summarise(deps: TurnDeps, { hold, effect, timer }: Summarising): Promise<TurnInput> {
  const done = { type: 'summarised', purpose: effect.purpose, model: effect.model.name, commands: [] } as const;
  const ended = new AbortController();
  const onAbort = (): void => { if (hold.signal.reason !== 'time') ended.abort(); };
  hold.signal.addEventListener('abort', onAbort);
  if (hold.signal.aborted) onAbort();
  const bound = setTimeout(() => { ended.abort(); }, effect.timeout_s * 1000);
  try {
    const model = { ...effect.model, max_output_tokens: effect.max_output_tokens };
    const request = { model, system: '', messages: effect.messages, tools: [] };
    const outcome = await ask(deps, { hold, purpose: 'summary' }, { request, signal: ended.signal, onText: () => undefined });
    const [text, usage] = outcome.type === 'replied' ? [outcome.reply.text, outcome.reply.usage] : [null, outcome.failure.usage];
    return { ...done, ...modelsTold(deps, hold), text, usage, elapsed_s: timer.elapsedS };
  } finally {
    clearTimeout(bound);
    hold.signal.removeEventListener('abort', onAbort);
  }
}

/** A gateway that throws breaks its own promise (M1); the run still gets a named failure. */
function brokenGateway(error: unknown): ModelOutcome {
  const detail = error instanceof Error ? error.message : String(error);
  return { type: 'failed', failure: { error_type: 'unknown', detail, retry_after_s: null, partial_text: '', usage: null } };
}

function lateReply({ text: partial_text, usage }: ModelReply) {
  return { error_type: 'timeout', detail: 'the reply came after the time limit of the turn', retry_after_s: null, partial_text, usage } as const;
}
