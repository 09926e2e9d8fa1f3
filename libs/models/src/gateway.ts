/**
 * The gateway of the models: finds the provider and the connection of a request's model, chooses a key, puts the watchdogs round the
 * call, names what came out, and charges it to the model and the key. Promises M1 to M5 of the port.
 *
 * Owns: the connections kept alive by its own fetch, until `close`. Nothing of one call outlives it.
 */
import { randomUUID } from 'node:crypto';
import { costOf, own, type ErrorType, type ModelFailure, type ModelPrice, type ModelSpec, type Usage } from '@treadle/core';
import type { Clock, ModelCall, ModelFleet, ModelGateway, ModelOutcome, OpenBreaker, Rates } from '@treadle/engine';
import { redact, secretsOf } from './failure/redact.ts';
import type { AllowanceOptions } from './health/allowance.ts';
import type { Allowed } from './health/allowances.ts';
import type { BreakerOptions, OnTransition } from './health/breakers.ts';
import { noRates, type CredentialStrategy } from './health/credentials.ts';
import { ModelHealth, type HeldPermit } from './health/model-health.ts';
import { createHttpFetch } from './http/http-fetch.ts';
import { withSmallerImages } from './shrink-images.ts';
import type { ModelConnection, Provider, ProviderFailure, ProviderOutcome, ProviderRegistry, Served } from './provider.ts';
import { builtInProviders } from './providers/registry.ts';
import { createWatch, verdictText, type Verdict } from './watch.ts';

/** How a model is reached, and with which keys; `api_key` is the only one where there is no pool. */
export interface PooledConnection extends ModelConnection {
  /** Part of what makes a key the same key. */
  readonly provider?: string;
  readonly credentials?: readonly string[];
  readonly credential_strategy?: CredentialStrategy;
  /** Of each key, for the whole fleet. */
  readonly rates?: Rates;
}

export interface ModelGatewayOptions {
  /** By the model's configured name (`ModelSpec.name`). */
  readonly connections: Readonly<Record<string, PooledConnection>>;
  /** What the processes know together. Default: this one alone. */
  readonly fleet?: ModelFleet;
  readonly breakers?: Partial<BreakerOptions>;
  /** How many calls one model may have in flight here. Default: as many as are asked for. */
  readonly allowances?: AllowanceOptions;
  readonly onTransition?: OnTransition;
  /** US dollars per million tokens, by the model's configured name; default: free. */
  readonly prices?: Readonly<Record<string, ModelPrice>>;
  /** What must never be shown, of whatever else: a server may echo what it was given in an address, or what another one was given. */
  readonly secrets?: readonly string[];
  /** Default: all that are built in. */
  readonly providers?: ProviderRegistry;
  /** Must honour the signal and cover reading the body with it. Default: one over `node:http` with kept-alive connections. */
  readonly fetch?: typeof fetch;
  /** The fleet's clock; default the machine's. */
  readonly clock?: Pick<Clock, 'nowMs'>;
}

export interface ClosableModelGateway extends ModelGateway {
  /** What a model's server says of it, within a few seconds: for those who set things up. */
  served(model: Pick<ModelSpec, 'name' | 'provider' | 'model'>): Promise<Served>;
  /** Tells the fleet what was seen here, and learns what it knows: once a second or so. Never throws. */
  exchange(): Promise<void>;
  openBreakers(): readonly OpenBreaker[];
  /** Of the models that were asked here: calls in flight, and how many may be. */
  allowed(): readonly Allowed[];
  /** Lets go of idle connections. Calls in flight go on. */
  close(): void;
}

export function createModelGateway(options: ModelGatewayOptions): ClosableModelGateway {
  const providers = options.providers ?? builtInProviders;
  const http = createHttpFetch();
  const fetch = options.fetch ?? http.fetch;
  const nowMs = options.clock === undefined ? () => Date.now() : options.clock.nowMs.bind(options.clock);

  const health = healthOf(options, nowMs);

  async function call(asked: ModelCall): Promise<ModelOutcome> {
    const { name } = asked.request.model;
    const permit = await permitFor(asked);
    if (!('settle' in permit)) return permit;
    const outcome = await route(asked, permit).catch((error: unknown) => { permit.release(); throw error; });
    permit.settle(outcome);
    return outcome.type === 'failed' && health.otherKey(name) ? { ...outcome, failure: { ...outcome.failure, other_key: true } } : outcome;
  }

  /** What the rates have no room for fails as if the provider had said so, without asking it. */
  async function permitFor({ request, permit }: ModelCall): Promise<HeldPermit | ModelOutcome> {
    if (permit !== undefined && 'settle' in permit) return permit as HeldPermit;
    const granted = await health.grant(request.model.name, '', request.model.max_output_tokens + JSON.stringify(request.messages).length / 4);
    if (granted.type === 'granted') return granted.permit;
    const { type, failure: full } = failed('rate_limited', `the rates configured for a key of the model "${request.model.name}" have no room now`);
    return { type, failure: { ...full, retry_after_s: granted.wait_ms / 1000 } };
  }

  async function route(call: ModelCall, { credential }: HeldPermit): Promise<ModelOutcome> {
    const { name, provider: providerName } = call.request.model;
    const pooled = Object.hasOwn(options.connections, name) ? options.connections[name] : undefined;
    if (pooled === undefined) return failed('model_not_found', `no connection is configured for the model "${name}"`);
    const provider = Object.hasOwn(providers, providerName) ? providers[providerName] : undefined;
    if (provider === undefined) return failed('model_not_found', `the model "${name}" names the provider "${providerName}", which is not there`);
    const connection = withKey(pooled, credential.key);
    return priced(await watched(call, connection, provider), own(options.prices, name));
  }

  async function watched(call: ModelCall, connection: ModelConnection, provider: Provider): Promise<ModelOutcome> {
    const watch = createWatch(connection, call.signal);
    let shown = '';
    const onText = (increment: string): void => {
      if (increment === '' || watch.verdict() !== null) return;
      shown += increment;
      call.onText(increment);
    };
    try {
      const early = watch.verdict();
      if (early !== null) return failure(named(early), { partial: '', secrets: secretsOf(connection, options.secrets) });
      const outcome = await settled(provider.call({
        request: await withSmallerImages(call.request), connection, signal: watch.signal, onText, onProgress: watch.progress, fetch, nowMs,
      }));
      const verdict = watch.verdict();
      // A reply that is whole is worth more than the limit it met in the same moment; a caller that has gone wants neither.
      if (outcome.type === 'replied' && verdict?.type !== 'aborted') return outcome;
      const usage = outcome.type === 'replied' ? outcome.reply.usage : outcome.failure.usage;
      const cause = verdict !== null ? { ...named(verdict), usage } : outcome.type === 'failed' ? outcome.failure : null;
      return cause === null ? outcome as ModelOutcome : failure(cause, { partial: shown, secrets: secretsOf(connection, options.secrets) });
    } finally {
      watch.close();
    }
  }

  async function served({ name, provider, model }: Pick<ModelSpec, 'name' | 'provider' | 'model'>): Promise<Served> {
    const pooled = Object.hasOwn(options.connections, name) ? options.connections[name] : undefined;
    const connection = pooled === undefined ? undefined : withKey(pooled, pooled.api_key ?? pooled.credentials?.[0]);
    const asked = Object.hasOwn(providers, provider) ? providers[provider] : undefined;
    if (connection === undefined || asked?.served === undefined) return { type: 'untold' };
    const answer = await asked.served({ model, connection, fetch, nowMs, signal: AbortSignal.timeout(servedTimeoutMs) });
    if (answer.type !== 'failed') return answer;
    return { type: 'failed', failure: { ...answer.failure, detail: redact(answer.failure.detail, secretsOf(connection, options.secrets)) } };
  }

  return {
    call, served, admit: (asking) => health.admit(asking), crowdedMs: (asking) => health.crowdedMs(asking), unavailable: (models) => health.unavailable(models), exchange: () => health.exchange(),
    openBreakers: () => health.openBreakers(), allowed: () => health.allowed(),
    close: () => { health.close(); http.close(); },
  };
}

function healthOf(options: ModelGatewayOptions, nowMs: () => number): ModelHealth {
  return new ModelHealth({
    fleet: options.fleet, nowMs, uuid: randomUUID, breakers: options.breakers, allowances: options.allowances, onTransition: options.onTransition,
    models: Object.entries(options.connections).map(([name, { base_url, provider = '', api_key, credentials, credential_strategy = 'fill_first', rates = noRates }]) => (
      { name, provider, base_url, keys: credentials ?? (api_key === undefined ? [] : [api_key]), strategy: credential_strategy, rates })),
  });
}

/** What a provider is given: one key, and of the others only enough to keep them out of what is said. */
function withKey({ provider: _, credentials, credential_strategy: __, rates: ___, api_key, ...connection }: PooledConnection, key: string | undefined): ModelConnection {
  const others = [...credentials ?? [], ...(api_key === undefined ? [] : [api_key])].filter((each) => each !== key);
  return { ...connection, ...(key === undefined ? {} : { api_key: key }), ...(others.length === 0 ? {} : { other_keys: others }) };
}

const servedTimeoutMs = 5000;

/** Tokens that a failed call has cost are paid for, too. */
function priced(outcome: ModelOutcome, price: ModelPrice | undefined): ModelOutcome {
  if (price === undefined) return outcome;
  const cost = (usage: Usage): Usage => ({ ...usage, cost_usd: costOf(usage, price) });
  if (outcome.type === 'replied') return { ...outcome, reply: { ...outcome.reply, usage: cost(outcome.reply.usage) } };
  const { failure } = outcome;
  return { ...outcome, failure: { ...failure, usage: failure.usage === null ? null : cost(failure.usage) } };
}

/** A provider that throws has a bug; the run must not pay for it with its worker (M1). */
async function settled(outcome: Promise<ProviderOutcome>): Promise<ProviderOutcome> {
  try {
    return await outcome;
  } catch (error) {
    const detail = `the provider's adapter failed: ${error instanceof Error ? error.message : String(error)}`;
    return { type: 'failed', failure: { error_type: 'unknown', detail, retry_after_s: null, usage: null } };
  }
}

function named(verdict: Verdict): ProviderFailure {
  return { error_type: verdict.type, detail: verdictText(verdict), retry_after_s: null, usage: null };
}

function failure(cause: ProviderFailure, context: { readonly partial: string; readonly secrets: readonly string[] }): ModelOutcome {
  const detail = redact(cause.detail, context.secrets);
  const { error_type, retry_after_s, usage, output_cap, feature } = cause;
  const failure: ModelFailure = { error_type, detail, retry_after_s, partial_text: context.partial, usage, ...(output_cap === undefined ? {} : { output_cap }), ...(feature === undefined ? {} : { feature }) };
  return { type: 'failed', failure };
}

function failed(error_type: ErrorType, detail: string): Extract<ModelOutcome, { type: 'failed' }> {
  return { type: 'failed', failure: { error_type, detail, retry_after_s: null, partial_text: '', usage: null } };
}
