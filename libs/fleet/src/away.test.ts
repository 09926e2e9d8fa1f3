/** F5: a store that is away is said to be, whatever the client would do. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ModelFleet } from '@treadle/engine';
import { startRedis, type RedisServer } from '@treadle/testkit';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createModelFleet } from './index.ts';

let server: RedisServer;
let redis: Redis;
let fleet: ModelFleet;

/** The most patient client there is: it would wait for ever. */
beforeEach(async () => {
  server = await startRedis();
  redis = new Redis(server.url, { maxRetriesPerRequest: null });
  redis.on('error', () => undefined);
  await redis.ping();
  fleet = createModelFleet({ redis, prefix: 't' });
});

afterEach(async () => {
  redis.disconnect();
  await server.stop();
});

const calls: Readonly<Record<string, (fleet: ModelFleet) => Promise<unknown>>> = {
  exchange: (each) => each.exchange([]),
  open: (each) => each.open({ target: 'model:a', error_type: 'timeout', for_ms: 1000, forced: false }),
  close: (each) => each.close('model:a:timeout'),
  takeProbe: (each) => each.takeProbe('model:a:timeout', 'token', 1000),
  dropProbe: (each) => each.dropProbe('model:a:timeout', 'token'),
  bench: (each) => each.bench({ target: 'model:a', reason: 'timeout', for_ms: 1000 }),
  unbench: (each) => each.unbench('model:a'),
  reserve: (each) => each.reserve({ id: 'id', run_id: 'run', target: 'credential:x', rates: { requests_per_minute: 1, tokens_per_minute: 1, in_flight: 1 }, tokens: 1, lease_ms: 1000 }),
  renew: (each) => each.renew('credential:x', 'id', 1000),
  settle: (each) => each.settle('credential:x', 'id', 1),
};

/** What became of each call; ten times as long as it may take is given up. */
async function outcomes(): Promise<Record<string, string>> {
  return Object.fromEntries(await Promise.all(Object.entries(calls).map(async ([name, call]) =>
    [name, await Promise.race([call(fleet).then(() => 'answered', (error: Error) => error.name), sleep(10_000, 'waited')])])));
}

const everyCall = (word: string) => Object.fromEntries(Object.keys(calls).map((name) => [name, word]));

test('a server that has died is said to be away, by every call, and is asked again when it is back', async () => {
  await server.kill();
  expect(await outcomes()).toEqual(everyCall('StoreAway'));
  await server.restart();
  await vi.waitFor(async () => { expect(await outcomes()).toEqual(everyCall('answered')); }, 10_000);
}, 30_000);

test('a server that stands still is said to be away, by every call', async () => {
  process.kill(server.pid, 'SIGSTOP');
  const heard = await outcomes();
  process.kill(server.pid, 'SIGCONT');
  expect(heard).toEqual(everyCall('StoreAway'));
  await vi.waitFor(async () => { expect(await outcomes()).toEqual(everyCall('answered')); }, 10_000);
}, 30_000);

test('a server that takes no writes is said to be away; a fault of ours is not', async () => {
  await redis.config('SET', 'maxmemory', '1');
  await expect(fleet.bench({ target: 'model:a', reason: 'timeout', for_ms: 1000 })).rejects.toMatchObject({ name: 'StoreAway' });
  await redis.config('SET', 'maxmemory', '0');
  await redis.set('{t:fleet}:benches', 'not a hash');
  await expect(fleet.bench({ target: 'model:a', reason: 'timeout', for_ms: 1000 })).rejects.toMatchObject({ name: 'ReplyError' });
});
