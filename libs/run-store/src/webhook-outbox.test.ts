/** What the conformance suite does not say of the outbox: pages over shards, and how long what has ended is kept. */
import { redisOfFile } from '@treadle/testkit';
import { turnJobs } from '@treadle/queue';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { claimRun, commitOf, createRun } from './fixtures/runs.ts';
import { createRunStore } from './index.ts';
import { createKeys } from './keys.ts';

let redis: Redis;
let count = 0;

redisOfFile(({ url }) => redis = new Redis(url));
const told = { tenant: 'acme', target: { url: 'https://a.example' }, lane: 'https://a.example', body: '{}' };
const all = { limit: 100, per_tenant: 100, per_lane: 100, busy: {}, lease_ms: 60_000 };

function world() {
  const prefix = `w${++count}`;
  const store = createRunStore({ redis, jobs: turnJobs({ prefix }) }, { prefix, shards: 2 });
  async function ended(shard: number): Promise<string> {
    const run_id = await createRun(store, { shard });
    await store.commit(commitOf(await claimRun(store, run_id, 1), 1, { type: 'end' }, 'completed'));
    await store.finished(run_id, null, told);
    return run_id;
  }
  const list = (over: object = {}) => store.deliveries({ tenant: 'acme', state: null, before_id: null, limit: 50, ...over });
  return { store, ended, list, keys: createKeys(prefix).webhooks(0) };
}

test('pages go over all shards, newest first, and none is shown twice or left out', async () => {
  const { ended, list } = world();
  const made: string[] = [];
  for (const shard of [0, 1, 1, 0, 1, 0, 0]) made.push(await ended(shard));
  const found: string[] = [];
  for (let before_id: string | null = null, pages = 0; pages < 20; pages++) {
    const page = await list({ before_id, limit: 2 });
    found.push(...page.deliveries.map(({ run_id }) => run_id));
    before_id = page.next_before_id;
    if (before_id === null) break;
  }
  expect(found).toEqual(made.sort().reverse());
});

test('what has ended is dropped when its time is over, whole; what is pending is not', async () => {
  const { store, ended, list, keys } = world();
  const [first, second, pending] = [await ended(0), await ended(0), await ended(0)];
  const taken = await store.takeDeliveries(0, all);
  for (const run_id of [first, second]) await store.settleDelivery(taken.find((each) => each.run_id === run_id)!, run_id === first ? { type: 'delivered', status: 200 } : { type: 'dead', status: 500, error: 'x' });
  const hours = async (run_id: string) => Math.round((Number(await redis.zscore(keys.expiring, `${run_id} acme`)) - await store.now()) / 3_600_000);
  expect([await hours(first), await hours(second)]).toEqual([24, 168]);
  await redis.zadd(keys.expiring, 1, `${first} acme`, 1, `${second} acme`);
  expect(await store.takeDeliveries(0, all)).toEqual([]);
  expect((await list()).deliveries.map(({ run_id }) => run_id)).toEqual([pending]);
  const left = (await redis.keys('*webhooks*')).filter((key) => key.startsWith(keys.tenants.slice(0, keys.tenants.indexOf('}'))));
  expect(left.map((key) => key.slice(key.indexOf('webhooks'))).sort()).toEqual(['webhooks:lane:acme https://a.example', 'webhooks:lanes:acme', 'webhooks:list:acme', `webhooks:of:${pending}`, 'webhooks:tenants']);
});

test('of a tenant’s ended ones the oldest go where there are too many', async () => {
  const { store, ended, list, keys } = world();
  const [oldest, newest] = [await ended(0), await ended(0)];
  const taken = await store.takeDeliveries(0, all);
  await store.settleDelivery(taken.find(({ run_id }) => run_id === oldest)!, { type: 'dead', status: 500, error: 'x' });
  const of = keys.ended.replace('*', 'acme');
  await redis.zadd(of, ...Array.from({ length: 999 }, (_, n) => [Date.now() + 1000 + n, `run_${n}`]).flat());
  expect(await list({ state: 'dead' })).toMatchObject({ deliveries: [{ run_id: oldest }] });
  await store.settleDelivery(taken.find(({ run_id }) => run_id === newest)!, { type: 'delivered', status: 200 });
  expect((await list()).deliveries.map(({ run_id }) => run_id)).toEqual([newest]);
  expect(await redis.zcard(of)).toBe(1000);
});
