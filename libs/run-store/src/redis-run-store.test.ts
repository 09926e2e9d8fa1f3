import { createServer, connect as connectTo, type AddressInfo, type Socket } from 'node:net';
import type { RunStore } from '@treadle/engine';
import { turnJobs } from '@treadle/queue';
import { redisOfFile, startRedis, type RedisServer } from '@treadle/testkit';
import { beforeEach, expect, test, vi } from 'vitest';
import { claimRun, commitOf, createRun, runIdIn } from './fixtures/runs.ts';
import { connectRedis, createRunStore, type RedisClient, type RunStoreOptions } from './index.ts';
import { mergePages } from './run-list.ts';

let server: RedisServer;
let redis: RedisClient;
let prefix: string;
let count = 0;

redisOfFile((of) => {
  server = of;
  return redis = connectRedis(of.url, { role: 'command' });
});

beforeEach(() => { prefix = `t${++count}`; });

const storeOn = (client: RedisClient, options: RunStoreOptions): RunStore => createRunStore({ redis: client, jobs: turnJobs({ prefix }) }, options);
const waiting = async (): Promise<string[]> => redis.zrange(`{${prefix}:00}:turns:prioritized`, 0, '-1');
const everyRun = { tenant: 'acme', status: null, agent: null, tag: null, session_id: null, before_id: null, limit: 10 };

/** A connection that can be cut after Redis has done what it was told and before its answer arrives. */
async function cuttable() {
  let cutNext = false;
  const sockets = new Set<Socket>();
  const proxy = createServer((near) => {
    const far = connectTo(server.port, '127.0.0.1');
    sockets.add(near).add(far);
    near.on('data', (data) => far.write(data));
    far.on('data', (data) => {
      if (!cutNext) { near.write(data); return; }
      cutNext = false;
      near.destroy();
      far.destroy();
    });
    for (const [one, other] of [[near, far], [far, near]] as const) one.on('error', () => undefined).on('close', () => other.destroy());
  });
  await new Promise<void>((resolve) => { proxy.listen(0, '127.0.0.1', resolve); });
  return {
    url: `redis://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    cutNextAnswer: () => { cutNext = true; },
    close: () => { proxy.close(); for (const socket of sockets) socket.destroy(); },
  };
}

test('a call whose answer was lost is sent again by the client, happens once, and is answered as the first time', async () => {
  const proxy = await cuttable();
  const client = connectRedis(proxy.url, { role: 'command' });
  const store = storeOn(client, { prefix, shards: 1 });
  const run_id = runIdIn(0);
  const cut = async <T>(call: () => Promise<T>): Promise<T> => { proxy.cutNextAnswer(); return call(); };
  // The scripts are known, so that the answer that is lost is that of the call itself.
  await createRun(store);
  const other = await claimRun(store, await createRun(store), 1);
  await store.appendMany([{ claim: other, expected_seq: 1, commit_id: 'warm', events: ['{}'], last_ts: 2, inbox_seen: 0 }]);
  await store.command({ run_id: other.run_id, command_id: 'warm', command: { type: 'pause' }, not_after_ms: Date.now() + 60_000 });
  await store.commit({ ...commitOf(other, 2, { type: 'pause' }, 'paused'), inbox_seen: 1 });

  await cut(() => createRun(store, { run_id }));
  const claim = await cut(() => claimRun(store, run_id, 1));
  expect(claim.epoch).toBe(1);
  const append = { claim, expected_seq: 1, commit_id: 'a', events: ['{"seq":2}'], last_ts: 2, inbox_seen: 0 };
  expect(await cut(() => store.appendMany([append]))).toEqual([{ type: 'committed', inbox: [] }]);
  expect(await cut(() => store.commit(commitOf(claim, 2, { type: 'pause' }, 'paused')))).toEqual({ type: 'committed', inbox: [] });
  const resume = { run_id, command_id: 'r', command: { type: 'resume' as const }, not_after_ms: Date.now() + 60_000 };
  expect(await cut(() => store.command(resume))).toEqual({ type: 'accepted' });

  expect((await store.events(run_id, 0, 10))?.events).toEqual(['{"seq":1}', '{"seq":2}', '{"seq":3}']);
  expect((await waiting()).filter((id) => id.startsWith(run_id)).sort()).toEqual([`${run_id}-1`, `${run_id}-3`]);
  const claimed = await store.claim({ run_id, n: 3, claim_id: 'c', held: null });
  expect(claimed).toMatchObject({ type: 'claimed', epoch: 2, inbox_in: 1, deliveries: 1 });
  client.disconnect();
  proxy.close();
});

test('what was acknowledged survives the death of the server, and the restarted one is given the scripts again', async () => {
  const own = await startRedis();
  const client = connectRedis(own.url, { role: 'command' });
  const store = storeOn(client, { prefix, shards: 1 });
  const run_id = await createRun(store);
  const claim = await claimRun(store, run_id, 1);
  await store.commit(commitOf(claim, 1, { type: 'keep' }));
  await own.kill();
  await own.restart();
  expect(await store.commit(commitOf(claim, 2, { type: 'job' }))).toEqual({ type: 'committed', inbox: [] });
  expect((await store.events(run_id, 0, 10))?.events).toHaveLength(3);
  client.disconnect();
  await own.stop();
});

test('jobs wait in this order: cancels of runs not begun, runs that have begun, first turns; each by the run’s priority', async () => {
  const store = storeOn(redis, { prefix, shards: 1 });
  const [slow, quick, begun, cancelled] = [
    await createRun(store, { priority: 90 }), await createRun(store, { priority: 1 }), await createRun(store, { priority: 100 }), await createRun(store, { priority: 100 }),
  ];
  await store.commit(commitOf(await claimRun(store, begun, 1), 1, { type: 'job' }));
  await store.command({ run_id: cancelled, command_id: 'c', command: { type: 'cancel' }, not_after_ms: Date.now() + 60_000 });
  const order = (await waiting()).filter((id) => [`${slow}-1`, `${quick}-1`, `${begun}-2`, `${cancelled}-2`].includes(id));
  expect(order).toEqual([`${cancelled}-2`, `${begun}-2`, `${quick}-1`, `${slow}-1`]);
});

test('a claim that nobody holds is nobody’s, whatever is asked', async () => {
  const store = storeOn(redis, { prefix, shards: 1 });
  const claim = await claimRun(store, await createRun(store), 1);
  await store.handBack(claim);
  expect(await store.commit(commitOf({ ...claim, claim_id: '' }, 1, { type: 'keep' }))).toEqual({ type: 'fenced' });
});

test('what runs have used is kept for as many days as it is said, from the end of theirs', async () => {
  const day = new Date().toISOString().slice(0, 10);
  const store = createRunStore({ redis, jobs: turnJobs({ prefix }) }, { prefix, shards: 1, keepUsageDays: 3 });
  for (const run_id of [await createRun(store), await createRun(store)]) {
    await store.commit(commitOf(await claimRun(store, run_id, 1), 1, { type: 'end' }, 'completed'));
    await store.finished(run_id, { tenant: 'acme', agent: 'a', day, models: {} });
  }
  const [key, ...more] = await redis.keys(`{${prefix}:00}:usage:*`);
  expect([key, more]).toEqual([`{${prefix}:00}:usage:${day}:acme`, []]);
  expect(await redis.pexpiretime(key!)).toBe(Date.parse(day) + 4 * 24 * 3_600_000);
});

test('an expired run is gone whole, also from the list', async () => {
  const store = storeOn(redis, { prefix, shards: 1 });
  const run_id = await createRun(store);
  await store.commit(commitOf(await claimRun(store, run_id, 1), 1, { type: 'end' }, 'completed'));
  await store.finished(run_id);
  await store.archived((await store.seal(run_id, 10))!, { keep_events: 100, retention_ms: 50 });
  expect((await store.list(everyRun)).run_ids).toEqual([run_id]);
  await vi.waitFor(async () => { expect(await store.read(run_id)).toBeNull(); });
  await store.pump(0, { limit: 10, grace_ms: 1000 });
  expect(await redis.zcard(`{${prefix}:00}:index:acme`)).toBe(0);
  expect(await redis.keys(`*${run_id}:*`)).toEqual([]);
});

test('a run whose segments are to be merged outlives its retention until they are, then is gone whole', async () => {
  const store = storeOn(redis, { prefix, shards: 1 });
  const run_id = await createRun(store);
  await store.commit(commitOf(await claimRun(store, run_id, 1), 1, { type: 'end' }, 'completed'));
  await store.finished(run_id);
  for (let times = 0; times < 2; times++) await store.archived((await store.seal(run_id, 1))!, { keep_events: 100, retention_ms: 0 });
  const left = await redis.pttl(`{${prefix}:00}:run:${run_id}:ctl`);
  expect(left).toBeGreaterThan(3_500_000);
  expect(left).toBeLessThanOrEqual(3_600_000);
  expect((await store.read(run_id))?.archived_seq).toBe(2);
  await store.archiveDutyDone(run_id, 'merge', { settle_ms: 0 });
  expect(await redis.keys(`*${run_id}:*`)).toEqual([]);
  await store.pump(0, { limit: 10, grace_ms: 1000 });
  expect([await redis.zcard(`{${prefix}:00}:index:acme`), await redis.zcard(`{${prefix}:00}:to_archive`), await redis.zcard(`{${prefix}:00}:expiring`)]).toEqual([0, 0, 0]);
});

test('a deleted run leaves one key, which goes when no idempotency key can name the run any more', async () => {
  const store = storeOn(redis, { prefix, shards: 1, keepReservationMs: 100 });
  const run_id = await createRun(store);
  await store.commit(commitOf(await claimRun(store, run_id, 1), 1, { type: 'end' }, 'completed'));
  await store.remove({ run_id, tenant: 'acme', not_after_ms: Number.MAX_SAFE_INTEGER });
  expect(await redis.keys(`*run:${run_id}:*`)).toEqual([`{${prefix}:00}:run:${run_id}:ctl`]);
  await store.finished(run_id);
  for (let times = 0; times < 2; times++) await store.archiveDutyDone(run_id, 'remove', { settle_ms: 0 });
  expect(await store.removed(run_id)).toMatchObject({ tenant: 'acme' });
  await vi.waitFor(async () => { expect(await store.removed(run_id)).toBeNull(); });
  for (const name of ['to_archive', 'held', 'due', 'expiring', 'index:acme']) expect(await redis.zcard(`{${prefix}:00}:${name}`)).toBe(0);
});

test('lists over all shards, newest first, page by page', async () => {
  const store = storeOn(redis, { prefix, shards: 3 });
  const ids: string[] = [];
  for (const shard of [0, 1, 2, 0, 0, 1]) ids.unshift(await createRun(store, { shard }));
  const found: string[] = [];
  let before_id: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof store.list>> = await store.list({ ...everyRun, before_id, limit: 2 });
    expect(page.run_ids.length).toBeLessThanOrEqual(2);
    found.push(...page.run_ids);
    before_id = page.next_before_id;
  } while (before_id !== null);
  expect(found).toEqual(ids);
});

test('a page ends where a shard stopped looking, so that nothing is passed over', () => {
  const pages = [{ run_ids: ['run_9', 'run_2'], scanned_to: null }, { run_ids: ['run_8'], scanned_to: 'run_7' }];
  expect(mergePages(pages, 10)).toEqual({ run_ids: ['run_9', 'run_8'], next_before_id: 'run_7' });
  expect(mergePages([{ run_ids: [], scanned_to: 'run_7' }], 10)).toEqual({ run_ids: [], next_before_id: 'run_7' });
  expect(mergePages([{ run_ids: ['run_9', 'run_2'], scanned_to: null }], 2)).toEqual({ run_ids: ['run_9', 'run_2'], next_before_id: null });
});

test('a resent reservation is still the first one’s', async () => {
  const store = storeOn(redis, { prefix, shards: 1 });
  const key = { tenant: 'a', key: 'k', run_id: runIdIn(0), body_hash: 'h', not_after_ms: Date.now() + 60_000 };
  for (let i = 0; i < 2; i++) expect(await store.reserveKey(key)).toEqual({ type: 'reserved', run_id: key.run_id, body_hash: 'h' });
});
