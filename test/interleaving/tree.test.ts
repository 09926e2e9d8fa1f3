/** A run that starts others, its workers stopped at every step: every run ends, each is there once, nothing is written twice, nobody waits for ever. */
import { describe, expect, test } from 'vitest';
import type { Switches } from './play.ts';
import { sample } from './sample.ts';
import { treeScenarios } from './tree-scenarios.ts';
import { playTree, type TreeScenario } from './tree.ts';

const { one, two, slow, commanded, resent } = treeScenarios;
const seed = Number(process.env.TREADLE_SEED ?? Date.now() % 1_000_000);
const each = Number(process.env.TREADLE_SAMPLE ?? 250);

/** Of many a sample; `TREADLE_SAMPLE` says how large. */
async function failures(scenarios: readonly TreeScenario[], switches: Switches = {}, enough = 5): Promise<string[]> {
  const found: string[] = [];
  for (const scenario of scenarios.length <= Math.max(each, 200) ? scenarios : sample(scenarios, { seed, each })) {
    const problems = await playTree(scenario, switches);
    if (problems.length > 0) found.push(`seed ${seed}: ${JSON.stringify(scenario)}: ${problems.join('; ')}`);
    if (found.length >= enough) break;
  }
  return found;
}

describe('a tree of runs ends well', () => {
  test.each([
    ['a worker crashes, or comes back late, at any step', one], ['two do', two], ['a worker is slow and the others are not', slow],
    ['a command comes at any step', commanded], ['any write is sent again late', resent],
  ] satisfies [string, TreeScenario[]][])('when %s', async (_name, scenarios) => {
    expect(await failures(scenarios)).toEqual([]);
  }, 300_000);
});

/** A worker that is slow where it starts the others, and hears of a command late: always the same ones, since they must fail. */
const atTheStart = commanded.filter(({ slow: place, command }) => place !== undefined && place.at >= 4 && place.at <= 8 && command !== undefined && command.step >= 4 && command.step <= 9);

/** Commands to a tree that is otherwise left alone. */
const undisturbed = commanded.filter(({ slow: place, stops }) => place === undefined && stops.length === 0);

test.each([
  ['the inbox check', undisturbed, { protections: { inboxCheck: false } }], ['the parent\'s claim at a start', atTheStart, { protections: { parentCheck: false } }],
] satisfies [string, TreeScenario[], Switches][])('%s is needed', async (_name, scenarios, switches) => {
  expect(await failures(scenarios, switches, 1)).not.toEqual([]);
}, 300_000);
