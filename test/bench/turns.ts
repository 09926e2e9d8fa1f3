/**
 * `npm run bench:turns`: durable turns per second and CPU per turn, as ratios to a bare BullMQ chain measured in the same process,
 * on the same Redis, round by round. Wall clock moves by a fifth on a busy machine; the ratios and CPU seconds are what counts.
 *
 * Environment: ROUNDS (5), RUNS (600), K tool turns a run (4), IN_FLIGHT (200), FSYNC (always | everysec), LATENCY_MS (0).
 */
import { fork } from 'node:child_process';
import { join } from 'node:path';
import { connectRedis, type RedisClient } from '@treadle/run-store';
import { startRedis } from '@treadle/testkit';
import { bare, treadle, type Contender, type Place } from './contenders.ts';

const rounds = Number(process.env['ROUNDS'] ?? 5);
const runs = Number(process.env['RUNS'] ?? 600);
const turns = Number(process.env['K'] ?? 4);
const inFlight = Number(process.env['IN_FLIGHT'] ?? 200);
const fsync = process.env['FSYNC'] === 'everysec' ? 'everysec' : 'always';

interface Round { readonly turnsPerS: number; readonly workerCpuMs: number; readonly redisCpuMs: number; readonly aofKb: number }

async function measure(contender: Contender, redis: RedisClient): Promise<Round> {
  for (let run = 0; run < runs; run++) await contender.enqueue();
  const before = await redisUse(redis);
  const cpu = process.cpuUsage();
  const startedMs = performance.now();
  await contender.work(runs, inFlight);
  const seconds = (performance.now() - startedMs) / 1000;
  const used = process.cpuUsage(cpu);
  const after = await redisUse(redis);
  await contender.stop();
  const count = runs * (turns + 1);
  return {
    turnsPerS: count / seconds, workerCpuMs: (used.user + used.system) / 1000 / count, redisCpuMs: (after.cpuS - before.cpuS) * 1000 / count,
    aofKb: (after.aof - before.aof) / 1024 / count,
  };
}

async function redisUse(redis: RedisClient): Promise<{ cpuS: number; aof: number }> {
  const info = await redis.info();
  const field = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1] ?? 0);
  return { cpuS: field('used_cpu_sys') + field('used_cpu_user'), aof: field('aof_current_size') };
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

const server = await startRedis({ appendfsync: fsync });
const redis = connectRedis(server.url, { role: 'command' });
// A rewrite in the middle of a round would make the file smaller, and somebody else's CPU ours.
await redis.config('SET', 'auto-aof-rewrite-percentage', '0');
const model = fork(join(import.meta.dirname, 'model-server.ts'), { env: { ...process.env, K: String(turns) } });
const port = await new Promise<number>((resolve) => { model.once('message', (message) => { resolve(message as number); }); });
const place: Place = { redisUrl: server.url, modelUrl: `http://127.0.0.1:${port}`, turns };
const results = new Map<string, Round[]>();
for (let round = 0; round <= rounds; round++) {
  for (const make of [bare, treadle]) {
    await redis.flushall();
    const contender = make(place);
    const result = await measure(contender, redis);
    // The first round warms up and is not counted.
    if (round > 0) results.set(contender.name, [...results.get(contender.name) ?? [], result]);
    process.stderr.write(`round ${round}/${rounds} ${contender.name.padEnd(8)} ${Math.round(result.turnsPerS)} turns/s\n`);
  }
}
const of = (name: string, key: keyof Round): number => median((results.get(name) ?? []).map((round) => round[key]));
process.stdout.write(`\n${turns + 1} turns a run, ${runs} runs, ${inFlight} in flight, appendfsync ${fsync}, medians of ${rounds} rounds\n`);
for (const name of ['bare', 'treadle']) {
  process.stdout.write(`${name.padEnd(8)} ${Math.round(of(name, 'turnsPerS'))} turns/s, CPU ms/turn: worker ${of(name, 'workerCpuMs').toFixed(3)} + Redis ${of(name, 'redisCpuMs').toFixed(3)}, AOF ${of(name, 'aofKb').toFixed(1)} KB/turn\n`);
}
const cpu = (name: string): number => of(name, 'workerCpuMs') + of(name, 'redisCpuMs');
process.stdout.write(`treadle / bare: ${(of('treadle', 'turnsPerS') / of('bare', 'turnsPerS') * 100).toFixed(0)} % of the turns, ${(cpu('treadle') / cpu('bare')).toFixed(2)} x the CPU\n`);
redis.disconnect();
model.disconnect();
await server.stop();
