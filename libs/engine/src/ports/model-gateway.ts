/**
 * The port of the models: one reply from one model, or a named failure.
 *
 * M1  Never throws for what a provider does: that is a `failed` with one of the 25 reasons.
 * M2  `replied` only with the terminal marker seen; what a cut stream brought is `partial_text` at most.
 * M3  Never retries. Every call, stream and timer has ended when it answers, whatever the answer.
 * M4  The caller's abort gives `aborted`; its own watchdogs (first token, idle, total) give `timeout`.
 */
import type { ModelFailure, ModelReply, ModelRequest } from '@treadle/core';

export interface ModelCall {
  readonly request: ModelRequest;
  readonly signal: AbortSignal;
  /** Text as it comes; concatenated it is a prefix of the reply's text. */
  readonly onText: (increment: string) => void;
}

export type ModelOutcome =
  | { readonly type: 'replied'; readonly reply: ModelReply }
  | { readonly type: 'failed'; readonly failure: ModelFailure };

export interface ModelGateway {
  call(call: ModelCall): Promise<ModelOutcome>;
}
