/**
 * R7: Redis comes back without its last second (`appendfsync everysec` and a machine that dies). Each run goes on from where Redis, or the
 * archive, has it; readers who have seen more are told so; tools with a key get the same one again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { reply, type ChatBody } from '@treadle/testkit';
import { afterEach, expect, test } from 'vitest';
import { until } from '../e2e/processes.ts';
import { problemsOf } from './checker.ts';
import { chosenSeed, pick, randomFrom, scaled } from './random.ts';
import { allRead } from './reader.ts';
import { allEnded, historyOf, postRuns, readAll, startChaos, toolTurns, usagePerReply, type ChaosStage } from './stage.ts';

const rounds = scaled({ small: 2, large: 10 });
const runsPerRound = scaled({ small: 8, large: 10 });

let stage: ChaosStage | null = null;
afterEach(async () => {
  await stage?.stop();
  stage = null;
});

/** As the usual one, but slow enough to be under way for some seconds. */
function slowScript(body: ChatBody) {
  const results = (body.messages ?? []).filter((message) => message.role === 'tool').length;
  const delivery = { delayMs: 500, chunkDelayMs: 40 };
  const usage = { prompt: usagePerReply.input, output: usagePerReply.output };
  if (results >= toolTurns * 2) return reply({ text: 'All rows are there, and that is all.', usage, pieces: 4 }, delivery);
  const calls = [{ id: null, name: 't__row', args: { v: String(results) } }, { id: null, name: 't__keyed_row', args: { v: String(results) } }];
  return reply({ text: 'I write two rows, one of them with a key.', pieces: 4, calls, usage }, delivery);
}

test.each(['async', 'strict'])('Redis loses its last second, archiving is %s', async (mode) => {
  const random = randomFrom(chosenSeed(`lost second ${mode}`));
  const here = stage = await startChaos({ script: slowScript, redis: { appendfsync: 'everysec', args: ['--aof-timestamp-enabled', 'yes'] }, env: { ARCHIVE_MODE: mode, LOG_LEVEL: 'warn' } });
  await here.workers.start(2);
  const pids = [...here.workers.roles, ...here.api.roles].map((role) => role.pid);
  const ids: string[] = [];
  const readers: ReturnType<typeof readAll> = [];
  for (let round = 0; round < rounds; round++) {
    const posted = await postRuns(here, Array.from({ length: runsPerRound }, (_, index) => `run-${round}-${index}`));
    ids.push(...posted.map(({ id }) => id));
    readers.push(...readAll(here, posted.map(({ id }) => id), random));
    // So that the runs themselves are not lost.
    await sleep(2100 + pick(random, 1500));
    await here.redis.rewind(Math.floor(Date.now() / 1000) - 1);
    await sleep(pick(random, 1500));
  }
  await allEnded(here, ids, 120_000);
  await allRead(readers, (reader) => reader.ended);
  // Some saw the end of a run that had then still to be found again.
  await allRead(readers, (reader) => reader.comeBack());
  await until('readiness is green', async () => (await Promise.all([...here.workers.roles, ...here.api.roles].map(ready))).every((green) => green), 20_000);

  // What Redis had acknowledged and lost may be done again where no key says that it was.
  const history = await historyOf(here, ids, readers, { readTools: ['row'] });
  expect(problemsOf(history)).toEqual([]);
  expect([...here.workers.roles, ...here.api.roles].map((role) => role.pid)).toEqual(pids);
  expect([...here.workers.complaints, ...here.api.complaints]).toEqual([]);
  const writtenBack = here.workers.roles.reduce((sum, role) => sum + (role.output().match(/it was put back from the archive/g) ?? []).length, 0);
  const resets = readers.reduce((sum, reader) => sum + reader.resets(), 0);
  process.stdout.write(`lost second ${mode}: ${ids.length} runs, ${rounds} losses, ${writtenBack} written back, ${resets} resets of ${readers.length} readers\n`);
  expect(writtenBack + resets).toBeGreaterThan(0);
}, scaled({ small: 180_000, large: 1_800_000 }));

async function ready(role: { readonly url: string }): Promise<boolean> {
  return fetch(`${role.url}/readyz`, { signal: AbortSignal.timeout(5000) }).then((response) => response.ok, () => false);
}
