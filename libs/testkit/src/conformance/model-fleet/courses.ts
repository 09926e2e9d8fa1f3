/**
 * Random courses of many askers with one credential: some come late, some use less than they estimated. Of each course it is held that
 *
 * 1. no minute, wherever it begins, is granted more than its rate, and no moment more places than there are (F3);
 * 2. whoever comes when told to is granted in bounded time;
 * 3. who is granted delays nobody who stands before: were those to ask at that moment, they would get theirs too;
 * 4. asking twice takes no second place.
 *
 * Where the clock runs by itself, a grant lies somewhere between question and answer, and only what is certain is held against it.
 */
import type { ModelFleet, Rates } from '@treadle/engine';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { FleetUnderTest } from './suite.ts';

const lapseMs = 2000;

interface Asker {
  /** Of the course, in minutes. */
  readonly comes: number;
  readonly tokens: number;
  /** Of `lapseMs`. */
  readonly late: number;
  /** In minutes. */
  readonly holds: number;
  /** Of the estimate. */
  readonly uses: number;
}

interface Course { readonly rates: Rates; readonly askers: readonly Asker[] }

const share = fc.integer({ min: 0, max: 100 }).map((percent) => percent / 100);
const course: fc.Arbitrary<Course> = fc.record({
  rates: fc.record({
    requests_per_minute: fc.option(fc.integer({ min: 1, max: 12 })), tokens_per_minute: fc.option(fc.integer({ min: 100, max: 1000 })), in_flight: fc.option(fc.integer({ min: 1, max: 5 })),
  }),
  askers: fc.array(fc.record({ comes: share, tokens: fc.integer({ min: 1, max: 1200 }), late: share.map((each) => each / 2), holds: share.map((each) => each / 2), uses: share }), { minLength: 1, maxLength: 14 }),
});

interface Grant { readonly asker: Asker; readonly sent_ms: number; readonly answered_ms: number; tokens: number; settle_sent_ms: number; readonly id: string }

interface Waiting { readonly asker: Asker; readonly index: number; in_line: boolean; asks: number }

export function courseTests(it: () => FleetUnderTest, factory: () => FleetUnderTest | Promise<FleetUnderTest>): void {
  test('keep the rates, the order, and nobody waiting for ever', async () => {
    const { courses, courseMinuteMs, still } = it();
    const hold = (numRuns: number): Promise<void> => fc.assert(fc.asyncProperty(course, async (drawn) => new Played(await factory(), drawn, courseMinuteMs).play()), { numRuns });
    // Where time really passes most of a course is waiting: each has a fleet of its own, and all are played at once.
    await Promise.all(still ? [hold(courses)] : Array.from({ length: courses }, () => hold(1)));
  }, 60_000);
}

class Played {
  readonly #under: FleetUnderTest;
  readonly #fleet: ModelFleet;
  readonly #course: Course;
  readonly #minuteMs: number;
  readonly #grants: Grant[] = [];
  readonly #due: { readonly at_ms: number; readonly act: () => Promise<void> }[] = [];
  readonly #line: Waiting[] = [];

  constructor(under: FleetUnderTest, drawn: Course, minuteMs: number) {
    this.#under = under;
    this.#course = drawn;
    this.#minuteMs = minuteMs;
    this.#fleet = under.join({ minuteMs, lapseMs });
  }

  async play(): Promise<void> {
    const begin_ms = this.#under.nowMs();
    const { askers } = this.#course;
    for (const [index, asker] of askers.entries()) {
      const waiting: Waiting = { asker, index, in_line: false, asks: 0 };
      this.#at(begin_ms + asker.comes * this.#minuteMs, () => this.#ask(waiting));
    }
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const early = next.at_ms - this.#under.nowMs();
      if (early > 0) await this.#under.passTime(early);
      await next.act();
      // Each asker has at worst a whole minute, the holding of places and all latenesses for itself.
      if (this.#under.still) expect(this.#under.nowMs() - begin_ms).toBeLessThan((askers.length + 1) * (2 * this.#minuteMs + lapseMs * askers.length));
    }
    expect(this.#grants).toHaveLength(askers.length);
  }

  #at(at_ms: number, act: () => Promise<void>): void {
    this.#due.push({ at_ms, act });
  }

  #next() {
    this.#due.sort((one, other) => one.at_ms - other.at_ms);
    return this.#due.shift();
  }

  async #ask(waiting: Waiting): Promise<void> {
    const { asker, index } = waiting;
    if (this.#grants.some((grant) => grant.id === `id-${index}`)) return;
    expect(++waiting.asks).toBeLessThan(300);
    const sent_ms = this.#under.nowMs();
    const reply = await this.#reserve(asker, index);
    const answered_ms = this.#under.nowMs();
    if (reply.type === 'wait') {
      if (this.#under.still) expect(await this.#reserve(asker, index)).toEqual(reply);
      if (!waiting.in_line) this.#line.push(waiting);
      waiting.in_line = true;
      this.#at(answered_ms + reply.wait_ms + asker.late * lapseMs, () => this.#ask(waiting));
      return;
    }
    const before = waiting.in_line ? this.#line.indexOf(waiting) : this.#line.length;
    if (waiting.in_line) this.#line.splice(before, 1);
    await this.#granted({ asker, sent_ms, answered_ms, tokens: Math.min(asker.tokens, this.#course.rates.tokens_per_minute ?? asker.tokens), settle_sent_ms: Infinity, id: `id-${index}` });
    if (!this.#under.still) return;
    for (const earlier of this.#line.slice(0, before)) {
      await this.#ask(earlier);
      expect(this.#grants.at(-1)?.id).toBe(`id-${earlier.index}`);
    }
  }

  #reserve({ tokens }: Asker, index: number) {
    return this.#fleet.reserve({ id: `id-${index}`, run_id: `run-${index}`, target: 'credential:x', rates: this.#course.rates, tokens, lease_ms: 1000 * this.#minuteMs });
  }

  async #granted(grant: Grant): Promise<void> {
    const { requests_per_minute, tokens_per_minute, in_flight } = this.#course.rates;
    const lately = this.#grants.filter((each) => each.sent_ms >= grant.answered_ms - this.#minuteMs);
    this.#grants.push(grant);
    expect(lately.length + 1).toBeLessThanOrEqual(requests_per_minute ?? Infinity);
    expect(lately.reduce((sum, each) => sum + each.tokens, grant.tokens)).toBeLessThanOrEqual(tokens_per_minute ?? Infinity);
    expect(this.#grants.filter((each) => each.settle_sent_ms > grant.answered_ms).length).toBeLessThanOrEqual(in_flight ?? Infinity);
    this.#at(grant.answered_ms + grant.asker.holds * this.#minuteMs, async () => {
      grant.settle_sent_ms = this.#under.nowMs();
      grant.tokens = Math.round(grant.asker.tokens * grant.asker.uses);
      await this.#fleet.settle('credential:x', grant.id, grant.tokens);
    });
  }
}
