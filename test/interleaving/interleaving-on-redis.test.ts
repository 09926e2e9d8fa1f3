/**
 * A sample of the same scenarios on a real Redis: the Lua scripts, BullMQ's own jobs. Drawn by a seed that is printed on failure.
 */
import { connectRedis, type RedisClient } from '@treadle/run-store';
import { startRedis, type RedisServer } from '@treadle/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { play, type Scenario } from './play.ts';
import { commandAtEachStep, crashAfterCrash, resends, rollBacks, twoZombies, zombieThatCrashes, zombieThenCrash } from './scenarios.ts';
import { redisStage } from './stage.ts';

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
  for (const scenario of sample(scenarios)) {
    const problems = await play(scenario, { stage: () => redisStage(redis) });
    expect(problems, `seed ${seed}: ${JSON.stringify(scenario)}`).toEqual([]);
  }
}, 120_000);

/** Mulberry32: the same seed draws the same scenarios. */
function sample(scenarios: readonly Scenario[]): Scenario[] {
  let state = seed;
  const random = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  return Array.from({ length: each }, () => scenarios[Math.floor(random() * scenarios.length)]!);
}
