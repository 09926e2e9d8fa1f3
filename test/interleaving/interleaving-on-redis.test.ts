/**
 * A sample of the same scenarios on a real Redis: the Lua scripts, BullMQ's own jobs. Drawn by a seed that is printed on failure.
 */
import { connectRedis, type RedisClient } from '@treadle/run-store';
import { startRedis, type RedisServer } from '@treadle/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { play, type Scenario } from './play.ts';
import { commandAtEachStep, crashAfterCrash, resends, rollBacks, twoZombies, zombieThatCrashes, zombieThenCrash } from './scenarios.ts';
import { sample } from './sample.ts';
import { redisStage } from './stage.ts';
import { playTree } from './tree.ts';
import { treeScenarios } from './tree-scenarios.ts';

const seed = Number(process.env.TREADLE_SEED ?? Date.now() % 1_000_000);
const each = Number(process.env.TREADLE_SAMPLE ?? 40);

let server: RedisServer;
let redis: RedisClient;

beforeAll(async () => {
  server = await startRedis({ appendfsync: 'no' });
  redis = connectRedis(server.url, { role: 'command' });
});

afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

test.each([
  ['crashes', crashAfterCrash], ['a zombie and a crash', zombieThenCrash], ['two zombies', twoZombies], ['a zombie that crashes', zombieThatCrashes],
  ['commands', commandAtEachStep], ['late resends', resends], ['lost writes', rollBacks],
] satisfies [string, Scenario[]][])('on Redis the invariants hold under %s', async (_name, scenarios) => {
  for (const scenario of sample(scenarios, { seed, each })) {
    const problems = await play(scenario, { stage: () => redisStage(redis) });
    expect(problems, `seed ${seed}: ${JSON.stringify(scenario)}`).toEqual([]);
  }
}, 400_000);

test('on Redis the invariants hold where a person approves of each write', async () => {
  for (const scenario of sample([crashAfterCrash, twoZombies, commandAtEachStep, resends].flat(), { seed, each })) {
    const problems = await play(scenario, { mutations: { approves: true }, stage: () => redisStage(redis) });
    expect(problems, `seed ${seed}: ${JSON.stringify(scenario)}`).toEqual([]);
  }
}, 400_000);

test('on Redis the invariants hold over a tree of runs', async () => {
  for (const scenario of sample(Object.values(treeScenarios).flat(), { seed, each })) {
    const problems = await playTree(scenario, { stage: () => redisStage(redis) });
    expect(problems, `seed ${seed}: ${JSON.stringify(scenario)}`).toEqual([]);
  }
}, 400_000);
