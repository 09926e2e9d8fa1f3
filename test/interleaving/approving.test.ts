/** The same scenarios where a person has to approve of each write: the first is approved, the second denied, and each is decided twice. */
import { expect, test } from 'vitest';
import { failures } from './failures.ts';
import { play, type Scenario } from './play.ts';
import { commandAtEachStep, crashAfterCrash, resends, twoZombies } from './scenarios.ts';

test('an undisturbed run does what was approved, and not what was denied', async () => {
  expect(await play({ stops: [] }, { mutations: { approves: true } })).toEqual([]);
});

test.each([
  ['a worker crashes at each step, and the next one too', crashAfterCrash],
  ['two zombies come back', twoZombies],
  ['a command comes at each step, beside a crash or a zombie', commandAtEachStep],
  ['a write is sent again later', resends],
] satisfies [string, Scenario[]][])('the invariants hold when %s', async (_name, scenarios) => {
  expect(await failures(scenarios, { mutations: { approves: true } }, 5)).toEqual([]);
}, 400_000);
