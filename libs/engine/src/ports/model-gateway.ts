/**
 * The port of the models: one reply from one model, or a named failure.
 *
 * M1  Never throws for what a provider does: that is a `failed` with one of the 25 reasons.
 * M2  `replied` only with the terminal marker seen; what a cut stream brought is `partial_text` at most.
 * M3  Never retries. Every call, stream and timer has ended when it answers, whatever the answer.
 * M4  The caller's abort gives `aborted`; its own watchdogs (first token, idle, total) give `timeout`.
 * M5  `admit` never throws and never waits for longer than a second: what cannot be found out does not stand in the way.
 */
import type { ModelFailure, ModelReply, ModelRequest, ModelSpec, Unavailable } from '@treadle/core';

export interface ModelCall {
  readonly request: ModelRequest;
  readonly signal: AbortSignal;
  /** Text as it comes; concatenated it is a prefix of the reply's text. */
  readonly onText: (increment: string) => void;
  /** Without one, the call sees for itself whether there is room for it. */
  readonly permit?: Permit;
}

export type ModelOutcome =
  | { readonly type: 'replied'; readonly reply: ModelReply }
  | { readonly type: 'failed'; readonly failure: ModelFailure };

/** Leave to send one request to one model: room in the rates of its key, and where its breaker is half open, the probe. */
export interface Permit {
  /** The model's name in the configuration. */
  readonly model: string;
  /** Gives it back unused. Of one that was used, nothing happens. */
  release(): void;
}

export interface Asking {
  readonly run_id: string;
  /** Who may be asked, the preferred one first. */
  readonly models: readonly ModelSpec[];
  /** Estimated, of the request. */
  readonly tokens: number;
}

export interface Admission {
  readonly unavailable: readonly Unavailable[];
  /** For the first that is not away; null where all are, or where it has no room, or too many calls in flight. */
  readonly permit: Permit | null;
  /** Until that one has room, ms. */
  readonly room_ms: number;
}

export interface ModelGateway {
  call(call: ModelCall): Promise<ModelOutcome>;
  /** Who may be asked now, and the leave to ask the first of them. */
  admit(asking: Asking): Promise<Admission>;
  /**
   * Ms after which the run should come again, because the first of the models that is not away has as many calls in flight here as it may
   * have for now; 0: there is room, which only `admit` takes.
   */
  crowdedMs(asking: Pick<Asking, 'run_id' | 'models'>): number;
  /** Who of them is away, as far as is known here. */
  unavailable(models: readonly ModelSpec[]): readonly Unavailable[];
}
