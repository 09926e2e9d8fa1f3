import { turnJobs } from '@treadle/queue';
import { startRedis, type RedisServer } from '@treadle/testkit';
import type { FeedNotice, RunStore } from '@treadle/engine';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { claimRun, commitOf, createRun } from './fixtures/runs.ts';
import { connectRedis, createEventFeed, createRunStore, type RedisClient } from './index.ts';

let server: RedisServer;
let redis: RedisClient;
let store: RunStore;
let stop: AbortController;

beforeEach(async () => {
  server = await startRedis();
  redis = connectRedis(server.url, { role: 'command' });
  store = createRunStore({ redis, jobs: turnJobs({ prefix: 'f' }) }, { prefix: 'f', shards: 2 });
  stop = new AbortController();
});

afterEach(async () => {
  stop.abort();
  redis.disconnect();
  await server.stop();
});

/** Follows, and answers once the follower is known to read: it has told of an append made by this function. */
async function following() {
  const notices: FeedNotice[] = [];
  let gaps = 0;
  const connections: RedisClient[] = [];
  const connect = (): RedisClient => {
    const connection = connectRedis(server.url, { role: 'blocking' });
    connections.push(connection);
    return connection;
  };
  const feed = createEventFeed({ connect }, { prefix: 'f', shards: 2 });
  const ended = feed.follow({ onNotice: (notice) => { notices.push(notice); }, onGap: () => { gaps++; } }, stop.signal);
  for (const shard of [0, 1]) {
    await vi.waitFor(async () => {
      const run_id = await createRun(store, { shard });
      await vi.waitFor(() => { expect(notices).toContainEqual({ run_id, last_seq: 1 }); }, 300);
    }, 5000);
  }
  notices.length = 0;
  return { notices, gaps: () => gaps, ended, connections };
}

test('tells of every append from then on, in every shard', async () => {
  await createRun(store);
  const { notices, gaps } = await following();
  const runs = [await createRun(store, { shard: 0 }), await createRun(store, { shard: 1 })];
  const claim = await claimRun(store, runs[0]!, 1);
  await store.appendMany([{ claim, expected_seq: 1, commit_id: 'c', events: ['{}', '{}'], last_ts: 2, inbox_seen: 0 }]);
  await store.commit(commitOf(claim, 3, { type: 'job' }));
  await vi.waitFor(() => { expect(notices).toHaveLength(4); });
  expect(notices).toEqual(expect.arrayContaining([
    { run_id: runs[0], last_seq: 1 }, { run_id: runs[1], last_seq: 1 }, { run_id: runs[0], last_seq: 3 }, { run_id: runs[0], last_seq: 4 },
  ]));
  expect(gaps()).toBe(0);
});

test('ends when it is told to, and leaves no connection behind', async () => {
  const { ended, connections } = await following();
  stop.abort();
  await ended;
  await vi.waitFor(() => { expect(connections.map((connection) => connection.status)).toEqual(['end', 'end']); });
});

test('after a lost connection it says so, and goes on from where it was', async () => {
  const { notices, gaps } = await following();
  await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  const run_id = await createRun(store);
  await vi.waitFor(() => { expect(notices).toContainEqual({ run_id, last_seq: 1 }); }, 5000);
  expect(gaps()).toBeGreaterThan(0);
});

test('survives a server that dies and comes back', async () => {
  const { notices, gaps } = await following();
  await server.kill();
  await server.restart();
  const run_id = await createRun(store);
  await vi.waitFor(() => { expect(notices).toContainEqual({ run_id, last_seq: 1 }); }, 5000);
  expect(gaps()).toBeGreaterThan(0);
});

test('a feed that has lost its end is read on from where it stands now', async () => {
  const { notices, gaps } = await following();
  await redis.del('{f:00}:feed', '{f:00}:feed_n');
  await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await vi.waitFor(() => { expect(gaps()).toBeGreaterThan(0); }, 5000);
  const run_id = await createRun(store);
  await vi.waitFor(() => { expect(notices).toContainEqual({ run_id, last_seq: 1 }); }, 5000);
});

test('notices that were trimmed away before they were read are a gap', async () => {
  const { notices, gaps } = await following();
  const before = gaps();
  const next = Number(await redis.get('{f:00}:feed_n')) + 2;
  await redis.xadd('{f:00}:feed', `${next}-0`, 'run', 'run_x', 'seq', '7');
  await vi.waitFor(() => { expect(notices).toEqual([{ run_id: 'run_x', last_seq: 7 }]); });
  expect(gaps()).toBe(before + 1);
});
