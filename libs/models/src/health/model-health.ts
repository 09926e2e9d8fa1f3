/**
 * Who may be asked now. Knows breakers, benches and rates of the models that are configured here, as the fleet knows them, and gives
 * leave to ask: a permit. What a call came to is told here, and to the fleet.
 *
 * Owns: the breakers, the benches known here, the permits not released yet, who is in flight (allowances.ts). Nothing of it outlives the process; the fleet keeps what matters.
 *
 * H1  Never throws and never stands in the way: where the fleet cannot be asked, it goes by what is known here (M5).
 * H2  A probe, and a place in flight, are let go when the call is over, or run out with the process that held them.
 * H3  Failures are charged to the model and the key that gave them.
 */
import type { ErrorType, ModelFailure, ModelSpec, Unavailable } from '@treadle/core';
import type { Admission, Asking, Bench, ModelFleet, ModelOutcome, OpenBreaker, Permit, Rates } from '@treadle/engine';
import type { AllowanceOptions } from './allowance.ts';
import { Allowances, type Allowed, type Place } from './allowances.ts';
import { Breakers, defaultBreakerOptions, type BreakerOptions, type OnTransition, type Probe } from './breakers.ts';
import { benchMs, benchTime } from './bench-times.ts';
import { CredentialPool, noRates, type Credential, type CredentialStrategy } from './credentials.ts';
import { meteredBy, targetsOf, type Targets } from './targets.ts';

/** A model as it is reached here. */
export interface Reached {
  readonly name: string;
  readonly provider: string;
  readonly base_url: string;
  readonly keys: readonly string[];
  readonly strategy: CredentialStrategy;
  /** Of each key. */
  readonly rates: Rates;
}

export interface ModelHealthOptions {
  readonly models: readonly Reached[];
  /** Absent: this process alone. */
  readonly fleet?: ModelFleet | undefined;
  readonly nowMs: () => number;
  readonly uuid: () => string;
  readonly breakers?: Partial<BreakerOptions> | undefined;
  /** Absent: no model is held back. */
  readonly allowances?: AllowanceOptions | undefined;
  readonly onTransition?: OnTransition | undefined;
}

/** Leave to make one call, with the key it is for. */
export interface HeldPermit extends Permit {
  readonly credential: Credential;
  /** The call is over. */
  settle(outcome: ModelOutcome): void;
}

/** How long a probe or a place in flight is believed in without a word; renewed at a third of it. */
const leaseMs = 15_000;
/** When to look again at what somebody else probes. */
const lookAgainMs = 2000;
/** When to look again at what a person has opened. */
const forcedMs = 30_000;

const unlimited: AllowanceOptions = { slots: Number.MAX_SAFE_INTEGER, share: 1 };

interface Known extends Reached { readonly pool: CredentialPool; readonly targets: Targets }

interface Granting { readonly name: string; readonly model: Known | undefined; readonly credential: Credential; readonly probes: readonly Probe[]; readonly id: string | null; readonly place: Place }
type Granted = { readonly type: 'granted'; readonly permit: HeldPermit } | { readonly type: 'wait'; readonly wait_ms: number };

export class ModelHealth {
  readonly #options: ModelHealthOptions;
  readonly #models: ReadonlyMap<string, Known>;
  readonly #breakers: Breakers;
  readonly #allowances: Allowances;
  readonly #benches = new Map<string, Bench>();
  /** Benches that the fleet knew of; one of them that it knows no more was taken back by somebody. */
  #told: ReadonlySet<string> = new Set();
  /** By breaker: the token of the probe that is under way here. */
  readonly #probing = new Map<string, string>();
  #exchanging: Promise<void> | null = null;

  constructor(options: ModelHealthOptions) {
    this.#options = options;
    const breakers = { ...defaultBreakerOptions, ...options.breakers };
    this.#breakers = new Breakers({ fleet: options.fleet ?? null, nowMs: options.nowMs, onTransition: options.onTransition ?? (() => undefined) }, breakers);
    this.#allowances = new Allowances({ ...options.allowances ?? unlimited, nowMs: options.nowMs, volume: breakers.volume });
    this.#models = new Map(options.models.map((model) => [model.name, {
      ...model, targets: targetsOf(model.name, model.base_url),
      pool: new CredentialPool({ model_name: model.name, provider: model.provider, base_url: model.base_url, keys: model.keys, strategy: model.strategy }),
    }]));
  }

  /** Tells the fleet what was seen here, and learns what it knows. Never throws; one at a time. */
  exchange(): Promise<void> {
    this.#exchanging ??= this.#exchange().finally(() => { this.#exchanging = null; });
    return this.#exchanging;
  }

  openBreakers(): readonly OpenBreaker[] {
    return this.#breakers.all();
  }

  unavailable(models: readonly Pick<ModelSpec, 'name'>[]): readonly Unavailable[] {
    return models.flatMap(({ name }) => this.#away(name) ?? []);
  }

  async admit({ run_id, models, tokens }: Asking): Promise<Admission> {
    const unavailable: Unavailable[] = [];
    let first: Granted | 'crowded' | null = null;
    for (const { name } of models) {
      const away = this.#away(name);
      if (away !== null) unavailable.push(away);
      else if (first === null) {
        const place = this.#allowances.take(name, run_id);
        const probes = place === null ? [] : await this.#takeProbes(name);
        if (place === null) first = 'crowded';
        else if (probes !== null) first = await this.#grant({ name, run_id, tokens, probes, place });
        else {
          place.leave(null);
          unavailable.push(this.#waiting(name, 'breaker_open', lookAgainMs));
        }
      }
    }
    if (first === null || first === 'crowded') return { unavailable, permit: null, room_ms: 0 };
    return first.type === 'granted' ? { unavailable, permit: first.permit, room_ms: 0 } : { unavailable, permit: null, room_ms: first.wait_ms };
  }

  crowdedMs({ run_id, models }: Pick<Asking, 'run_id'> & { readonly models: readonly Pick<ModelSpec, 'name'>[] }): number {
    const first = models.find(({ name }) => this.#away(name) === null);
    return first === undefined || !this.#models.has(first.name) ? 0 : this.#allowances.crowdedMs(first.name, run_id);
  }

  /** Of the models that were asked here: calls in flight, and how many may be. */
  allowed(): readonly Allowed[] {
    return this.#allowances.all();
  }

  /** For a call that nobody was asked about: a summary, a hop within a turn. It probes nothing; its rates hold all the same. */
  grant(name: string, run_id: string, tokens: number): Promise<Granted> {
    return this.#grant({ name, run_id, tokens, probes: [], place: this.#allowances.enter(name) });
  }

  close(): void {
    this.#breakers.close();
  }

  async #exchange(): Promise<void> {
    const { fleet } = this.#options;
    if (fleet === undefined) return;
    const view = await fleet.exchange(this.#breakers.takeSeen()).catch(() => null);
    if (view === null) return;
    this.#breakers.learn(view.outcomes, view.breakers);
    const now = this.#options.nowMs();
    for (const { target, until_ms } of [...this.#benches.values()]) if (until_ms <= now) this.#benches.delete(target);
    const known = new Set(view.benches.map(({ target }) => target));
    for (const target of this.#told) if (!known.has(target)) this.#benches.delete(target);
    for (const bench of view.benches) this.#benches.set(bench.target, bench);
    this.#told = known;
  }

  #benched(target: string): Bench | null {
    const bench = this.#benches.get(target);
    return bench !== undefined && bench.until_ms > this.#options.nowMs() ? bench : null;
  }

  #away(name: string): Unavailable | null {
    const model = this.#models.get(name);
    if (model === undefined) return null;
    const ownBench = this.#benched(model.targets.model);
    if (ownBench !== null) return this.#onBench(name, 'model_benched', [ownBench]);
    const benches = model.pool.credentials.map(({ target }) => this.#benched(target));
    if (benches.every((bench) => bench !== null)) return this.#onBench(name, 'credential_benched', benches);
    const now = this.#options.nowMs();
    const waits = this.#breakers.openFor(model.targets).map(({ forced, probe_at_ms }) => (forced ? forcedMs : probe_at_ms - now));
    const longest = Math.max(0, ...waits);
    return longest > 0 ? this.#waiting(name, 'breaker_open', longest) : null;
  }

  #onBench(model: string, why: Unavailable['why'], benches: readonly Bench[]): Unavailable {
    const waits = benches.filter(({ reason }) => benchTime(reason)?.waitable).map(({ until_ms }) => until_ms - this.#options.nowMs());
    return waits.length === 0 ? { model, why, wait: null } : this.#waiting(model, why, Math.min(...waits));
  }

  #waiting(model: string, why: Unavailable['why'], ms: number): Unavailable {
    const wait_ms = Math.ceil(ms);
    return { model, why, wait: { wait_ms, until_s: (this.#options.nowMs() + wait_ms) / 1000 } };
  }

  /** Null where somebody else probes. */
  async #takeProbes(name: string): Promise<readonly Probe[] | null> {
    const model = this.#models.get(name);
    const open = model === undefined ? [] : this.#breakers.openFor(model.targets);
    const taken: Probe[] = [];
    for (const breaker of open) {
      const token = this.#options.uuid();
      const mine = this.#options.fleet === undefined ? this.#probing.get(breaker.id) === undefined : await this.#options.fleet.takeProbe(breaker.id, token, leaseMs).catch(() => true);
      if (!mine) {
        for (const probe of taken) this.#dropProbe(probe);
        return null;
      }
      this.#probing.set(breaker.id, token);
      taken.push({ breaker, token });
      this.#options.onTransition?.(breaker, 'half_open');
    }
    return taken;
  }

  #dropProbe({ breaker, token }: Probe): void {
    if (this.#probing.get(breaker.id) === token) this.#probing.delete(breaker.id);
    this.#options.fleet?.dropProbe(breaker.id, token).catch(() => undefined);
  }

  async #grant(wanted: { readonly name: string; readonly run_id: string; readonly tokens: number; readonly probes: readonly Probe[]; readonly place: Place }): Promise<Granted> {
    const { name, run_id, tokens, probes, place } = wanted;
    const { fleet, uuid } = this.#options;
    const model = this.#models.get(name);
    const rates = model?.rates ?? noRates;
    const limited = Object.values(rates).some((rate) => rate !== null);
    const credential = this.#choose(model, limited ? run_id : undefined);
    const id = limited && fleet !== undefined ? uuid() : null;
    if (id !== null && fleet !== undefined) {
      const reply = await fleet.reserve({ id, target: credential.target, rates, tokens, run_id, lease_ms: leaseMs }).catch(() => null);
      if (reply?.type === 'wait') {
        for (const probe of probes) this.#dropProbe(probe);
        place.leave(null);
        return reply;
      }
    }
    return { type: 'granted', permit: this.#permit({ name, model, credential, probes, id, place }) };
  }

  /** A run that was told to wait for a key comes back to that key, in whatever process. */
  #choose(model: Known | undefined, run_id: string | undefined): Credential {
    if (model === undefined) return { key: undefined, target: '' };
    return model.pool.choose((target) => this.#benched(target) !== null, run_id) ?? model.pool.lastResort((target) => this.#benched(target)?.until_ms ?? 0);
  }

  #permit({ name, model, credential, probes, id, place }: Granting): HeldPermit {
    const { fleet } = this.#options;
    const renewing = probes.length === 0 && id === null ? undefined : setInterval(() => {
      for (const { breaker, token } of probes) fleet?.takeProbe(breaker.id, token, leaseMs).catch(() => undefined);
      if (id !== null) fleet?.renew(credential.target, id, leaseMs).catch(() => undefined);
    }, leaseMs / 3);
    renewing?.unref();
    let open = true;
    const end = (used: number, told: Promise<void>): void => {
      open = false;
      clearInterval(renewing);
      void told.then(() => { for (const probe of probes) this.#dropProbe(probe); });
      if (id !== null) fleet?.settle(credential.target, id, used).catch(() => undefined);
    };
    return {
      model: name, credential,
      release: () => {
        if (!open) return;
        place.leave(null);
        end(0, Promise.resolve());
      },
      settle: (outcome) => {
        if (!open) return;
        const count = place.leave(healthOf(outcome));
        end(tokensOf(outcome), model === undefined ? Promise.resolve() : this.#charge(model, credential, { outcome, count, probes }));
      },
    };
  }

  /** Settles when the fleet has been told what came of the probes. */
  #charge(model: Known, credential: Credential, { outcome, count, probes }: { readonly outcome: ModelOutcome; readonly count: number; readonly probes: readonly Probe[] }): Promise<void> {
    const came = healthOf(outcome);
    let told = Promise.resolve();
    if (came !== null) this.#breakers.record(model.targets, came, count);
    if (came === 'ok') {
      for (const target of [credential.target, model.targets.model]) this.#unbench(target);
      told = this.#breakers.probed(probes, 'ok');
    } else if (came !== null) told = this.#breakers.probed(probes, 'failed');
    if (outcome.type === 'failed') this.#bench(model, credential, outcome.failure);
    if (outcome.type === 'failed' || probes.length > 0) void this.exchange();
    return told;
  }

  #bench(model: Known, credential: Credential, failure: ModelFailure): void {
    const ms = benchMs(failure, { otherKeys: model.pool.credentials.length > 1 });
    const time = benchTime(failure.error_type);
    if (ms <= 0 || time === null) return;
    const target = time.whom === 'model' ? model.targets.model : credential.target;
    this.#benches.set(target, { target, reason: failure.error_type, until_ms: this.#options.nowMs() + ms });
    this.#options.fleet?.bench({ target, reason: failure.error_type, for_ms: ms }).catch(() => undefined);
  }

  #unbench(target: string): void {
    if (!this.#benches.delete(target)) return;
    this.#options.fleet?.unbench(target).catch(() => undefined);
  }

  /** Whether the model has a key that is not benched now. */
  otherKey(name: string): boolean {
    const model = this.#models.get(name);
    return model !== undefined && model.pool.credentials.length > 1 && model.pool.credentials.some(({ target }) => this.#benched(target) === null);
  }
}

/** What an outcome says of the model's health; null: nothing. An empty reply is a failure, which the core names. */
function healthOf(outcome: ModelOutcome): 'ok' | ErrorType | null {
  if (outcome.type === 'replied') {
    const { text, calls, finish } = outcome.reply;
    return text.trim() === '' && calls.length === 0 && finish !== 'length' ? 'empty_response' : 'ok';
  }
  const { error_type } = outcome.failure;
  return meteredBy[error_type] === null ? null : error_type;
}

function tokensOf(outcome: ModelOutcome): number {
  const usage = outcome.type === 'replied' ? outcome.reply.usage : outcome.failure.usage;
  return usage === null ? 0 : usage.input_tokens + usage.output_tokens;
}
