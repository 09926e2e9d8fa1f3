/**
 * Tests that hold at all times at once, so that a judge may look after every run without deceiving itself.
 *
 * Rates. For one arm, a beta mixture over what its rate p may be gives the martingale M(p) = B(a+S, b+n−S) / B(a, b) / (p^S (1−p)^(n−S)):
 * under the true p its mean is 1, whatever has been seen. The arms are independent, so under their true rates the product of both is one,
 * too, and by Ville's inequality it reaches 1/α with a chance of at most α, ever. "The canary's rate is above the other's by more than δ" is
 * therefore certain at α when the product is at least 1/α under every pair of rates that says otherwise; the one that explains best what
 * was seen decides.
 *   H. Robbins, "Statistical methods related to the law of the iterated logarithm", Annals of Mathematical Statistics 41, 1970 (mixtures)
 *   L. Wasserman, A. Ramdas, S. Balakrishnan, "Universal inference", PNAS 117, 2020 (composite hypotheses; section 8: sequences)
 *   S. Howard, A. Ramdas, J. McAuliffe, J. Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence sequences", Annals of Statistics 49, 2021
 * Means. The asymptotic confidence sequence (Gaussian mixture) of
 *   I. Waudby-Smith, D. Arbour, R. Sinha, E. Kennedy, A. Ramdas, "Time-uniform central limit theory and asymptotic confidence sequences",
 *   Annals of Statistics 52, 2024.
 */

export interface Counted { readonly hits: number; readonly n: number }

/** Beta(a, b) with whole a and b. Any is valid: it says only where one looks first. */
interface Prior { readonly a: number; readonly b: number }

/** A new model may fail anyhow; what is in use mostly fails seldom. */
const priors = { canary: { a: 1, b: 1 }, control: { a: 1, b: 9 } } as const satisfies Record<string, Prior>;

/** ln(n!), exact to rounding; grown as it is asked for. */
const lnFactorials = [0, 0];

function lnFactorial(n: number): number {
  for (let next = lnFactorials.length; next <= n; next++) lnFactorials.push((lnFactorials[next - 1] ?? 0) + Math.log(next));
  return lnFactorials[n] ?? 0;
}

function lnBeta(a: number, b: number): number {
  return lnFactorial(a - 1) + lnFactorial(b - 1) - lnFactorial(a + b - 1);
}

/** ln M(p), for a p between 0 and 1. */
export function evidenceAgainst(rate: number, { hits, n }: Counted, { a, b }: Prior): number {
  return lnBeta(a + hits, b + n - hits) - lnBeta(a, b) - hits * Math.log(rate) - (n - hits) * Math.log1p(-rate);
}

const steps = 60;
/** Rates of exactly 0 and 1 are approached. */
const tiny = 1e-9;

/**
 * ln of the evidence that the canary's rate is above the control's by more than `delta`; certain at α from ln(1/α) on. The evidence
 * against a pair of rates is convex in them, so its least value over "not above" lies on the border, and halving finds it; where the
 * canary's rate is not above by more than `delta` as measured there is none.
 */
export function evidenceOfWorse(canary: Counted, control: Counted, delta: number): number {
  if (canary.n === 0 || control.n === 0 || canary.hits / canary.n - control.hits / control.n <= delta) return 0;
  const against = (rate: number): number => evidenceAgainst(rate + delta, canary, priors.canary) + evidenceAgainst(rate, control, priors.control);
  let [low, high] = [tiny, 1 - delta - tiny];
  for (let step = 0; step < steps; step++) {
    const [left, right] = [low + (high - low) / 3, high - (high - low) / 3];
    if (against(left) < against(right)) high = right;
    else low = left;
  }
  return Math.max(0, against((low + high) / 2));
}

export interface Sample { readonly n: number; readonly mean: number; readonly variance: number }

export function sampleOf(values: readonly number[]): Sample {
  const n = values.length;
  const mean = n === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / n;
  const variance = n < 2 ? 0 : values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1);
  return { n, mean, variance };
}

/** How far the mean of a sample may be from the true one; narrowest, for its α, at about `tuned_n` values. */
export function meanWithin({ n, variance }: Sample, alpha: number, tuned_n: number): number {
  if (n < 2) return Infinity;
  const logs = -2 * Math.log(alpha);
  const rho2 = (logs + Math.log(logs) + 1) / tuned_n;
  const grown = n * rho2 + 1;
  return Math.sqrt(variance * 2 * grown / (n * n * rho2) * Math.log(Math.sqrt(grown) / alpha));
}
