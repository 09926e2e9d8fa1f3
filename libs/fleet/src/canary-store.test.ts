import type { CanaryDecision } from '@treadle/engine';
import { canaryStoreConformance, redisOfFile, startRedis } from '@treadle/testkit';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { canaryScripts, createCanaryStore } from './canary-store.ts';
import { fleetKeys } from './keys.ts';

let redis: Redis;
let count = 0;

redisOfFile(({ url }) => redis = new Redis(url));

canaryStoreConformance('Redis', () => createCanaryStore(redis, { prefix: `t${++count}` }));

const definition = { model: 'next', stages: [0, 5, 100], min_runs: 10, bounds: { error_rate_delta: 0.02, latency_ratio: 1.5, cost_ratio: 2 } };

test('all keys lie in the fleet\'s slot, and every script touches no other', async () => {
  const keys = fleetKeys('treadle').canary('default');
  expect(new Set(keys.map((key) => /^\{([^}]+)\}/.exec(key)?.[1]))).toEqual(new Set(['treadle:fleet']));
  const monitor = await redis.duplicate().monitor();
  const touched = new Map<string, Set<string>>();
  const named = new Set<string>();
  let seenAll = (): void => undefined;
  const watched = new Promise<void>((resolve) => { seenAll = resolve; });
  monitor.on('monitor', (_time: string, [command, first, n, ...rest]: string[], source: string) => {
    const word = command!.toLowerCase();
    if (word === 'evalsha' || word === 'eval') for (const key of rest.slice(0, Number(n))) named.add(key);
    else if (source === 'lua' && word !== 'time') touched.set(first!, touched.get(first!) ?? new Set());
    else if (word === 'ping' && first === 'that is all') seenAll();
  });
  const store = createCanaryStore(redis, { prefix: 'slots' });
  await store.declare('c', definition);
  await store.decide('c', 1, { id: 'd', to_stage: 5, status: 'active' } as CanaryDecision);
  for (const bucket of [0, 50]) await store.assign({ chain: 'c', model: 'next', run_id: `run_${bucket}`, bucket, run_at_ms: null });
  await store.report({
    chain: 'c', run_id: 'run_0', ended_ms: 1, verdict: 'completed', stop_reason: 'answered', errors: {}, validation_failures: 0, tool_calls: 0, tool_errors: 0, active_s: 1, cost_usd: 0 });
  await store.withdraw('c', 'run_50');
  await store.due('c', 0);
  await store.read('c', { decisions: 1, runs: true });
  await redis.ping('that is all');
  await watched;
  monitor.disconnect();
  expect(canaryScripts).toHaveLength(7);
  expect(touched.size).toBe(7);
  for (const key of [...touched.keys(), ...named]) expect(key).toMatch(/^\{slots:fleet\}:/);
  expect([...touched.keys()].filter((key) => !named.has(key))).toEqual([]);
});

test('a server that was restarted is given the scripts again, and knows the trial', async () => {
  const own = await startRedis();
  const client = new Redis(own.url, { maxRetriesPerRequest: null });
  client.on('error', () => undefined);
  const store = createCanaryStore(client, { prefix: 'p' });
  await store.declare('c', definition);
  await store.assign({ chain: 'c', model: 'next', run_id: 'run_1', bucket: 1, run_at_ms: null });
  await own.kill();
  await own.restart();
  expect(await store.read('c', { decisions: 1, runs: true })).toMatchObject({ state: { stage: 0, version: 1 }, runs: [{ arm: 'control', ended: null }] });
  client.disconnect();
  await own.stop();
});
