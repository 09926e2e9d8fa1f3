/** The fleet's knowledge over real servers: what the port promises, sent once, sent twice, and over a Cluster; and what is left behind. */
import { setTimeout as sleep } from 'node:timers/promises';
import { modelFleetConformance, startRedis, startRedisCluster, type FleetUnderTest, type RedisCluster, type RedisServer } from '@treadle/testkit';
import { Cluster, Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createModelFleet, type ModelFleetOptions } from './index.ts';

let server: RedisServer;
let cluster: RedisCluster;
let redis: Redis;
let nodes: Cluster;
let count = 0;

beforeAll(async () => {
  [server, cluster] = await Promise.all([startRedis(), startRedisCluster()]);
  redis = new Redis(server.url);
  nodes = new Cluster(cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port })));
});

afterAll(async () => {
  redis.disconnect();
  nodes.disconnect();
  await Promise.all([server.stop(), cluster.stop()]);
});

/** A fleet that nobody knows yet. */
function under(client: () => ModelFleetOptions['redis'], courses = 1): FleetUnderTest {
  const prefix = `t${++count}`;
  return {
    // A machine that is slow for a while must not fail a test that is not about that.
    join: (options) => createModelFleet({ redis: client(), prefix, callTimeoutMs: 20_000, ...options }),
    passTime: async (ms) => { await sleep(Math.ceil(ms) + 1); }, nowMs: () => performance.now(), still: false, courses, courseMinuteMs: 600,
  };
}

/** Stands in for a client that sends a command again because the connection broke before its answer came; the answers are the first ones. */
function sendingTwice(client: Redis): Redis {
  return new Proxy(client, {
    get: (target, name) => {
      if (name !== 'evalsha' && name !== 'eval') return Reflect.get(target, name, target) as unknown;
      return async (...call: Parameters<Redis['evalsha']>) => {
        const answer = await target[name](...call);
        await target[name](...call);
        return answer;
      };
    },
  });
}

modelFleetConformance('one Redis server', () => under(() => redis, 4));
modelFleetConformance('a client that sends everything twice', () => under(() => sendingTwice(redis)));
modelFleetConformance('a Redis Cluster of three nodes', () => under(() => nodes));

test('what nobody asks for any more goes by itself, except what is open and benched', async () => {
  const prefix = `t${++count}`;
  const fleet = createModelFleet({ redis, prefix, callTimeoutMs: 20_000 });
  const ask = { target: 'credential:x', rates: { requests_per_minute: 2, tokens_per_minute: 10, in_flight: 1 }, tokens: 3, lease_ms: 1000 };
  for (const n of [1, 2, 3]) await fleet.reserve({ ...ask, id: `id-${n}`, run_id: `run-${n}` });
  await fleet.renew('credential:x', 'id-1', 5_000_000);
  await fleet.settle('credential:y', 'unknown', 1);
  await fleet.exchange([{ target: 'model:a', ok: 1, failed: {} }]);
  await fleet.open({ target: 'model:a', error_type: 'timeout', for_ms: 1000, forced: false });
  await fleet.takeProbe('model:b:timeout', 'token', 1000);
  await fleet.bench({ target: 'credential:x', reason: 'rate_limited', for_ms: 1000 });
  const left = await redis.keys(`{${prefix}:fleet}*`);
  const lasting = (await Promise.all(left.map(async (key) => ({ key, ttl: await redis.pttl(key) })))).filter(({ ttl }) => ttl < 0);
  expect(left).toHaveLength(10);
  expect(lasting.map(({ key }) => key).sort()).toEqual([`{${prefix}:fleet}:benches`, `{${prefix}:fleet}:breakers`]);
  // A place is known for as long as it is believed in.
  expect(await redis.pttl(`{${prefix}:fleet}:rates:calls:credential:x`)).toBeGreaterThan(5_000_000);
});

test('what processes have seen is no longer than a window, however many tell', async () => {
  const prefix = `t${++count}`;
  const fleet = createModelFleet({ redis, prefix, callTimeoutMs: 20_000, windowMs: 50 });
  for (let n = 0; n < 5; n++) await fleet.exchange([{ target: 'model:a', ok: n, failed: {} }]);
  await sleep(60);
  await fleet.exchange([{ target: 'model:a', ok: 9, failed: {} }]);
  expect(await redis.xlen(`{${prefix}:fleet}:outcomes`)).toBeLessThanOrEqual(1);
});

test('a server that has lost its scripts is given them again', async () => {
  const fleet = createModelFleet({ redis, prefix: `t${++count}`, callTimeoutMs: 20_000 });
  await fleet.takeProbe('model:a:timeout', 'one', 60_000);
  await redis.script('FLUSH');
  expect(await fleet.takeProbe('model:a:timeout', 'other', 60_000)).toBe(false);
});

test.each([
  ['a wait that is no number', (fleet: ReturnType<typeof createModelFleet>) => fleet.bench({ target: 'model:a', reason: 'timeout', for_ms: Number.NaN })],
  ['a lease of nothing', (fleet) => fleet.takeProbe('model:a:timeout', 'token', 0)],
  ['fewer tokens than none', (fleet) => fleet.settle('credential:x', 'id', -1)],
])('%s is refused', async (_what, call) => {
  await expect(call(createModelFleet({ redis, prefix: 'refusing' }))).rejects.toThrow(RangeError);
});
