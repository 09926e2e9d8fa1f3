/**
 * R5 and C54: a worker that is taken for dead comes back, commits nothing, and sends no call that was waiting for its server or its slot: what may
 * still arrive late was being written as it froze, and is the only start, or has the same key.
 * The worker stands still past its lease (SIGSTOP), it is cut off from Redis alone, or a tool blocks its event loop.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { reply, startTcpProxy, type ChatBody } from '@treadle/testkit';
import { afterEach, expect, test } from 'vitest';
import { until, type Role } from '../e2e/processes.ts';
import { lateStarts, problemsOf } from './checker.ts';
import { chosenSeed, pick, randomFrom, scaled } from './random.ts';
import { allRead } from './reader.ts';
import { allEnded, historyOf, postRuns, readAll, startChaos, usagePerReply, usualScript, type ChaosStage } from './stage.ts';

const leaseMs = 2000;
const rounds = scaled({ small: 3, large: 60 });
const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `run-${index}`);

let stage: ChaosStage | null = null;
afterEach(async () => {
  await stage?.stop();
  stage = null;
});

/** Turns that workers, of all that live, had to leave: their write was refused, or they had heard first that their lease was lost. */
async function left(workers: readonly Role[]): Promise<number> {
  const texts = await Promise.all(workers.map((worker) => fetch(`${worker.url}/metrics`).then((response) => response.text())));
  const counts = texts.flatMap((text) => [...text.matchAll(/^treadle_turns_total\{[^}]*outcome="(?:fenced|failed)"[^}]*\} (\d+)/gm)]);
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

async function checked(here: ChaosStage, ids: readonly string[], readers: ReturnType<typeof readAll>): Promise<void> {
  await allEnded(here, ids, scaled({ small: 90_000, large: 1_200_000 }));
  await allRead(readers, (reader) => reader.ended);
  const history = await historyOf(here, ids, readers, { frozenWorkers: true });
  expect(problemsOf(history)).toEqual([]);
  process.stdout.write(`zombies: ${lateStarts(history).length} of ${here.ledger().length / 2} calls reached their tool late, each started once or with the same key\n`);
  expect([...here.workers.complaints, ...here.api.complaints]).toEqual([]);
}

test('C54: a worker that stood still past its lease commits nothing when it is back', async () => {
  const random = randomFrom(chosenSeed('zombies: stopped'));
  const here = stage = await startChaos();
  await here.workers.start(2);
  const ids: string[] = [];
  const readers: ReturnType<typeof readAll> = [];
  for (let round = 0; round < rounds; round++) {
    const posted = await postRuns(here, names(10).map((name) => `${round}-${name}`));
    ids.push(...posted.map(({ id }) => id));
    readers.push(...readAll(here, posted.map(({ id }) => id), random));
    await sleep(pick(random, 400));
    const zombie = here.workers.roles[pick(random, here.workers.roles.length)];
    if (zombie === undefined) throw new Error('no worker is there');
    process.kill(zombie.pid, 'SIGSTOP');
    await sleep(leaseMs + 1000 + pick(random, scaled({ small: 1500, large: 9000 })));
    process.kill(zombie.pid, 'SIGCONT');
  }
  await checked(here, ids, readers);
  expect(await left(here.workers.roles)).toBeGreaterThan(0);
}, scaled({ small: 180_000, large: 3_600_000 }));

test('a worker that is cut off from Redis past its lease commits nothing when it is back', async () => {
  const random = randomFrom(chosenSeed('zombies: cut off'));
  const here = stage = await startChaos();
  const proxy = await startTcpProxy({ port: here.redis.port });
  const apart = await here.more('worker', { REDIS_URL: `redis://127.0.0.1:${proxy.port}` });
  const posted = await postRuns(here, names(10));
  const ids = posted.map(({ id }) => id);
  const readers = readAll(here, ids, random);
  await until('the worker has runs in hand', () => here.ledger().length > 4);
  proxy.freeze();
  await here.workers.start(1);
  await sleep(leaseMs + 2000);
  await until('another worker has taken over', async () => {
    const log = await fetch(`${here.url}/v1/runs/${ids[0] ?? ''}`).then((response) => response.json()) as { status: string };
    return log.status === 'completed';
  });
  proxy.pass();
  await checked(here, ids, readers);
  await until('what the worker sent late was refused, or it had noticed', async () => await left([apart]) > 0 || /turn was left/.test(apart.output()), 20_000);
  await proxy.close();
}, 180_000);

/** Every run blocks its worker once. */
function blockingScript(body: ChatBody) {
  const results = (body.messages ?? []).filter((message) => message.role === 'tool').length;
  if (results > 0) return usualScript({ ...body, messages: (body.messages ?? []).filter((message) => message.role !== 'tool').concat(Array.from({ length: 8 }, () => ({ role: 'tool' }))) });
  const usage = { prompt: usagePerReply.input, output: usagePerReply.output };
  return reply({ usage, calls: [{ id: null, name: 'block', args: { ms: leaseMs + 1500 } }] });
}

test('C54: a tool that blocks its worker past the lease is settled once', async () => {
  const here = stage = await startChaos({ script: blockingScript, configFile: join(import.meta.dirname, 'misbehaving.config.ts') });
  await here.workers.start(2);
  const posted = await postRuns(here, names(4));
  const ids = posted.map(({ id }) => id);
  const readers = readAll(here, ids, randomFrom(1));
  await checked(here, ids, readers);
}, 180_000);
