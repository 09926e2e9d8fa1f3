import { describe, expect, test } from 'vitest';
import { randomFrom } from '../fixtures/synthetic-runs.ts';
import { evidenceAgainst, evidenceOfWorse, meanWithin, sampleOf } from './confidence.ts';

describe('evidence that one rate is above another', () => {
  test('is the martingale of its source: under the true rate its mean is 1, whatever the number of runs', () => {
    for (const rate of [0.05, 0.4]) {
      for (const n of [1, 7, 40]) {
        let mean = 0;
        let chance = (1 - rate) ** n;
        for (let hits = 0; hits <= n; hits++) {
          mean += chance * Math.exp(evidenceAgainst(rate, { hits, n }, { a: 1, b: 9 }));
          chance *= (n - hits) / (hits + 1) * rate / (1 - rate);
        }
        expect(mean).toBeCloseTo(1, 9);
      }
    }
  });

  test('is none where the difference as measured is within the margin, or where nothing is known', () => {
    expect(evidenceOfWorse({ hits: 5, n: 100 }, { hits: 5, n: 100 }, 0)).toBe(0);
    expect(evidenceOfWorse({ hits: 7, n: 100 }, { hits: 50, n: 1000 }, 0.02)).toBe(0);
    expect(evidenceOfWorse({ hits: 0, n: 0 }, { hits: 0, n: 10 }, 0)).toBe(0);
    expect(evidenceOfWorse({ hits: 9, n: 9 }, { hits: 0, n: 0 }, 0)).toBe(0);
  });

  test('grows with runs and with the difference, and shrinks with the margin', () => {
    const of = (hits: number, n: number, delta = 0.02) => evidenceOfWorse({ hits, n }, { hits: 50, n: 1000 }, delta);
    expect(of(10, 20)).toBeGreaterThan(of(5, 10));
    expect(of(10, 20)).toBeGreaterThan(of(8, 20));
    expect(of(10, 20, 0.2)).toBeLessThan(of(10, 20));
    expect(of(20, 20)).toBeLessThan(Infinity);
  });

  test('looked at after every run it deceives in fewer cases than it may, where the usual test does in many', () => {
    const [alpha, sequences, looks] = [0.05, 300, 300];
    let [sequential, fixed] = [0, 0];
    for (let seed = 1; seed <= sequences; seed++) {
      const random = randomFrom(seed);
      const [canary, control] = [{ hits: 0, n: 0 }, { hits: 0, n: 0 }];
      const found = { sequential: false, fixed: false };
      for (let look = 0; look < looks; look++) {
        for (const arm of [canary, control]) Object.assign(arm, { hits: arm.hits + (random() < 0.3 ? 1 : 0), n: arm.n + 1 });
        found.sequential ||= evidenceOfWorse(canary, control, 0) >= -Math.log(alpha);
        const pooled = (canary.hits + control.hits) / (canary.n + control.n);
        const z = (canary.hits - control.hits) / canary.n / Math.sqrt(pooled * (1 - pooled) * 2 / canary.n);
        found.fixed ||= look >= 20 && z > 1.645;
      }
      if (found.sequential) sequential++;
      if (found.fixed) fixed++;
    }
    expect(sequential / sequences).toBeLessThan(alpha);
    expect(fixed / sequences).toBeGreaterThan(3 * alpha);
  }, 60_000);
});

describe('means', () => {
  test('a sample says its mean and variance', () => {
    expect(sampleOf([1, 2, 3, 6])).toEqual({ n: 4, mean: 3, variance: 14 / 3 });
    expect(sampleOf([])).toEqual({ n: 0, mean: 0, variance: 0 });
  });

  test('the true mean is left out, at any look from 50 values on, in fewer cases than it may be', () => {
    const [alpha, sequences] = [0.05, 300];
    let left = 0;
    for (let seed = 1; seed <= sequences; seed++) {
      const random = randomFrom(seed);
      const values: number[] = [];
      let out = false;
      for (let n = 1; n <= 400; n++) {
        values.push(Math.log(1 - random()));
        if (n >= 50 && n % 5 === 0) {
          const sample = sampleOf(values);
          out ||= Math.abs(sample.mean + 1) > meanWithin(sample, alpha, 50);
        }
      }
      if (out) left++;
    }
    expect(left / sequences).toBeLessThan(alpha);
  });

  test('nothing is known of a mean before there are two values; then the more, the nearer', () => {
    expect(meanWithin({ n: 1, mean: 1, variance: 1 }, 0.01, 50)).toBe(Infinity);
    expect(meanWithin({ n: 400, mean: 1, variance: 1 }, 0.01, 50)).toBeLessThan(meanWithin({ n: 100, mean: 1, variance: 1 }, 0.01, 50));
  });
});
