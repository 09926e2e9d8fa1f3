/**
 * Asks a model for one reply, showing its text as it comes.
 */
import { modelRequest, type ModelSpec, type TurnInput } from '@treadle/core';
import type { TurnDeps, TurnTimer } from './execute-turn.ts';
import type { RunHold } from './hold.ts';
import type { ModelOutcome } from './ports/model-gateway.ts';

export interface ModelTurn { readonly hold: RunHold; readonly model: ModelSpec; readonly timer: TurnTimer }

/** What came of it, as the next input of `decide`. Never throws for what a model does. */
export async function callModel(deps: TurnDeps, { hold, model, timer }: ModelTurn): Promise<TurnInput> {
  const text = deps.increments.open(hold);
  try {
    const request = modelRequest(hold.state, model);
    const outcome = await deps.models.call({ request, signal: hold.signal, onText: (increment) => text.add(increment) }).catch(brokenGateway);
    const shown_text = await text.close();
    const elapsed_s = timer.elapsedS;
    if (outcome.type === 'replied' && hold.timedOut === null) {
      return { type: 'model_replied', reply: outcome.reply, shown_text, elapsed_s, commands: [] };
    }
    const failure = outcome.type === 'failed' ? outcome.failure : lateReply(outcome.reply.text);
    return { type: 'model_failed', failure, elapsed_s, timed_out: hold.timedOut, jitter: deps.random.jitter(), commands: [] };
  } finally {
    await text.close();
  }
}

/** A gateway that throws breaks its own promise (M1); the run still gets a named failure. */
function brokenGateway(error: unknown): ModelOutcome {
  const detail = error instanceof Error ? error.message : String(error);
  return { type: 'failed', failure: { error_type: 'unknown', detail, retry_after_s: null, partial_text: '', usage: null } };
}

function lateReply(partial_text: string) {
  return { error_type: 'timeout', detail: 'the reply came after the time limit of the turn', retry_after_s: null, partial_text, usage: null } as const;
}
