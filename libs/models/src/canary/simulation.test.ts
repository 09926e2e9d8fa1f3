/**
 * The judge over synthetic runs (fixtures/synthetic-runs.ts): one world of 10,000 runs each, and many worlds for what is said in per cent.
 * `CANARY_WORLDS` plays more of them; the figures in docs/canary.md are of 1,000.
 */
import type { CanaryDefinition } from '@treadle/engine';
import { expect, test } from 'vitest';
import { playWorld, usualModel, type SyntheticModel, type WorldOutcome } from '../fixtures/synthetic-runs.ts';

const worlds = Number(process.env.CANARY_WORLDS ?? 100);
const runs = 10_000;
/** Fails every second time, where what is in use fails every twentieth. */
const bad: SyntheticModel = { ...usualModel, fails: 0.5 };
const good: SyntheticModel = { ...usualModel, fails: 0.02, seconds: 6 };

async function play(canary: SyntheticModel, count = worlds, definition: Partial<CanaryDefinition> = {}): Promise<WorldOutcome[]> {
  const outcomes: WorldOutcome[] = [];
  for (let seed = 1; seed <= count; seed++) outcomes.push(await playWorld({ seed, runs, control: usualModel, canary, definition }));
  return outcomes;
}

function figures(name: string, outcomes: readonly WorldOutcome[]): void {
  const at = (values: readonly number[], part: number): number | undefined => values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))];
  const back = outcomes.filter((each) => each.rolledBack).map((each) => each.canaryRuns);
  const primary = outcomes.filter((each) => each.stage === 100).map((each) => each.runs);
  process.stdout.write(`${name}: ${outcomes.length} worlds; rolled back ${back.length}, after ${at(back, 0.5)} runs of the canary (99 %: ${at(back, 0.99)}, most: ${at(back, 1)}); primary ${primary.length}, after ${at(primary, 0.5)} runs of all (most: ${at(primary, 1)})\n`);
}

test('10,000 runs with a clearly bad model: it is rolled back within 60 of its runs, for its failures', async () => {
  const { rolledBack, canaryRuns, decisions } = await playWorld({ seed: 2026, runs, control: usualModel, canary: bad });
  expect(rolledBack).toBe(true);
  expect(canaryRuns).toBeLessThanOrEqual(60);
  expect(decisions.map(({ decision, reason, to_stage }) => [decision, reason, to_stage])).toEqual([['promote', 'baseline', 5], ['rollback', 'failures', 0]]);
});

test('10,000 runs with a good model: it becomes the primary, stage by stage', async () => {
  const { decisions } = await playWorld({ seed: 2026, runs, control: usualModel, canary: good });
  expect(decisions.map(({ decision, from_stage, to_stage }) => [decision, from_stage, to_stage])).toEqual([['promote', 0, 5], ['promote', 5, 25], ['promote', 25, 50], ['promote', 50, 100]]);
});

test('of many worlds with an equal model fewer than 2 % roll it back', async () => {
  const outcomes = await play(usualModel);
  figures('equal', outcomes);
  expect(outcomes.filter((each) => each.rolledBack).length / outcomes.length).toBeLessThan(0.02);
  expect(outcomes.filter((each) => each.stage === 100).length / outcomes.length).toBeGreaterThan(0.9);
}, 600_000);

test('of many worlds with a bad model all roll it back, 99 % within 60 of its runs', async () => {
  const outcomes = await play(bad, worlds * 5);
  figures('bad', outcomes);
  expect(outcomes.every((each) => each.rolledBack)).toBe(true);
  expect(outcomes.filter((each) => each.canaryRuns <= 60).length / outcomes.length).toBeGreaterThanOrEqual(0.99);
}, 600_000);

test('of many worlds with a good model all make it the primary', async () => {
  const outcomes = await play(good, Math.ceil(worlds / 2));
  figures('good', outcomes);
  expect(outcomes.every((each) => each.stage === 100 && !each.rolledBack)).toBe(true);
}, 600_000);

test('a model that takes ten times as long and fails as often is not taken for one that fails', async () => {
  const lenient = { bounds: { error_rate_delta: 0.02, latency_ratio: 100, cost_ratio: 2 } };
  const slow = { ...usualModel, seconds: usualModel.seconds * 10 };
  for (let seed = 1; seed <= 10; seed++) {
    const { rolledBack, stage } = await playWorld({ seed, runs, control: usualModel, canary: slow, definition: lenient });
    expect({ seed, rolledBack, stage }).toEqual({ seed, rolledBack: false, stage: 100 });
  }
}, 120_000);

/** Figures for the docs: what lies between good and clearly bad, and models that are slow or dear. Minutes long, so only where they are asked for. */
if (process.env.CANARY_WORLDS !== undefined) {
  test('between', async () => {
    const between: Record<string, Partial<SyntheticModel>> = {
      'fails 40 %': { fails: 0.4 }, 'fails 30 %': { fails: 0.3 }, 'fails 20 %': { fails: 0.2 }, 'fails 15 %': { fails: 0.15 }, 'fails 10 %': { fails: 0.1 }, 'three times as slow': { seconds: usualModel.seconds * 3 },
      'three times as dear': { cost_usd: usualModel.cost_usd * 3 },
    };
    for (const [name, over] of Object.entries(between)) {
      const outcomes = await play({ ...usualModel, ...over }, Math.ceil(worlds / 20));
      figures(name, outcomes);
      // What is worse than the bounds never becomes the primary in most worlds.
      expect(outcomes.filter((each) => each.stage === 100).length / outcomes.length, name).toBeLessThan(0.25);
    }
    const patient = await play({ ...usualModel, fails: 0.1 }, Math.ceil(worlds / 20), { min_runs: 200 });
    figures('fails 10 %, min_runs 200', patient);
    expect(patient.filter((each) => each.stage === 100).length).toBeLessThan(patient.length / 10);
  }, 3_600_000);
}
