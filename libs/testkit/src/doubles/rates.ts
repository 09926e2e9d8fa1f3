/** Rates of one credential in memory: the schedule that Redis' script `reserve` keeps, in plain code that can be read against it. */
import type { Reservation } from '@treadle/engine';

export interface RateOptions { readonly minuteMs: number; readonly lapseMs: number; readonly forgetMs: number; readonly waiting: number }

interface Slot { requests: number; tokens: number }
interface Call { readonly slot: number; readonly cost: number; readonly since_ms: number; until_ms: number }
interface Booking { readonly place: number; tokens: number; due_ms: number }

export type ReserveReply = { readonly type: 'granted' } | { readonly type: 'wait'; readonly wait_ms: number };

export class MemoryRates {
  readonly #slots = new Map<number, Slot>();
  readonly #calls = new Map<string, Call>();
  readonly #line = new Map<string, Booking>();
  #heldMs: number | null = null;

  reserve(ask: Reservation, now: number, options: RateOptions): ReserveReply {
    this.#endLeases(now);
    if (this.#calls.has(ask.id)) return { type: 'granted' };
    const { requests_per_minute, tokens_per_minute, in_flight } = ask.rates;
    const cost = Math.min(ask.tokens, tokens_per_minute ?? ask.tokens);
    const before = this.#before(ask, now, options);
    const waits = [
      this.#within('requests', { wanted: before.count + 1, limit: requests_per_minute, own: 1, now, options }),
      this.#within('tokens', { wanted: before.tokens + cost, limit: tokens_per_minute, own: cost, now, options }),
      in_flight === null ? 0 : this.#forPlace(this.#calls.size + before.count + 1 - in_flight, in_flight, options),
    ];
    const wait_ms = Math.ceil(Math.max(...waits));
    if (wait_ms > 0) {
      this.#stand(ask, now + wait_ms, options);
      return { type: 'wait', wait_ms };
    }
    this.#line.delete(ask.run_id);
    const slot = Math.floor(now / (options.minuteMs / 60));
    const { requests, tokens } = this.#slots.get(slot) ?? { requests: 0, tokens: 0 };
    this.#slots.set(slot, { requests: requests + 1, tokens: tokens + cost });
    this.#calls.set(ask.id, { slot, cost, since_ms: now, until_ms: now + ask.lease_ms });
    return { type: 'granted' };
  }

  renew(id: string, lease_ms: number, now: number): void {
    this.#endLeases(now);
    const call = this.#calls.get(id);
    if (call !== undefined) call.until_ms = now + lease_ms;
  }

  settle(id: string, used_tokens: number, now: number): void {
    const call = this.#calls.get(id);
    if (call === undefined) return;
    this.#calls.delete(id);
    const slot = this.#slots.get(call.slot);
    if (slot !== undefined) slot.tokens = Math.max(0, slot.tokens - call.cost + used_tokens);
    const held = now - call.since_ms;
    this.#heldMs = Math.floor((this.#heldMs === null ? held : this.#heldMs * 0.8 + held * 0.2) + 0.5);
  }

  #endLeases(now: number): void {
    for (const [id, call] of this.#calls) if (call.until_ms <= now) this.#calls.delete(id);
  }

  #before(ask: Reservation, now: number, { lapseMs, forgetMs }: RateOptions): { count: number; tokens: number } {
    const place = this.#line.get(ask.run_id)?.place ?? Infinity;
    let [count, tokens] = [0, 0];
    for (const [run_id, booking] of this.#line) {
      if (booking.place >= place) continue;
      if (booking.due_ms + forgetMs < now) this.#line.delete(run_id);
      else if (booking.due_ms + lapseMs >= now) {
        count++;
        tokens += Math.min(booking.tokens, ask.rates.tokens_per_minute ?? booking.tokens);
      }
    }
    return { count, tokens };
  }

  #within(what: keyof Slot, { wanted, limit, own, now, options }: { wanted: number; limit: number | null; own: number; now: number; options: RateOptions }): number {
    if (limit === null || own === 0) return 0;
    const third = Math.max(Math.ceil(limit / 3), own);
    return Math.max(this.#forWindow(what, { wanted, limit, length: 60, now, options }), this.#forWindow(what, { wanted, limit: third, length: 15, now, options }));
  }

  #forWindow(what: keyof Slot, { wanted, limit, length, now, options }: { wanted: number; limit: number; length: number; now: number; options: RateOptions }): number {
    const slotMs = options.minuteMs / 60;
    const span = length + 1;
    const first = Math.floor(now / slotMs) - span;
    const lately = [...this.#slots].filter(([at]) => at > first).sort(([one], [other]) => one - other);
    const rounds = Math.max(0, Math.ceil(wanted / limit) - 1);
    let over = wanted - (rounds + 1) * limit + lately.reduce((sum, [, slot]) => sum + slot[what], 0);
    let wait = 0;
    for (const [at, slot] of lately) {
      if (over <= 0) break;
      over -= slot[what];
      wait = (at + span) * slotMs - now;
    }
    return wait + rounds * span * slotMs;
  }

  #forPlace(missing: number, in_flight: number, { minuteMs }: RateOptions): number {
    if (missing <= 0) return 0;
    const held = this.#heldMs ?? minuteMs / 60;
    return Math.min(Math.max(missing * held / in_flight / 2, minuteMs / 600), minuteMs / 2);
  }

  #stand(ask: Reservation, due_ms: number, { waiting }: RateOptions): void {
    const booking = this.#line.get(ask.run_id);
    if (booking === undefined && this.#line.size >= waiting) return;
    const last = Math.max(0, ...[...this.#line.values()].map((each) => each.place));
    this.#line.set(ask.run_id, { place: booking?.place ?? last + 1, tokens: ask.tokens, due_ms });
  }
}
