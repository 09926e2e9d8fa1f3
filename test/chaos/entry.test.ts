/**
 * R9, R10 and C58, C64: what enters happens once, or not at all. One idempotency key is one run, over three API processes that are
 * killed and come back; what was given up while Redis stood still does not happen afterwards.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { problemsOf } from './checker.ts';
import { scaled } from './random.ts';
import { allEnded, historyOf, listedRuns, post, startChaos, type ChaosStage } from './stage.ts';

let stage: ChaosStage | null = null;
afterEach(async () => {
  await stage?.stop();
  stage = null;
});

/** Keys at a time, each asked for fifty times at once: more would only wait for each other in this process. */
const together = 10;

test('C58: fifty equal posts with one key are one run, over three API processes, one of which is killed meanwhile', async () => {
  const here = stage = await startChaos();
  const others = await Promise.all([here.more('api'), here.more('api')]);
  const urls = [here.url, ...others.map((role) => role.url)];
  const keys = Array.from({ length: scaled({ small: 10, large: 200 }) }, (_, index) => `key-${index}`);
  const body = (key: string) => ({ agent: 'tester', input: `Write rows. [[${key}]]` });
  const ids = new Map<string, Set<string>>();
  const ask = async (key: string): Promise<void> => {
    const answers = await Promise.all(Array.from({ length: 50 }, (_, index) => post(urls[index % urls.length]!, key, body(key))));
    expect(answers.filter(({ status }) => status !== 202 && status !== 200)).toEqual([]);
    ids.set(key, new Set(answers.map(({ id }) => id ?? '')));
  };
  for (let from = 0; from < keys.length; from += together) {
    const asking = keys.slice(from, from + together).map(ask);
    await sleep(50);
    here.api.roles[0]?.kill('SIGKILL');
    await Promise.all(asking);
  }
  expect([...ids.values()].map((set) => set.size)).toEqual(keys.map(() => 1));

  const runs = keys.map((key) => [...ids.get(key)!][0]!);
  await here.workers.start(1);
  await allEnded(here, runs, 120_000);
  // The same again, after all is done and after a restart; and another body under the same key.
  here.api.roles[0]?.kill('SIGKILL');
  for (const [index, key] of keys.entries()) expect(await post(urls[index % 3]!, key, body(key))).toEqual({ status: 200, id: runs[index] });
  expect((await post(urls[0]!, keys[0]!, { agent: 'tester', input: 'other' })).status).toBe(409);
  expect((await here.client.runs({ limit: '200' })).data).toHaveLength(keys.length);
  expect(problemsOf(await historyOf(here, runs, []))).toEqual([]);
}, scaled({ small: 180_000, large: 900_000 }));

/** Redis stands still while 20 creates and 5 cancels give up; what they asked for must not happen when it is back. */
async function giveUp(here: ChaosStage, round: number, stillMs: number): Promise<{ readonly live: readonly string[]; readonly tookMs: number }> {
  const live = await Promise.all(Array.from({ length: 5 }, (_, index) => post(here.url, `live-${round}-${index}`, { agent: 'tester', input: `[[live-${round}-${index}]]` })));
  here.redisProxy.freeze();
  const give = (path: string, body: unknown, key: string) => fetch(`${here.url}${path}`, {
    method: 'POST', headers: { 'content-type': 'application/json', 'idempotency-key': key }, body: JSON.stringify(body), signal: AbortSignal.timeout(8000),
  }).then(async (response) => ({ status: response.status, code: (await response.json() as { code?: string }).code ?? '' }));
  const started = performance.now();
  const answers = await Promise.all([
    ...Array.from({ length: 20 }, (_, index) => give('/v1/runs', { agent: 'tester', input: `[[ghost-${round}-${index}]]` }, `ghost-${round}-${index}`)),
    ...live.map(({ id }, index) => give(`/v1/runs/${id ?? ''}/cancel`, {}, `cancel-${round}-${index}`)),
  ]);
  const tookMs = performance.now() - started;
  expect(answers.filter(({ status }) => status !== 503)).toEqual([]);
  await sleep(stillMs);
  here.redisProxy.pass();
  await sleep(1500);
  return { live: live.map(({ id }) => id!), tookMs };
}

test('C64: creates and cancels that were given up while Redis stood still do not happen afterwards', async () => {
  const here = stage = await startChaos();
  const rounds = scaled({ small: 1, large: 10 });
  const ids: string[] = [];
  let longestMs = 0;
  for (let round = 0; round < rounds; round++) {
    const { live, tookMs } = await giveUp(here, round, round === 0 ? scaled({ small: 6000, large: 30_000 }) : 6000);
    ids.push(...live);
    longestMs = Math.max(longestMs, tookMs);
  }
  process.stdout.write(`ghosts: ${25 * rounds} requests were answered 503, the slowest after ${Math.round(longestMs)} ms\n`);
  await here.workers.start(1);
  await allEnded(here, ids, 60_000);
  expect((await listedRuns(here)).sort()).toEqual([...ids].sort());
  const all = await Promise.all(ids.map((id) => here.client.run(id)));
  expect(all.map((run) => run.status)).toEqual(ids.map(() => 'completed'));
  // The same keys again, now: each run happens once, under the client's own word.
  const again = await Promise.all(Array.from({ length: rounds }, async (_, round) => (await post(here.url, `ghost-${round}-0`, { agent: 'tester', input: `[[ghost-${round}-0]]` })).id!));
  await allEnded(here, again, 60_000);
  expect(problemsOf(await historyOf(here, [...ids, ...again], []))).toEqual([]);
}, scaled({ small: 180_000, large: 900_000 }));
