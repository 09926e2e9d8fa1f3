/**
 * Circuit breakers: one per target and error type, for a fleet.
 *
 * Owns: a meter (opossum, fed by hand) for each pair that has failed lately, what is open, the probes taken here, and what the fleet
 * has not been told yet. States of a pair: closed → open → half open (its time has come: one probe at a time, fleet-wide) → closed,
 * or open again for longer.
 *
 * B1  Fed only with outcomes that say something about health; a meter exists from a pair's first failure on, so there are never more
 *     than targets times types.
 * B2  A meter judges everybody's outcomes: others' come with each exchange. Without the fleet it judges its own.
 * B3  What was forced open only a person closes.
 * B4  Nothing here waits: telling the fleet goes on beside, and is tried again with the next exchange.
 */
import CircuitBreaker from 'opossum';
import type { ErrorType } from '@treadle/core';
import type { ModelFleet, OpenBreaker, Outcomes } from '@treadle/engine';
import { breakerId, meteredBy, type Targets } from './targets.ts';

export interface BreakerOptions {
  /** Ms over which outcomes are counted. */
  readonly windowMs: number;
  /** Outcomes below which nothing opens. */
  readonly volume: number;
  /** Of the outcomes, the share of one kind of failure above which its breaker opens. */
  readonly percent: number;
  /** Ms until the first probe; doubles with each opening in a row, up to twelve times as long. */
  readonly openMs: number;
}

export const defaultBreakerOptions: BreakerOptions = { windowMs: 10_000, volume: 20, percent: 50, openMs: 10_000 };

export type BreakerState = 'closed' | 'half_open' | 'open';
export type OnTransition = (breaker: Pick<OpenBreaker, 'target' | 'error_type'>, to: BreakerState) => void;

export interface BreakersDeps {
  readonly fleet: ModelFleet | null;
  /** Epoch ms, the fleet's. */
  readonly nowMs: () => number;
  readonly onTransition: OnTransition;
}

/** The right to find out whether a breaker may close. */
export interface Probe { readonly breaker: OpenBreaker; readonly token: string }

type Meter = CircuitBreaker<[boolean], void>;

export class Breakers {
  readonly #deps: BreakersDeps;
  readonly #options: BreakerOptions;
  readonly #meters = new Map<string, Meter>();
  readonly #open = new Map<string, OpenBreaker>();
  /** Opened here, and not heard of from the fleet since. */
  readonly #untold = new Set<string>();
  #seen = new Map<string, { ok: number; failed: Partial<Record<ErrorType, number>> }>();

  constructor(deps: BreakersDeps, options: BreakerOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /** What is open for calls to these targets, however old. */
  openFor({ host, model }: Targets): readonly OpenBreaker[] {
    return [...this.#open.values()].filter(({ target }) => target === host || target === model);
  }

  all(): readonly OpenBreaker[] {
    return [...this.#open.values()];
  }

  /** A call has come out: `ok`, or failed in a way that says something about the host or the model; a failure may stand for as many as `count`. */
  record({ host, model }: Targets, outcome: 'ok' | ErrorType, count = 1): void {
    if (outcome === 'ok') for (const target of [host, model]) this.#count(target, 'ok', 1);
    else {
      const scope = meteredBy[outcome];
      if (scope !== null) this.#count(scope === 'host' ? host : model, outcome, count);
      // Whoever answers with a failure of its own is there.
      if (scope === 'model') this.#count(host, 'ok', 1);
    }
  }

  /** A probe went through. Only when this has settled may it be let go: the fleet closes for whoever holds it. Never rejects. */
  async probed(probes: readonly Probe[], outcome: 'ok' | 'failed'): Promise<void> {
    await Promise.all(probes.map(({ breaker: { id, target, error_type }, token }) => {
      if (outcome === 'failed') return this.#openNow(target, error_type);
      if (this.#open.get(id)?.forced !== false) return undefined;
      this.#close(id);
      this.#deps.onTransition({ target, error_type }, 'closed');
      return this.#deps.fleet?.close(id, token).catch(() => undefined);
    }));
  }

  /** What the fleet has not heard of; it has from now on. */
  takeSeen(): readonly Outcomes[] {
    const seen = [...this.#seen].map(([target, counts]) => ({ target, ...counts }));
    this.#seen = new Map();
    return seen;
  }

  /** What the fleet says. */
  learn(others: readonly Outcomes[], open: readonly OpenBreaker[]): void {
    const known = new Set(open.map(({ id }) => id));
    for (const id of [...this.#open.keys()]) if (!known.has(id) && !this.#untold.has(id)) this.#close(id);
    for (const breaker of open) {
      this.#open.set(breaker.id, breaker);
      this.#untold.delete(breaker.id);
      this.#dropMeter(breaker.id);
    }
    for (const { target, ok, failed } of others) {
      for (const [type, count] of Object.entries(failed)) this.#feed(target, type as ErrorType, count);
      this.#feedOk(target, ok);
    }
    for (const id of this.#untold) void this.#tellOpen(id);
  }

  close(): void {
    for (const id of [...this.#meters.keys()]) this.#dropMeter(id);
  }

  #count(target: string, outcome: 'ok' | ErrorType, count: number): void {
    const counts = this.#seen.get(target) ?? { ok: 0, failed: {} };
    if (outcome === 'ok') {
      counts.ok += count;
      this.#feedOk(target, count);
      // A target that nobody has failed on has no meter anywhere: its successes are no news.
      if (!this.#metered(target) && Object.keys(counts.failed).length === 0) return;
    } else {
      counts.failed[outcome] = (counts.failed[outcome] ?? 0) + count;
      this.#feed(target, outcome, count);
    }
    this.#seen.set(target, counts);
  }

  #metered(target: string): boolean {
    return [...this.#meters.keys()].some((id) => id.startsWith(`${target}:`));
  }

  #feedOk(target: string, count: number): void {
    for (const [id, meter] of this.#meters) if (id.startsWith(`${target}:`)) fire(meter, true, count);
  }

  #feed(target: string, type: ErrorType, count: number): void {
    const id = breakerId(target, type);
    if (this.#open.has(id)) return;
    fire(this.#meters.get(id) ?? this.#meter(id, target, type), false, count);
  }

  #meter(id: string, target: string, type: ErrorType): Meter {
    const { windowMs, volume, percent } = this.#options;
    const meter = new CircuitBreaker<[boolean], void>((ok) => (ok ? Promise.resolve() : Promise.reject(counted)), {
      timeout: false, rollingCountTimeout: windowMs, rollingCountBuckets: 10, volumeThreshold: volume, errorThresholdPercentage: percent, resetTimeout: neverMs, rollingPercentilesEnabled: false,
    });
    meter.on('open', () => { void this.#openNow(target, type); });
    this.#meters.set(id, meter);
    return meter;
  }

  /** Open from now on; settles when the fleet has been told, or could not be. */
  async #openNow(target: string, error_type: ErrorType): Promise<void> {
    const id = breakerId(target, error_type);
    const before = this.#open.get(id);
    if (before?.forced === true) return;
    const now = this.#deps.nowMs();
    const openings = (before?.openings ?? 0) + 1;
    const breaker = { id, target, error_type, opened_at_ms: now, probe_at_ms: now + this.#openMs(openings), openings, forced: false };
    this.#open.set(id, breaker);
    this.#untold.add(id);
    this.#dropMeter(id);
    this.#deps.onTransition(breaker, 'open');
    await this.#tellOpen(id);
  }

  #openMs(openings: number): number {
    return this.#options.openMs * Math.min(2 ** (openings - 1), longestTimes);
  }

  /** What the fleet does not hear it is told again with the next exchange. */
  async #tellOpen(id: string): Promise<void> {
    const breaker = this.#open.get(id);
    if (breaker === undefined) return void this.#untold.delete(id);
    const for_ms = Math.max(0, breaker.probe_at_ms - this.#deps.nowMs());
    await this.#deps.fleet?.open({ target: breaker.target, error_type: breaker.error_type, for_ms, forced: false }).catch(() => undefined);
  }

  #close(id: string): void {
    this.#open.delete(id);
    this.#untold.delete(id);
    this.#dropMeter(id);
  }

  #dropMeter(id: string): void {
    this.#meters.get(id)?.shutdown();
    this.#meters.delete(id);
  }
}

const longestTimes = 12;
const counted = new Error('counted');
const neverMs = 2 ** 31 - 1;
/** Outcomes of one kind that a meter is told of at once; more say nothing new. */
const mostAtOnce = 200;

function fire(meter: Meter, ok: boolean, count: number): void {
  for (let n = 0; n < Math.min(count, mostAtOnce); n++) meter.fire(ok).catch(() => undefined);
}
