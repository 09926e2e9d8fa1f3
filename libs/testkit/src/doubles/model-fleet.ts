/**
 * What a fleet knows together, in memory: the same promises (F1–F5) as Redis', by a clock that tests move.
 *
 * Owns: outcomes, breakers, probes, benches and rates of all members. Each method is one atomic step, as a script is.
 */
import { StoreAway, type Bench, type ModelFleet, type OpenBreaker, type Outcomes } from '@treadle/engine';
import { MemoryRates } from './rates.ts';

export interface MemoryFleetOptions {
  readonly windowMs?: number;
  readonly minuteMs?: number;
  readonly lapseMs?: number;
  readonly forgetMs?: number;
  readonly limits?: { readonly breakers?: number; readonly benches?: number; readonly waiting?: number };
}

export interface MemoryFleet {
  /** One more process of the fleet. */
  join(options?: MemoryFleetOptions): ModelFleet;
  passTime(ms: number): void;
  now(): number;
  /** While true, every call throws `StoreAway` and changes nothing. */
  away(away: boolean): void;
}

interface Data {
  nowMs: number;
  away: boolean;
  members: number;
  heard: { readonly at_ms: number; readonly by: number; readonly seen: readonly Outcomes[] }[];
  /** Of all there ever were: how many of `heard` are gone. */
  gone: number;
  readonly breakers: Map<string, OpenBreaker>;
  readonly benches: Map<string, Bench>;
  readonly probes: Map<string, { readonly token: string; readonly until_ms: number }>;
  readonly rates: Map<string, MemoryRates>;
}

export function createMemoryFleet(): MemoryFleet {
  const data: Data = { nowMs: 1_700_000_000_000, away: false, members: 0, heard: [], gone: 0, breakers: new Map(), benches: new Map(), probes: new Map(), rates: new Map() };
  return {
    join: (options = {}) => member(data, options),
    passTime: (ms) => { data.nowMs += ms; },
    now: () => data.nowMs,
    away: (away) => { data.away = away; },
  };
}

function member(data: Data, options: MemoryFleetOptions): ModelFleet {
  const { windowMs = 10_000, limits = {} } = options;
  const rateOptions = { minuteMs: options.minuteMs ?? 60_000, lapseMs: options.lapseMs ?? 5000, forgetMs: options.forgetMs ?? 600_000, waiting: limits.waiting ?? 5000 };
  const me = ++data.members;
  let read = 0;

  async function step<T>(act: (now: number) => T): Promise<T> {
    if (data.away) throw new StoreAway('the store is away (planned)');
    return act(data.nowMs);
  }

  function ratesOf(target: string): MemoryRates {
    const rates = data.rates.get(target) ?? new MemoryRates();
    data.rates.set(target, rates);
    return rates;
  }

  function holder(breaker_id: string, now: number): string | null {
    const probe = data.probes.get(breaker_id);
    return probe !== undefined && probe.until_ms > now ? probe.token : null;
  }

  return {
    exchange: (seen) => step((now) => {
      forgetOld(data, now - windowMs);
      if (seen.length > 0) data.heard.push({ at_ms: now, by: me, seen: structuredClone(seen) });
      const unread = data.heard.slice(Math.max(0, read - data.gone)).filter((each) => each.by !== me);
      read = data.gone + data.heard.length;
      return structuredClone({ now_ms: now, outcomes: summed(unread.flatMap((each) => each.seen)), breakers: [...data.breakers.values()], benches: [...data.benches.values()] });
    }),

    open: ({ target, error_type, for_ms, forced }) => step((now) => {
      const id = `${target}:${error_type}`;
      const open = data.breakers.get(id);
      const again = open === undefined || (!open.forced && now >= open.probe_at_ms);
      if (!again && (open.forced || !forced)) return;
      if (open === undefined) makeRoom(data.breakers, limits.breakers ?? 1000, (each) => each.opened_at_ms);
      data.breakers.set(id, again
        ? { id, target, error_type, opened_at_ms: now, probe_at_ms: now + for_ms, openings: (open?.openings ?? 0) + 1, forced }
        : { ...open, forced });
    }),

    close: (breaker_id, probe_token) => step((now) => {
      const open = data.breakers.get(breaker_id);
      if (open === undefined || (probe_token !== undefined && (open.forced || holder(breaker_id, now) !== probe_token))) return false;
      data.probes.delete(breaker_id);
      return data.breakers.delete(breaker_id);
    }),

    takeProbe: (breaker_id, token, lease_ms) => step((now) => {
      const held = holder(breaker_id, now);
      const open = data.breakers.get(breaker_id);
      if (held !== null && held !== token) return false;
      if (held === null && open !== undefined && (open.forced || now < open.probe_at_ms)) return false;
      data.probes.set(breaker_id, { token, until_ms: now + lease_ms });
      return true;
    }),

    dropProbe: (breaker_id, token) => step((now) => {
      if (holder(breaker_id, now) === token) data.probes.delete(breaker_id);
    }),

    bench: ({ target, reason, for_ms }) => step((now) => {
      const benched = data.benches.get(target);
      if (benched !== undefined && benched.until_ms >= now + for_ms) return;
      if (benched === undefined) makeRoom(data.benches, limits.benches ?? 1000, (each) => each.until_ms);
      data.benches.set(target, { target, reason, until_ms: now + for_ms });
    }),

    unbench: (target) => step((now) => {
      const benched = data.benches.get(target);
      data.benches.delete(target);
      return benched !== undefined && benched.until_ms > now;
    }),

    reserve: (reservation) => step((now) => {
      check(reservation.rates);
      return ratesOf(reservation.target).reserve(reservation, now, rateOptions);
    }),
    renew: (target, id, lease_ms) => step((now) => { ratesOf(target).renew(id, lease_ms, now); }),
    settle: (target, id, used_tokens) => step((now) => { ratesOf(target).settle(id, used_tokens, now); }),
  };
}

function forgetOld(data: Data, from_ms: number): void {
  const young = data.heard.filter((each) => each.at_ms >= from_ms);
  data.gone += data.heard.length - young.length;
  data.heard = young;
  for (const bench of data.benches.values()) if (bench.until_ms <= data.nowMs) data.benches.delete(bench.target);
}

/** The one with the lowest number goes. */
function makeRoom<T>(entries: Map<string, T>, limit: number, by: (entry: T) => number): void {
  if (entries.size < limit) return;
  const [first] = [...entries].sort(([, one], [, other]) => by(one) - by(other));
  entries.delete(first![0]);
}

function summed(seen: readonly Outcomes[]): Outcomes[] {
  return [...Map.groupBy(seen, (each) => each.target)].map(([target, all]) => {
    const failed: Partial<Record<keyof Outcomes['failed'], number>> = {};
    for (const each of all) for (const [type, count] of Object.entries(each.failed)) failed[type as keyof Outcomes['failed']] = (failed[type as keyof Outcomes['failed']] ?? 0) + count;
    return { target, ok: all.reduce((sum, each) => sum + each.ok, 0), failed };
  });
}

function check(rates: object): void {
  for (const [name, limit] of Object.entries(rates) as [string, number | null][]) {
    if (limit !== null && !(limit >= 1 && Number.isFinite(limit))) throw new RangeError(`${name}: expected a number from 1, got ${limit}`);
  }
}
