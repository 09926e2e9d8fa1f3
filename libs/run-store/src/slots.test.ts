import { noUsage } from '@treadle/core';
import { turnJobs } from '@treadle/queue';
import { newScheduleId, someDefinition, redisOfFile } from '@treadle/testkit';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { claimRun, commitOf, createRun, runIdIn } from './fixtures/runs.ts';
import { createRunStore, createScheduleStore } from './index.ts';
import { createKeys } from './keys.ts';
import { scriptNames } from './script-texts.ts';

let redis: Redis;

redisOfFile(({ url }) => redis = new Redis(url));

/** What decides the slot: the text in the first braces, else the whole key. */
function hashTag(key: string): string {
  return /\{([^}]+)\}/.exec(key)?.[1] ?? key;
}

test('all keys that one script names or touches lie in one slot', async () => {
  const monitor = await redis.duplicate().monitor();
  const calls: { named: string[]; touched: Set<string> }[] = [];
  let seenAll = (): void => undefined;
  const watched = new Promise<void>((resolve) => { seenAll = resolve; });
  monitor.on('monitor', (_time: string, args: string[], source: string) => {
    const [command, first, count] = args;
    if (source === 'lua') {
      // These two name no key.
      if (!['time', 'info'].includes(command?.toLowerCase() ?? '')) calls.at(-1)!.touched.add(first!);
    } else if (command?.toLowerCase() === 'evalsha' || command?.toLowerCase() === 'eval') {
      calls.push({ named: args.slice(3, 3 + Number(count)), touched: new Set() });
    } else if (command?.toLowerCase() === 'ping' && first === 'that is all') seenAll();
  });

  const store = createRunStore({ redis, jobs: turnJobs({ prefix: 'slots' }) }, { prefix: 'slots', shards: 2, graceMs: 0 });
  const run_id = await createRun(store, { shard: 1 });
  const [later, lost] = [await createRun(store, { shard: 1 }), await createRun(store, { shard: 1 })];
  const claim = await claimRun(store, run_id, 1);
  await store.commit({ ...commitOf(claim, 1, { type: 'keep' }), ledger: [{ tool_use_id: 'a', entry: {} as never }], open_calls: ['a'] });
  await store.appendMany([{ claim, expected_seq: 2, commit_id: 'c', events: ['{}'], last_ts: 3, inbox_seen: 0 }]);
  await store.watch([{ claim, inbox_seen: 0 }]);
  await store.command({ run_id: later, command_id: 'x', command: { type: 'cancel' }, not_after_ms: Date.now() + 60_000 });
  const handed = await claimRun(store, lost, 1);
  await store.recount([handed], -1);
  await store.handBack(handed);
  await store.commit({ ...commitOf(claim, 3, { type: 'end' }, 'completed'), tell: [{ run_id: lost, command_id: 'y', command: { type: 'steer', text: 'x' } }] });
  await redis.del(`{slots:01}:turns:${run_id}-finish`);
  await store.pump(1, { limit: 10, grace_ms: 0 });
  await store.activeRuns(1);
  await store.dueForArchive(1, { limit: 10, retry_ms: 0 });
  await store.archived((await store.seal(run_id, 10))!, { keep_events: 0, retention_ms: 10_000 });
  const day = new Date().toISOString().slice(0, 10);
  const told = { tenant: 'acme', target: { url: 'https://a.example' }, lane: 'https://a.example', body: '{}' };
  await store.finished(run_id, { tenant: 'acme', agent: 'a', day, models: { m: noUsage } }, told);
  expect(await store.restoreDelivery(run_id, told)).toBe('exists');
  for (const type of ['delivered', 'dead'] as const) {
    const [taken] = await store.takeDeliveries(1, { limit: 1, per_tenant: 1, per_lane: 1, busy: {}, lease_ms: 1000 });
    await store.settleDelivery(taken!, type === 'dead' ? { type, status: 410, error: 'gone' } : { type, status: 200 });
    expect(await store.redeliver({ run_id, tenant: 'acme', request_id: type, not_after_ms: Date.now() + 60_000 })).toBe('due');
  }
  expect((await store.deliveries({ tenant: 'acme', state: null, before_id: null, limit: 1 })).deliveries).toHaveLength(1);
  expect(await store.usage({ tenant: 'acme', from_day: day, to_day: day })).toHaveLength(2);
  await Promise.all([store.read(run_id), store.events(run_id, 0, 1), store.ledger(run_id), store.moves(run_id)]);
  await store.list({ tenant: 'acme', status: null, agent: null, tag: null, session_id: null, before_id: null, limit: 10 });
  await store.reserveKey({ tenant: 'acme', key: 'k', run_id, body_hash: 'h', not_after_ms: Date.now() + 60_000 });
  const session_id = run_id.replace(/^run_/, 'ses_');
  await store.createSession({ id: session_id, tenant: 'acme', not_after_ms: Date.now() + 60_000 });
  await Promise.all([store.session(session_id), store.listSessions({ tenant: 'acme', before_id: null, limit: 5 })]);
  const schedules = createScheduleStore({ redis, jobs: turnJobs({ prefix: 'slots' }) }, { prefix: 'slots', shards: 2, keepRemovedMs: 10_000 });
  const schedule = { id: newScheduleId(1), tenant: 'acme', definition: someDefinition, paused: false, next_ms: 1000 };
  await schedules.create({ ...schedule, not_after_ms: Date.now() + 60_000, most: 5 });
  await Promise.all([schedules.schedule(schedule.id), schedules.list({ tenant: 'acme', before_id: null, limit: 5 }), schedules.due(1, { limit: 5, retry_ms: 0 })]);
  await schedules.advance({ id: schedule.id, from_ms: 1000, next_ms: 2000, skipped: 0, outcome: { type: 'skipped' } });
  await schedules.change({ id: schedule.id, tenant: 'acme', change_id: 'c', version: 1, definition: someDefinition, paused: true, next_ms: 'as_it_is', not_after_ms: Date.now() + 60_000 });
  await schedules.remove({ id: schedule.id, tenant: 'acme', not_after_ms: Date.now() + 60_000 });
  await schedules.archived(schedule.id, 3);
  await redis.ping('that is all');
  await watched;
  monitor.disconnect();

  expect(calls.length).toBeGreaterThanOrEqual(scriptNames.length);
  for (const { named, touched } of calls) {
    expect(new Set([...named, ...touched].map(hashTag)).size, JSON.stringify({ named, touched: [...touched] })).toBe(1);
  }
  const tags = new Set(calls.flatMap(({ named }) => named.map(hashTag)));
  expect([...tags].filter((tag) => !tag.startsWith('slots:idem:')).sort()).toEqual(['slots:00', 'slots:01']);
});

test('a run’s keys carry the shard that its id names', () => {
  const keys = createKeys('treadle');
  const run_id = runIdIn(0xa7);
  expect(keys.ctl(run_id)).toBe(`{treadle:a7}:run:${run_id}:ctl`);
  expect(new Set([...keys.run(run_id), keys.feed(0xa7), keys.index(0xa7, 'acme')].map(hashTag))).toEqual(new Set(['treadle:a7']));
});

test.each(['', 'a b', 'a{b}', 'a*b'])('the prefix "%s" is refused', (prefix) => {
  expect(() => createKeys(prefix)).toThrow(RangeError);
});
