/**
 * The conformance suite of `ModelFleet`: F1 to F4 of the port, for the double and for Redis alike (F5, a store that is away, is the real
 * store's own to test). Times that must not pass during a test are long, times that must are short: the suite holds however slow a machine is.
 */
import { beforeEach, describe } from 'vitest';
import type { ModelFleet } from '@treadle/engine';
import type { MemoryFleetOptions } from '../../doubles/model-fleet.ts';
import { benchTests } from './benches.ts';
import { breakerTests } from './breakers.ts';
import { outcomeTests } from './outcomes.ts';
import { courseTests } from './courses.ts';
import { rateTests } from './rates.ts';

export interface FleetUnderTest {
  /** One more process of the same fleet. */
  join(options?: MemoryFleetOptions): ModelFleet;
  /** Lets the store's clock run on; a real store really waits. */
  passTime(ms: number): void | Promise<void>;
  /** Runs on as the store's clock does; where it begins does not matter. */
  nowMs(): number;
  /** The clock stands still while nobody moves it. */
  readonly still: boolean;
  /** How many random courses are played, and how long a minute is in them. */
  readonly courses: number;
  readonly courseMinuteMs: number;
}

/** Registers the suite with vitest, to be played beside others of its file. `factory` makes an empty fleet for each test. */
export function modelFleetConformance(name: string, factory: () => FleetUnderTest | Promise<FleetUnderTest>): void {
  // Its own tests come one after the other: they share what `factory` has made.
  describe.concurrent('model fleet', () => {
    describe(name, { concurrent: false }, () => {
      let under: FleetUnderTest;
      beforeEach(async () => { under = await factory(); });
      const current = (): FleetUnderTest => under;
      describe('outcomes', () => { outcomeTests(current); });
      describe('breakers', () => { breakerTests(current); });
      describe('benches', () => { benchTests(current); });
      describe('rates', () => { rateTests(current); });
      describe('random courses', () => { courseTests(current, factory); });
    });
  });
}
