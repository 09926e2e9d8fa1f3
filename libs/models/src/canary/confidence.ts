/**
 * Bounds that hold at all times at once, so that a judge may look after every run without deceiving itself.
 *
 * Rates: the confidence sequence of a beta-binomial mixture. With the uniform mixture the ratio M_n(p) = B(S+1, n−S+1) / p^S (1−p)^(n−S) is a
 * martingale of mean 1 under the true rate p, so by Ville's inequality it reaches 1/α with a chance of at most α, ever; the rates that it
 * has not excluded are the sequence. H. Robbins, "Statistical methods related to the law of the iterated logarithm" (Annals of Mathematical
 * Statistics, 1970); S. Howard, A. Ramdas, J. McAuliffe, J. Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence sequences"
 * (Annals of Statistics, 2021).
 * Means: the asymptotic confidence sequence of I. Waudby-Smith, D. Arbour, R. Sinha, E. Kennedy, A. Ramdas, "Time-uniform central limit
 * theory and asymptotic confidence sequences" (Annals of Statistics, 2024), Gaussian mixture.
 */

/** ln(n!), exact to rounding; grown as it is asked for. */
const lnFactorials = [0, 0];

function lnFactorial(n: number): number {
  for (let next = lnFactorials.length; next <= n; next++) lnFactorials.push(lnFactorials[next - 1]! + Math.log(next));
  return lnFactorials[n]!;
}

/** ln M_n(p). */
function evidenceAgainst(rate: number, hits: number, n: number): number {
  const mixture = lnFactorial(hits) + lnFactorial(n - hits) - lnFactorial(n + 1);
  return mixture - (hits === 0 ? 0 : hits * Math.log(rate)) - (hits === n ? 0 : (n - hits) * Math.log1p(-rate));
}

const bisections = 40;

/** The lowest rate that `hits` of `n` have not excluded. */
export function rateAtLeast(hits: number, n: number, alpha: number): number {
  if (hits === 0) return 0;
  let [excluded, possible] = [0, hits / n];
  for (let step = 0; step < bisections; step++) {
    const middle = (excluded + possible) / 2;
    if (evidenceAgainst(middle, hits, n) >= -Math.log(alpha)) excluded = middle;
    else possible = middle;
  }
  return excluded;
}

/** The highest rate that `hits` of `n` have not excluded. */
export function rateAtMost(hits: number, n: number, alpha: number): number {
  return n === 0 ? 1 : 1 - rateAtLeast(n - hits, n, alpha);
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
