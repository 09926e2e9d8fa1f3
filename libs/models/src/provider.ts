/**
 * The contract of a provider: one call of one model over one wire. A new provider is a folder under `providers/` and a line
 * in `providers/registry.ts`.
 *
 * P1  Answers `replied` only when the wire's terminal marker was seen; otherwise `failed`, named by its own classifier.
 * P2  Ends soon after `signal` aborts, with its stream and connection closed. Which clock or caller aborted is not its
 *     business: the gateway knows, and names it.
 * P3  Never retries, sleeps or reads the environment; keeps nothing between calls.
 * P4  Calls `onText` with whole characters only, so that the increments put together are the reply's text.
 */
import type { DroppableFeature, ErrorType, ModelReply, ModelRequest, Usage } from '@treadle/core';

/** Where a configured model is served, and how long it may take. Never part of a run's state. */
export interface ModelConnection {
  readonly base_url: string;
  /** Sent as a bearer token, or in the header that the wire has for it. Never appears in a failure's detail. */
  readonly api_key?: string;
  /** Never sent; they must not appear in a detail either. */
  readonly other_keys?: readonly string[];
  /** Until the first sign of a reply; covers a cold load of the model. */
  readonly first_token_timeout_ms: number;
  /** Between two signs. Ollama is silent while the model writes a tool call, so this also bounds that. */
  readonly idle_timeout_ms: number;
  readonly total_timeout_ms: number;
}

export interface ProviderCall {
  readonly request: ModelRequest;
  readonly connection: ModelConnection;
  readonly signal: AbortSignal;
  /** Text as it comes. */
  readonly onText: (increment: string) => void;
  /** Any sign of life of the reply itself; feeds the first-token and idle watchdogs. */
  readonly onProgress: () => void;
  readonly fetch: typeof fetch;
  /** Epoch milliseconds. */
  readonly nowMs: () => number;
}

/** What went wrong, before the gateway adds the text that had come and takes out secrets. */
export interface ProviderFailure {
  readonly error_type: ErrorType;
  readonly detail: string;
  /** Seconds. */
  readonly retry_after_s: number | null;
  readonly usage: Usage | null;
  /** See `ModelFailure`. */
  readonly output_cap?: number;
  /** See `ModelFailure`. */
  readonly feature?: DroppableFeature;
}

export type ProviderOutcome =
  | { readonly type: 'replied'; readonly reply: ModelReply }
  | { readonly type: 'failed'; readonly failure: ProviderFailure };

/** What no server answers well: most templates fail on it, Ollama only loads its model. */
export const noUserMessage: ProviderOutcome = {
  type: 'failed', failure: { error_type: 'history_invalid', detail: 'the request holds no user message', retry_after_s: null, usage: null },
};

export interface Provider {
  /** What a model's `provider` says. */
  readonly name: string;
  call(call: ProviderCall): Promise<ProviderOutcome>;
  /** What its server says of a model, without asking the model anything; absent where there is no server. Keeps P2 and P3. */
  served?(question: ServedQuestion): Promise<Served>;
}

export interface ServedQuestion extends Pick<ProviderCall, 'connection' | 'signal' | 'fetch' | 'nowMs'> {
  /** The provider's own name for it. */
  readonly model: string;
}

export type Served =
  | { readonly type: 'served' }
  /** `others`: what there is instead. */
  | { readonly type: 'not_served'; readonly others: readonly string[] }
  /** The server answers, and does not tell. */
  | { readonly type: 'untold' }
  | { readonly type: 'failed'; readonly failure: ProviderFailure };

/** Providers by name. */
export type ProviderRegistry = Readonly<Record<string, Provider>>;
