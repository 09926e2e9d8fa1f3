/** The same scenarios where a person is asked about calls in doubt: each gets one word, and the run goes on by it. */
import { expect, test } from 'vitest';
import { failures } from './failures.ts';
import type { Scenario } from './play.ts';
import { commandAtEachStep, crashAfterCrash, twoZombies } from './scenarios.ts';

test.each([
  ['a worker crashes at each step, and the next one too', crashAfterCrash],
  ['two zombies come back', twoZombies],
  ['a command comes at each step, beside a crash or a zombie', commandAtEachStep],
] satisfies [string, Scenario[]][])('the invariants hold when %s', async (_name, scenarios) => {
  expect(await failures(scenarios, { mutations: { asks: true } }, 5)).toEqual([]);
}, 400_000);
