/** R31 and C85: one worker for thousands of turns; after its garbage is collected, memory, handles and timers are as they were. */
import { tool, text } from '@treadle/testkit';
import { afterEach, expect, test } from 'vitest';
import { until } from '../e2e/processes.ts';
import { scaled } from './random.ts';
import { memoryOf, postRuns, settledMemoryOf, startChaos, type ChaosStage } from './stage.ts';

const mb = 1024 * 1024;
const runs = scaled({ small: 30, large: 1000 });
const turnsPerRun = 100;
/** Beyond what the small size plays: its few turns say nothing about a slope. */
const warmUp = 30_000;

interface Sample { readonly turns: number; readonly mb: number }

/** By least squares: MB per turn. */
function slopeOf(samples: readonly Sample[]): number {
  const mean = (of: (sample: Sample) => number): number => samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length;
  const [turns, size] = [mean((sample) => sample.turns), mean((sample) => sample.mb)];
  return mean((sample) => (sample.turns - turns) * (sample.mb - size)) / mean((sample) => (sample.turns - turns) ** 2);
}

let stage: ChaosStage | null = null;
afterEach(async () => {
  await stage?.stop();
  stage = null;
});

test('C85: thousands of turns leave nothing behind in the worker', async () => {
  const here = stage = await startChaos({
    limits: { max_turns: 200, tool_budget: 1000, session_timeout_s: 3600 }, env: { WORKER_CONCURRENCY: '30' },
    // Each call differs, so that nobody takes them for a loop.
    script: (body) => {
      const results = (body.messages ?? []).filter((message) => message.role === 'tool').length;
      return results < turnsPerRun - 1 ? tool(null, 't__look', { v: String(results) }) : text('done');
    },
  });
  await here.workers.start(1);
  const [worker] = here.workers.roles;
  const turnsDone = async (): Promise<number> => Number(/^treadle_turns_total\{.*outcome="ended"\} (\d+)/m.exec(await (await fetch(`${worker!.url}/metrics`)).text())?.[1] ?? 0);
  await postRuns(here, Array.from({ length: runs }, (_, index) => `run-${index}`));
  const all = runs * turnsPerRun;
  const early = scaled({ small: 500, large: 5000 });
  await until(`${early} turns`, async () => await turnsDone() >= early, 120_000);
  const before = await memoryOf(worker!);
  const rss: Sample[] = [];
  for (let turns = all / 50; turns < all; turns += all / 50) {
    await until(`${turns} turns`, async () => await turnsDone() >= turns, scaled({ small: 240_000, large: 600_000 }));
    // Caches of a bounded size are filled by then, and what runs often is compiled.
    if (turns >= warmUp) rss.push({ turns, mb: (await memoryOf(worker!)).rss / mb });
  }
  await until('all turns', async () => await turnsDone() >= all, scaled({ small: 240_000, large: 600_000 }));
  const after = await settledMemoryOf(worker!, before.resources + 5);
  const slope = rss.length === 0 ? null : slopeOf(rss) * 10_000;
  process.stdout.write(`leaks: after ${early} turns ${JSON.stringify(before)}, after ${all} ${JSON.stringify(after)}`
    + `${slope === null ? '' : `; RSS from ${warmUp} turns on ${slope.toFixed(2)} MB per 10,000 turns, ${rss[0]!.mb.toFixed(0)} MB there`}\n`);
  expect(after.heap - before.heap).toBeLessThan(20 * mb);
  if (slope !== null) expect(slope).toBeLessThan(1);
  expect(worker!.output()).not.toMatch(/MaxListenersExceeded/);
  expect(here.workers.complaints).toEqual([]);
}, scaled({ small: 400_000, large: 3_700_000 }));
