/**
 * What one turn costs in Redis, counted exactly: commands that the process waits for (every command that any client of this
 * process sends, BullMQ's included), and bytes that end up in the append-only file.
 */
import type { RedisClient } from '@treadle/run-store';
import { Redis } from 'ioredis';
import { afterEach, expect, test } from 'vitest';
import { startCostWorker, turnOf, type CostWorker } from './worker.ts';

let worker: CostWorker | null = null;
afterEach(async () => { await worker?.stop(); worker = null; });

test.each([
  ['two read tools', ['look', 'look'] as const, 5],
  ['a read tool and a once tool', ['look', 'write'] as const, 6],
  ['one once tool', ['write'] as const, 6],
])('a turn with %s awaits few commands at saturation', async (_name, calls, most) => {
  const concurrency = 20;
  // Long runs, so that nothing but whole tool turns lies in the window that is counted.
  const window = { from: 400, to: 1400 };
  let modelCalls = 0;
  let sent = 0;
  let counting = false;
  const measured = Promise.withResolvers<number>();
  const counted = countCommands(() => { if (counting) sent++; });
  worker = await startCostWorker({ turns: 200, calls, onModelCall: () => {
    modelCalls++;
    if (modelCalls === window.from) counting = true;
    if (modelCalls === window.to) { counting = false; measured.resolve(sent); }
    return Promise.resolve();
  } });
  for (let run = 0; run < concurrency * 2; run++) await worker.enqueue();
  worker.start(concurrency);
  const commands = await measured.promise;
  counted.restore();
  const perTurn = commands / (window.to - window.from);
  // Turns that straddle the window's ends count in part; at most one per slot.
  const straddling = (concurrency * most) / (window.to - window.from);
  expect(perTurn).toBeLessThanOrEqual(most + straddling);
  expect(perTurn).toBeGreaterThan(most - 1);
});

test('a turn at length 100 writes as many bytes as one at length 10, within 10 %', async () => {
  const sizes = new Map<number, number>();
  const probe = Promise.withResolvers<void>();
  worker = await startCostWorker({ turns: 110, calls: ['look', 'look'], onModelCall: async (call) => {
    const turn = turnOf(call, 2);
    sizes.set(turn, await aofBytes(worker!.redis));
    if (turn === 110) probe.resolve();
  } });
  await worker.enqueue();
  worker.start(1);
  await probe.promise;
  const written = (from: number, turns: number): number => (sizes.get(from + turns)! - sizes.get(from)!) / turns;
  const early = written(8, 5);
  const late = written(98, 5);
  expect(early).toBeGreaterThan(2 * 2048);
  expect(Math.abs(late - early) / early).toBeLessThan(0.1);
});

async function aofBytes(redis: RedisClient): Promise<number> {
  return Number(/aof_current_size:(\d+)/.exec(await redis.info('persistence'))![1]);
}

function countCommands(onCommand: () => void): { restore: () => void } {
  const real = Redis.prototype.sendCommand;
  Redis.prototype.sendCommand = function (this: Redis, ...args: Parameters<typeof real>) {
    onCommand();
    return real.apply(this, args);
  } as typeof real;
  return { restore: () => { Redis.prototype.sendCommand = real; } };
}
