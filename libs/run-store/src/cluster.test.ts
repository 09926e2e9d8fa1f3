/** The store, the feed and the clock over a Redis Cluster: three masters, two shards. */
import { turnJobs } from '@treadle/queue';
import type { FeedNotice } from '@treadle/engine';
import { runStoreConformance, startRedisCluster, type RedisCluster } from '@treadle/testkit';
import { Cluster } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { claimRun, commitOf, createRun } from './fixtures/runs.ts';
import { underTest } from './fixtures/under-test.ts';
import { connectRedis, createEventFeed, createRedisClock, createRunStore, describeRedis, inspectRedis, readinessProblems, whenReady, type RedisClient } from './index.ts';

let servers: RedisCluster;
let redis: RedisClient;
let count = 0;

beforeAll(async () => {
  servers = await startRedisCluster();
  redis = connectRedis(servers.url, { role: 'command' });
});

afterAll(async () => {
  redis.disconnect();
  await servers.stop();
});

/** A prefix whose first two shards lie on different nodes. */
async function apartPrefix(): Promise<string> {
  for (let n = 0; ; n++) {
    const slots = await Promise.all([0, 1].map(async (shard) => Number(await redis.cluster('KEYSLOT', `{apart${n}:0${shard}}`))));
    if (nodeOf(slots[0]!) !== nodeOf(slots[1]!)) return `apart${n}`;
  }
}

function nodeOf(slot: number): number {
  return slot <= 5460 ? 0 : slot <= 10_922 ? 1 : 2;
}

// Each test has a prefix of its own, so that over the suite every node runs every script.
runStoreConformance('a Redis Cluster of three nodes', () => underTest(redis, { prefix: `t${++count}`, shards: 2 }));

describe('two shards on two nodes', () => {
  test('what goes over both is answered in order', async () => {
    const prefix = await apartPrefix();
    const store = createRunStore({ redis, jobs: turnJobs({ prefix }) }, { prefix, shards: 2 });
    const runs: string[] = [];
    for (const shard of [0, 1, 0, 1]) runs.push(await createRun(store, { shard }));
    const claims = await Promise.all(runs.map((run_id) => claimRun(store, run_id, 1)));
    const stale = claims.map((claim, index) => (index === 2 ? { ...claim, epoch: 9 } : claim));
    const held = { type: 'held', inbox: [] };
    expect(await store.watch(stale.map((claim) => ({ claim, inbox_seen: 0 })))).toEqual([held, held, { type: 'fenced' }, held]);
    const committed = { type: 'committed', inbox: [] };
    expect(await store.appendMany(stale.map((claim, index) => ({ claim, expected_seq: 1, commit_id: `c${index}`, events: ['{"seq":2}'], last_ts: 3, inbox_seen: 0 }))))
      .toEqual([committed, committed, { type: 'fenced' }, committed]);
    await store.recount(claims, -1);
    const everyRun = { tenant: 'acme', status: null, agent: null, tag: null, session_id: null, before_id: null, limit: 3 };
    const first = await store.list(everyRun);
    const rest = await store.list({ ...everyRun, before_id: first.next_before_id });
    expect([...first.run_ids, ...rest.run_ids]).toEqual([...runs].reverse());
    const not_after_ms = await store.now() + 60_000;
    const replies = await Promise.all(['a', 'b', 'c', 'd', 'a'].map((key, index) => store.reserveKey({ tenant: 'acme', key, run_id: runs[index % 2]!, body_hash: `h${index}`, not_after_ms })));
    expect(replies.map((reply) => reply.type !== 'too_late' && reply.body_hash)).toEqual(['h0', 'h1', 'h2', 'h3', 'h0']);
  });

  test('the feed tells of both, and ends while a node is away', async () => {
    const prefix = await apartPrefix();
    const store = createRunStore({ redis, jobs: turnJobs({ prefix }) }, { prefix, shards: 2 });
    const stop = new AbortController();
    const notices: FeedNotice[] = [];
    let gaps = 0;
    const feed = createEventFeed({ connect: () => connectRedis(servers.url, { role: 'blocking' }) }, { prefix, shards: 2 });
    const ended = feed.follow({ onNotice: (notice) => { notices.push(notice); }, onGap: () => { gaps++; } }, stop.signal);
    for (const shard of [0, 1]) {
      await vi.waitFor(async () => {
        const run_id = await createRun(store, { shard });
        await vi.waitFor(() => { expect(notices).toContainEqual({ run_id, last_seq: 1 }); }, 300);
      }, 5000);
    }
    const claim = await claimRun(store, await createRun(store, { shard: 1 }), 1);
    await store.commit(commitOf(claim, 1, { type: 'job' }));
    await vi.waitFor(() => { expect(notices.at(-1)).toEqual({ run_id: claim.run_id, last_seq: 2 }); });
    expect(gaps).toBe(0);

    const away = servers.nodes[nodeOf(Number(await redis.cluster('KEYSLOT', `{${prefix}:01}`)))]!;
    const created = await createRun(store, { shard: 1 });
    await away.kill();
    try {
      expect(await readinessProblems(redis, { prefix, shards: 2 })).toContain('shard 1: its node of the Redis Cluster does not answer');
      // A worker's command waits for its node, and is then answered.
      const waiting = store.read(created);
      await away.restart();
      expect((await waiting)?.stored.last_seq).toBe(1);
      await vi.waitFor(async () => { expect(await readinessProblems(redis, { prefix, shards: 2 })).toEqual([]); }, 10_000);
      await vi.waitFor(async () => {
        const run_id = await createRun(store, { shard: 1 });
        await vi.waitFor(() => { expect(notices).toContainEqual({ run_id, last_seq: 1 }); }, 300);
      }, 10_000);
      expect(gaps).toBeGreaterThan(0);
    } finally {
      await away.kill();
      stop.abort();
      await ended;
      await away.restart();
    }
    await vi.waitFor(async () => { expect(await readinessProblems(redis, { prefix, shards: 2 })).toEqual([]); }, 10_000);
  }, 60_000);

  test('the API’s connection fails fast for the shard that is away only, and works again afterwards', async () => {
    const prefix = await apartPrefix();
    const own = connectRedis(servers.url, { role: 'api' });
    await whenReady(own);
    const store = createRunStore({ redis: own, jobs: turnJobs({ prefix }) }, { prefix, shards: 2 });
    await Promise.all([0, 1, 0, 1].map((shard) => createRun(store, { shard })));
    const away = servers.nodes[nodeOf(Number(await redis.cluster('KEYSLOT', `{${prefix}:01}`)))]!;
    process.kill(away.pid, 'SIGSTOP');
    const startMs = performance.now();
    const [here, there] = await Promise.allSettled([createRun(store, { shard: 0 }), createRun(store, { shard: 1 })]);
    const tookMs = performance.now() - startMs;
    process.kill(away.pid, 'SIGCONT');
    expect([here.status, there.status]).toEqual(['fulfilled', 'rejected']);
    expect(there).toMatchObject({ reason: { name: 'StoreAway' } });
    expect(tookMs).toBeLessThan(4000);
    await vi.waitFor(async () => { await createRun(store, { shard: 1 }); }, 15_000);
    own.disconnect();
  }, 30_000);

  test('every master is inspected', async () => {
    if (!(redis instanceof Cluster)) throw new TypeError('no Cluster');
    const addresses = servers.nodes.map(({ port }) => `127.0.0.1:${port}`).sort();
    const unfit = redis.nodes('master').find((node) => node.options.port === servers.nodes[1]!.port)!;
    await unfit.config('SET', 'maxmemory-policy', 'allkeys-lru');
    const found = await inspectRedis(redis);
    await unfit.config('SET', 'maxmemory-policy', 'noeviction');
    expect(found).toMatchObject({ mode: 'cluster', nodes: addresses, appendfsync: 'always' });
    expect(describeRedis(found)).toBe(`Cluster, masters: ${addresses.join(', ')}`);
    expect(found.problems.map(({ severity, problem }) => [severity, problem])).toEqual(expect.arrayContaining([
      ['error', `maxmemory-policy is allkeys-lru: when memory runs out, parts of live runs are evicted (127.0.0.1:${servers.nodes[1]!.port})`],
      ['warning', 'no replica is connected: while a master is away, its runs stand still'],
    ]));
    expect(found.problems).toHaveLength(2);
  });

  test('the clock is the nodes’', async () => {
    const clock = await createRedisClock(redis);
    await clock.refresh();
    expect(Math.abs(clock.nowMs() - Date.now())).toBeLessThan(1000);
  });
});
