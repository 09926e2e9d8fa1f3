/**
 * R11 and C66: the archive slows down, is away, and comes back in a bad state, while runs go on. No run fails, the backlog can be seen,
 * nothing leaves Redis before it has been read back, and in the end the archive has everything once.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunEvent } from '@treadle/core';
import { connectRedis } from '@treadle/run-store';
import { afterEach, expect, test } from 'vitest';
import { until } from '../e2e/processes.ts';
import { problemsOf } from './checker.ts';
import { chosenSeed, randomFrom, scaled } from './random.ts';
import { allRead } from './reader.ts';
import { allEnded, historyOf, postRuns, readAll, startChaos, type ChaosStage } from './stage.ts';

let stage: ChaosStage | null = null;
afterEach(async () => {
  await stage?.stop();
  stage = null;
});

const count = scaled({ small: 40, large: 500 });
const throttledMs = scaled({ small: 8000, large: 60_000 });
const awayMs = scaled({ small: 2000, large: 240_000 });

test('C66: an archive that slows down, goes away and then fails now and then costs no run anything, and gets everything once', async () => {
  const random = randomFrom(chosenSeed('archive outage'));
  const here = stage = await startChaos();
  await here.workers.start(2);
  here.s3.answerOnly(503);
  const awaySince = performance.now();
  const ids = (await postRuns(here, Array.from({ length: count }, (_, index) => `run-${index}`))).map(({ id }) => id);
  const readers = readAll(here, ids, random);
  // A busy API may answer 503.
  const seen = (id: string) => here.client.run(id).catch(() => null);
  const open = new Set(ids);
  await until('all runs end', async () => {
    for (const id of open) {
      if ((await seen(id))?.status !== 'completed') return false;
      open.delete(id);
    }
    return true;
  }, scaled({ small: 90_000, large: 900_000 }));
  const backlog = async () => (await Promise.all(here.workers.roles.map(async (role) => Number(/^treadle_archive_backlog_events (.*)$/m.exec(await (await fetch(`${role.url}/metrics`)).text())?.[1])))).reduce((a, b) => Math.max(a, b), 0);
  await until('the backlog is seen', async () => await backlog() > count * 10);

  const [before, sinceMs] = [here.s3.requests.length, performance.now()];
  await sleep(throttledMs);
  // Each process leaves a store that throttles alone for at least a second.
  expect(here.s3.requests.length - before).toBeLessThanOrEqual(3 * Math.ceil((performance.now() - sinceMs) / 1000));
  here.s3.down();
  await sleep(awayMs);
  // But for what the workers' look at the store has left, which its fault has cut off.
  expect([...here.s3.objects.keys()].filter((key) => !key.startsWith('probe/')), 'objects while the store takes nothing').toEqual([]);
  // Only now: a request that was under way when the store went would have been taken.
  here.s3.answerOnly(null);
  const outageMs = performance.now() - awaySince;
  await expectWholeInRedis(here, ids);

  here.s3.up();
  here.s3.goWrong(3, ['reset', 503, 'reset', 500, 'reset', 'late']);
  const badSince = performance.now();
  // Which come first is chance.
  const sample = ids.filter((_, index) => index % Math.ceil(ids.length / 40) === 0);
  await until('some are archived', async () => (await Promise.all(sample.map(async (id) => Number((await seen(id))?.['archived_seq'] ?? 0) > 0))).filter(Boolean).length > 5, 240_000);
  process.stdout.write(`archive outage: an eighth archived ${Math.round((performance.now() - badSince) / 1000)} s after its return, with faults\n`);
  here.s3.goWrong(null);
  const backMs = performance.now();
  await allEnded(here, ids, scaled({ small: 120_000, large: 300_000 }));
  process.stdout.write(`archive outage: ${count} runs, away for ${Math.round(outageMs / 1000)} s, all archived ${Math.round((performance.now() - backMs) / 1000)} s after the last fault\n`);
  await until('the backlog is gone', async () => await backlog() === 0);
  await allRead(readers, (reader) => reader.ended);
  expect(problemsOf(await historyOf(here, ids, readers))).toEqual([]);
  const segments = (id: string): string[] => [...here.s3.objects.keys()].filter((key) => key.startsWith(`runs/${id}/events/`));
  await until('the segments of each are one', () => ids.every((id) => segments(id).length === 1), 60_000).catch(() => undefined);
  expect(ids.map(segments).filter((keys) => keys.length !== 1)).toEqual([]);
}, scaled({ small: 400_000, large: 2_400_000 }));

/** The stream in Redis has each event of each run, from the first on. */
async function expectWholeInRedis(stage: ChaosStage, ids: readonly string[]): Promise<void> {
  const redis = connectRedis(stage.redis.url, { role: 'command' });
  const seqs = new Map<string, number>();
  for (const key of await redis.keys('*:events')) {
    const id = ids.find((each) => key.includes(each));
    if (id !== undefined) seqs.set(id, await redis.xlen(key));
  }
  redis.disconnect();
  const last = await Promise.all(ids.map(async (id) => [id, (await stage.client.run(id)).last_seq] as const));
  expect(seqs).toEqual(new Map<string, RunEvent['seq']>(last));
}
