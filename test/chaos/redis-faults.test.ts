/**
 * R6, C59, C60 and C61: Redis goes and comes back, or is slow, or refuses writes, while runs are under way. Every run completes within
 * 60 s of the return, no process is restarted, readiness is red meanwhile, and nothing happens twice.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectRedis } from '@treadle/run-store';
import { describe, expect, test, type TestContext } from 'vitest';
import { until } from '../e2e/processes.ts';
import { problemsOf } from './checker.ts';
import { chosenSeed, randomFrom, scaled } from './random.ts';
import { allRead } from './reader.ts';
import { allEnded, historyOf, postRuns, readAll, startChaos, type ChaosStage } from './stage.ts';

interface Fault {
  readonly name: string;
  /** Whether workers can notice while it lasts. */
  readonly seen: boolean;
  readonly begin: (stage: ChaosStage) => Promise<void> | void;
  readonly lastsMs: number;
  readonly end: (stage: ChaosStage) => Promise<void> | void;
}

/** The large size plays each fault twenty times, the first time for as long as an operator may need to notice. */
const plays = Array.from({ length: scaled({ small: 1, large: 20 }) }, (_, round) => faultsOf(round === 0 ? scaled : ({ small }) => small).map((fault) => ({ ...fault, round }))).flat();

async function admin(stage: ChaosStage, ...command: readonly string[]): Promise<void> {
  const redis = connectRedis(stage.redis.url, { role: 'command' });
  const [name = '', ...args] = command;
  await redis.call(name, ...args);
  redis.disconnect();
}

/** A directory in the place of its snapshot: writing one fails, and so do all writes until it works again. */
async function snapshotsFail(stage: ChaosStage, fail: boolean): Promise<void> {
  const redis = connectRedis(stage.redis.url, { role: 'command' });
  const [, dir = ''] = await redis.config('GET', 'dir') as string[];
  const path = join(dir, 'dump.rdb');
  if (fail) mkdirSync(join(path, 'in the way'), { recursive: true });
  else rmSync(path, { recursive: true });
  if (fail) await redis.config('SET', 'save', '3600 1');
  await redis.bgsave();
  await until('the snapshot is done', async () => /rdb_bgsave_in_progress:0/.test(await redis.info('persistence')));
  expect(await redis.info('persistence')).toContain(`rdb_last_bgsave_status:${fail ? 'err' : 'ok'}`);
  redis.disconnect();
}

function faultsOf(sized: typeof scaled): readonly Fault[] {
  const long = sized({ small: 5000, large: 60_000 });
  return [
    { name: 'is killed and started again', seen: true, lastsMs: sized({ small: 3000, large: 10_000 }), begin: (stage) => stage.redis.kill(), end: (stage) => stage.redis.restart() },
    {
      name: 'loses all its clients, again and again', seen: false, lastsMs: 0,
      begin: async (stage) => {
        for (let round = 0; round < 5; round++) {
          await admin(stage, 'CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
          await sleep(200);
        }
      },
      end: () => undefined,
    },
    { name: 'is behind dropped packets', seen: true, lastsMs: long, begin: (stage) => { stage.redisProxy.drop(); }, end: (stage) => { stage.redisProxy.pass(); } },
    { name: 'stands still', seen: true, lastsMs: long, begin: (stage) => { stage.redisProxy.freeze(); }, end: (stage) => { stage.redisProxy.pass(); } },
    { name: 'is forgotten by the network: connections are silent for ever', seen: false, lastsMs: 0, begin: (stage) => { stage.redisProxy.forget(); }, end: () => undefined },
    { name: 'answers half a second late', seen: false, lastsMs: sized({ small: 4000, large: 30_000 }), begin: (stage) => { stage.redisProxy.delay(500); }, end: (stage) => { stage.redisProxy.delay(0); } },
    {
      name: 'is a replica for a while, and refuses writes', seen: false, lastsMs: sized({ small: 2000, large: 5000 }),
      begin: (stage) => admin(stage, 'REPLICAOF', '127.0.0.1', '1'), end: (stage) => admin(stage, 'REPLICAOF', 'NO', 'ONE'),
    },
    {
      name: 'cannot take its snapshots, and refuses writes for that', seen: false, lastsMs: sized({ small: 2000, large: 5000 }),
      begin: (stage) => snapshotsFail(stage, true), end: (stage) => snapshotsFail(stage, false),
    },
  ];
}

type Play = typeof plays[number];

async function play({ round, name, seen, begin, lastsMs, end }: Play, { onTestFinished }: TestContext): Promise<void> {
  const random = randomFrom(chosenSeed(`redis ${name}${round === 0 ? '' : `, round ${round + 1}`}`));
  const here = await startChaos();
  onTestFinished(() => here.stop());
  await here.workers.start(2);
  const keys = (count: number, label: string): string[] => Array.from({ length: count }, (_, index) => `${label}-${index}`);
  const first = await postRuns(here, keys(round === 0 ? scaled({ small: 12, large: 100 }) : 12, 'run'));
  const pids = [...here.workers.roles, ...here.api.roles].map((role) => role.pid);
  const readers = readAll(here, first.map(({ id }) => id), random);
  await until('runs are under way', () => here.model.requests.length > 10);

  await begin(here);
  if (seen) await until('readiness is red', async () => (await Promise.all(here.workers.roles.map(ready))).every((green) => !green), 20_000);
  await sleep(lastsMs);
  await end(here);
  const backMs = Date.now();

  // Whoever comes afterwards is served, too.
  const later = await postRuns(here, keys(3, 'later'));
  const ids = [...first, ...later].map(({ id }) => id);
  await allEnded(here, ids, 60_000);
  process.stdout.write(`redis ${name}: all ended ${Math.round((Date.now() - backMs) / 100) / 10} s after the return\n`);
  await until('readiness is green', async () => (await Promise.all([...here.workers.roles, ...here.api.roles].map(ready))).every((green) => green), 20_000);
  await allRead(readers, (reader) => reader.ended);
  expect([...here.workers.roles, ...here.api.roles].map((role) => role.pid)).toEqual(pids);
  expect(problemsOf(await historyOf(here, ids, readers))).toEqual([]);
  expect([...here.workers.complaints, ...here.api.complaints]).toEqual([]);
}

/** Each has a stage of its own, and mostly waits: the small size plays two at once. */
const together = scaled({ small: 2, large: 1 });
for (let at = 0; at < plays.length; at += together) {
  describe(`faults from ${at + 1} on`, () => { test.concurrent.for(plays.slice(at, at + together))('C60: Redis $name', { timeout: 60_000 + 3 * 60_000 }, play); });
}

async function ready(role: { readonly url: string }): Promise<boolean> {
  return fetch(`${role.url}/readyz`, { signal: AbortSignal.timeout(5000) }).then((response) => response.ok, () => false);
}
