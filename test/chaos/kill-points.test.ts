/**
 * R1 to R4: processes die by SIGKILL at every named point, three readers per run break at random, and nothing is lost, doubled or
 * reordered. Runs of five turns with two calls each, half of them by a tool that takes an idempotency key. R26: the end of each is told.
 */
import { connectRedis } from '@treadle/run-store';
import { apiPoints, crashPoints, type CrashPoint } from '@treadle/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../e2e/processes.ts';
import { startReceiver, webhookSecret, type Receiver } from '../cases/receiver.ts';
import { problemsOf } from './checker.ts';
import { chosenSeed, pick, randomFrom, scaled } from './random.ts';
import { allRead } from './reader.ts';
import { allEnded, historyOf, postRuns, readAll, startChaos, type ChaosStage } from './stage.ts';

const perPoint = scaled({ small: 4, large: 42 });
const points = Object.keys(crashPoints) as CrashPoint[];

const secret = webhookSecret('k');
let stage: ChaosStage;
let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver(secret, (response) => { response.end(); });
  stage = await startChaos({ config: { egress: { allow: [receiver.url] } }, env: { TREADLE_WEBHOOK_SECRET: secret, TREADLE_WEBHOOK_TIMEOUT_MS: '1000', TREADLE_WEBHOOK_RETRY_MS: '50' } });
});
afterAll(async () => {
  await stage.stop();
  await receiver.stop();
});

test('kill -9 at every point loses nothing, repeats nothing and reorders nothing', async () => {
  const random = randomFrom(chosenSeed('kill points'));
  const plan = points.flatMap((point) => Array.from({ length: point === 'P20c' || point === 'P20d' ? Math.ceil(perPoint / 2) : perPoint }, (_, index) => ({ key: `${point}-${index}`, point, nth: nthOf(point, random) })));
  const ids: string[] = [];
  const readers: ReturnType<typeof readAll> = [];
  let rest: readonly Planned[] = plan;
  // A neighbour's death takes some occasions away: those faults are tried again, on runs of their own.
  for (let round = 1; round <= 3 && rest.length > 0; round++) {
    const named = rest.map((fault) => ({ ...fault, key: `${fault.key}-${round}` }));
    const idOf = await begun(named);
    ids.push(...idOf.values());
    readers.push(...readAll(stage, [...idOf.values()], random));
    await allEnded(stage, [...idOf.values()], scaled({ small: 400_000, large: 3_600_000 }));
    await until('nobody is left to be told', async () => (await stage.client.deliveries({ status: 'pending', limit: 1 })).data.length === 0, 120_000);
    const done = stage.armed.fired();
    rest = rest.filter((_, index) => !done.has(named[index]!.key) && !done.has(idOf.get(named[index]!.key)!));
  }
  await allRead(readers, (reader) => reader.ended);

  const fired = stage.armed.fired();
  const history = await historyOf(stage, ids, readers, { planned: plan.map(({ point }) => point), fired: [...fired.values()] });
  expect(problemsOf(history)).toEqual([]);
  expect(untold(ids)).toEqual([]);
  await countedOnce(history.runs.map(({ usage }) => usage));
  expect([...stage.workers.complaints, ...stage.api.complaints]).toEqual([]);
  expect(unknownWithoutCause(history.runs, fired)).toEqual([]);
  const broken = readers.reduce((sum, reader) => sum + reader.connections(), 0);
  process.stdout.write(`kill points: ${ids.length} runs, ${fired.size} kills, ${stage.workers.ends() + stage.api.ends()} processes ended, ${broken} connections of ${readers.length} readers\n`);
}, scaled({ small: 1_200_000, large: 7_200_000 }));

/** Workers died before a run was counted and right behind it; when nobody looks for a finish job any more, each run is counted once. */
async function countedOnce(used: readonly { readonly input_tokens: number; readonly output_tokens: number }[]): Promise<void> {
  const redis = connectRedis(stage.redis.url, { role: 'command' });
  await until('all runs are finished', async () => await redis.zcard('{treadle:00}:held') === 0, 60_000);
  redis.disconnect();
  const { total } = await stage.client.usage();
  const sum = (of: 'input_tokens' | 'output_tokens'): number => used.reduce((all, each) => all + each[of], 0);
  expect(total).toMatchObject({ runs: used.length, input_tokens: sum('input_tokens'), output_tokens: sum('output_tokens') });
}

/** Each end is told at least once, under its own id, signed, and with one body; outside of the product, the receiver knows. */
function untold(ids: readonly string[]): string[] {
  return ids.flatMap((id) => {
    const all = receiver.of(id.replace('run_', 'msg_'));
    const bodies = new Set(all.map(({ body }) => body));
    return [
      ...(all.length === 0 ? [`${id} was not told`] : []), ...all.flatMap(({ fault }) => fault === null ? [] : [`${id}: ${fault}`]), ...(bodies.size > 1 ? [`${id} was told differently`] : []),
      ...[...bodies].filter((body) => (JSON.parse(body) as { data: { id: string } }).data.id !== id).map(() => `${id}: another's`),
    ];
  });
}

interface Planned { readonly key: string; readonly point: CrashPoint; readonly nth: number }

/** Posts a run for each fault, and arms it. The API dies before there is a run; the model does not know the run's id. Both know the key. */
async function begun(faults: readonly Planned[]): Promise<Map<string, string>> {
  for (const { key, point, nth } of faults) if (byKey.includes(point)) stage.armed.arm(key, { point, nth });
  const idOf = new Map<string, string>();
  // In waves, so that most runs have few neighbours.
  for (let first = 0; first < faults.length; first += 96) {
    const wave = faults.slice(first, first + 96);
    const posted = await postRuns(stage, wave.map(({ key }) => key), undefined, { webhook: `${receiver.url}/hook` });
    for (const { key, id } of posted) idOf.set(key, id);
    for (const { key, point, nth } of wave) if (!byKey.includes(point)) stage.armed.arm(idOf.get(key)!, { point, nth });
    if (stage.workers.roles.length === 0) await stage.workers.start(3);
    if (first + 96 < faults.length) await allEnded(stage, posted.map(({ id }) => id), 1_200_000);
  }
  return idOf;
}

const byKey: readonly CrashPoint[] = [...apiPoints, 'P6', 'P7', 'P8'];

/** Some points are met once in a run's life, the others in each of its tool turns. */
function nthOf(point: CrashPoint, random: () => number): number {
  return [...apiPoints, 'P18a', 'P18b', 'P18c', 'P19a', 'P19b', 'P20a', 'P20b', 'P20c', 'P20d'].includes(point) ? 1 : 1 + pick(random, 3);
}

/** An unknown outcome stands only where a worker could have died between a begin and its result: neighbours of the run that killed it, too. */
function unknownWithoutCause(runs: readonly { readonly id: string; readonly log: readonly string[] }[], fired: ReadonlyMap<string, CrashPoint>): string[] {
  if (fired.size === 0) return [];
  return runs.flatMap(({ id, log }) => {
    const events = log.map((line) => JSON.parse(line) as { type: string; outcome?: string; tool_use_id?: string; turn_number: number; attempt?: number });
    const takenOver = new Set(events.filter((event) => event.type === 'turn_start' && (event.attempt ?? 1) > 1).map((event) => event.turn_number));
    return events.filter((event) => event.type === 'tool_result' && event.outcome === 'unknown' && !takenOver.has(event.turn_number)).map((event) => `${id} ${event.tool_use_id ?? ''}`);
  });
}
