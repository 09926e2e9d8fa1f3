/** R30 and C55: workers are replaced one after the other, by SIGTERM, while runs go on; each ends in order, and nothing is lost or doubled. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { problemsOf } from './checker.ts';
import { chosenSeed, pick, randomFrom, scaled } from './random.ts';
import { allRead } from './reader.ts';
import { allEnded, historyOf, postRuns, readAll, startChaos, type ChaosStage } from './stage.ts';

let stage: ChaosStage | null = null;
afterEach(async () => {
  await stage?.stop();
  stage = null;
});

const replacements = scaled({ small: 10, large: 150 });
const perReplacement = scaled({ small: 4, large: 4 });

test('a worker replaced every two seconds loses nothing, doubles nothing and ends with 0', async () => {
  const random = randomFrom(chosenSeed('deploys'));
  const here = stage = await startChaos();
  const workers = await Promise.all([here.more('worker'), here.more('worker')]);
  const ids: string[] = [];
  const codes: Promise<number | null>[] = [];
  for (let round = 0; round < replacements; round++) {
    ids.push(...(await postRuns(here, Array.from({ length: perReplacement }, (_, index) => `${round}-${index}`))).map(({ id }) => id));
    await sleep(pick(random, 500));
    const leaving = workers.shift();
    leaving?.kill('SIGTERM');
    if (leaving !== undefined) codes.push(leaving.exited);
    workers.push(await here.more('worker'));
    await sleep(1500);
  }
  const readers = readAll(here, ids.slice(-5), random);
  await allEnded(here, ids, 60_000);
  await allRead(readers, (reader) => reader.ended);
  expect(await Promise.all(codes)).toEqual(codes.map(() => 0));
  const history = await historyOf(here, ids, readers);
  expect(problemsOf(history)).toEqual([]);
  // In order means: no turn was cut off so that its calls are in doubt.
  const unknown = history.runs.flatMap((run) => run.log.filter((line) => line.includes('"outcome":"unknown"')));
  expect(unknown).toEqual([]);
}, scaled({ small: 180_000, large: 900_000 }));
