/** Schedules make their runs: once for each time, whatever races, dies and is away. */
import { decodeEvent, type RunEvent } from '@treadle/core';
import { cronTimes } from '@treadle/cron';
import { fireSchedules, scheduledRunId, type FireDeps, type Fired, type ScheduleDefinition, type ScheduledRun } from '@treadle/engine';
import { agentLimits, createMemoryArchive, createMemoryRunStore, createMemoryScheduleStore, newScheduleId, someDefinition, testModel, testSpec } from '@treadle/testkit';
import { uuidv7 } from 'uuidv7';
import { beforeEach, describe, expect, test } from 'vitest';

const minute = 60_000;
const hour = 60 * minute;
/** 2023-11-14T22:13:20Z. */
const start = 1_700_000_000_000;
const nextHour = Math.ceil(start / hour) * hour;

function world() {
  const store = createMemoryRunStore();
  let nowMs = start;
  const schedules = createMemoryScheduleStore(() => nowMs);
  const archive = createMemoryArchive();
  const fired: Fired[] = [];
  const agents = new Map([['assistant', testSpec({ name: 'assistant', limits: agentLimits({ max_turns: 10 }) })]]);
  const deps: FireDeps = {
    store, schedules, archive, cron: cronTimes, clock: { nowMs: () => nowMs, monotonicMs: () => nowMs }, random: { uuid: uuidv7, jitter: () => 0 }, shards: 1, retention_ms: hour,
    agent: (name, chain) => {
      const spec = agents.get(name);
      if (spec === undefined) return 'agent';
      if (chain !== null && chain !== 'other') return 'chain';
      return { spec: chain === null ? spec : { ...spec, chain: { name: chain, models: [testModel('o')] } }, version: 'sha256:v' };
    },
    observe: (each) => { fired.push(each); },
  };
  const round = (over: Partial<FireDeps> = {}) => fireSchedules({ ...deps, ...over }, 0, { limit: 100, concurrency: 4, retry_ms: 5000 });
  return {
    store, schedules, archive, agents, deps, fired, round,
    pass: (ms: number) => { nowMs += ms; store.passTime(ms); },
    to: (ms: number) => { store.passTime(ms - nowMs); nowMs = ms; },
    create: async (definition: Partial<ScheduleDefinition> = {}, run: Partial<ScheduledRun> = {}) => {
      const id = newScheduleId();
      const whole = { ...someDefinition, cron: '0 * * * *', timezone: 'UTC', ...definition, run: { ...someDefinition.run, ...run } };
      const reading = cronTimes(whole.cron, whole.timezone);
      const next_ms = reading.type === 'rule' ? reading.rule.next(nowMs) : null;
      await schedules.create({ id, tenant: 'acme', definition: whole, paused: false, next_ms, not_after_ms: nowMs, most: 9 });
      return id;
    },
    runs: async () => (await store.list({ tenant: 'acme', status: null, agent: null, tag: null, session_id: null, before_id: null, limit: 100 })).run_ids,
    logOf: async (run_id: string) => ((await store.events(run_id, 0, 100))?.events ?? []).map((text): RunEvent => decodeEvent(text)),
  };
}

let it: ReturnType<typeof world>;
beforeEach(() => { it = world(); });

describe('a time that has come', () => {
  test('makes one run, which says whose it is, and the schedule goes on', async () => {
    const id = await it.create({}, { tags: ['nightly'], chain: 'other', webhook: { endpoint: 'backend' } });
    await it.round();
    expect(await it.runs()).toEqual([]);
    it.to(nextHour);
    await it.round();
    const run_id = scheduledRunId(id, nextHour);
    expect(await it.runs()).toEqual([run_id]);
    const [created, message] = await it.logOf(run_id);
    expect(created).toMatchObject({ type: 'run_created', schedule_id: id, agent: 'assistant', tenant: 'acme', chain: 'other', webhook: { endpoint: 'backend' }, tags: ['nightly'], metadata: { a: [1, null] }, limits: { max_turns: 3 } });
    expect(message).toMatchObject({ type: 'user_message', content: 'report' });
    expect(await it.schedules.schedule(id)).toMatchObject({ next_ms: nextHour + hour, last: { due_ms: nextHour, run_id }, fired: 1, skipped: 0, failed: 0 });
    expect(it.fired).toMatchObject([{ created: true, skipped: 0, outcome: { type: 'fired' } }]);
  });

  test('the id of its run begins with that time, lies in the schedule’s shard, and is another for another time or schedule', () => {
    const [a, b] = [newScheduleId(7), newScheduleId(7)];
    expect(scheduledRunId(a, nextHour)).toMatch(new RegExp(`^run_${nextHour.toString(16).padStart(12, '0')}7[0-9a-f]{3}[89ab][0-9a-f]{13}07$`));
    expect(new Set([scheduledRunId(a, nextHour), scheduledRunId(a, nextHour), scheduledRunId(b, nextHour), scheduledRunId(a, nextHour + minute)]).size).toBe(3);
  });

  test('makes one run, however many workers look at it at once', async () => {
    const id = await it.create();
    it.to(nextHour);
    // Each has been handed the same.
    const due = { now_ms: nextHour, ids: [id] };
    await Promise.all(Array.from({ length: 5 }, () => it.round({ schedules: { ...it.schedules, due: async () => due } })));
    expect(await it.runs()).toHaveLength(1);
    expect(await it.schedules.schedule(id)).toMatchObject({ fired: 1, next_ms: nextHour + hour });
    expect(it.fired).toHaveLength(1);
  });

  test('makes no second one when whoever made the first died before the schedule was moved on', async () => {
    const id = await it.create();
    it.to(nextHour);
    await expect(it.round({ schedules: { ...it.schedules, advance: () => Promise.reject(new Error('killed')) } })).rejects.toThrow('killed');
    expect([await it.runs(), (await it.schedules.schedule(id))?.fired]).toEqual([[scheduledRunId(id, nextHour)], 0]);
    it.pass(5000);
    await it.round();
    expect(await it.runs()).toHaveLength(1);
    expect(await it.schedules.schedule(id)).toMatchObject({ fired: 1, last: { due_ms: nextHour } });
    expect(it.fired).toMatchObject([{ created: false }]);
  });

  test('makes none whose run the archive has, after a store lost its last writes; an archive that is away holds nothing up', async () => {
    const id = await it.create();
    const run_id = scheduledRunId(id, nextHour);
    await it.archive.putSegment({ run_id, first_seq: 1, last_seq: 1, events: [JSON.stringify({ type: 'turn_start', seq: 1, ts: 1, run_id, turn_number: 1, epoch: 1, attempt: 1, worker: 'w' })] });
    it.to(nextHour + minute);
    await it.round();
    expect(await it.runs()).toEqual([]);
    expect(await it.schedules.schedule(id)).toMatchObject({ fired: 1, last: { run_id } });
    it.to(nextHour + hour + minute);
    it.archive.failNext(1);
    // But where its run could have left the store by now.
    await it.round({ retention_ms: minute });
    expect(await it.runs()).toEqual([]);
    it.pass(5000);
    it.archive.failNext(1);
    await it.round();
    expect(await it.runs()).toHaveLength(1);
  });

  test('one schedule’s fault keeps back no other', async () => {
    const [broken, whole] = [await it.create({ timezone: 'UTC' }), await it.create()];
    it.to(nextHour);
    await expect(it.round({ schedules: { ...it.schedules, schedule: async (id) => (id === broken ? Promise.reject(new Error('away')) : it.schedules.schedule(id)) } })).rejects.toThrow('away');
    expect(await it.runs()).toEqual([scheduledRunId(whole, nextHour)]);
  });

  test('waits while no new run is taken', async () => {
    await it.create();
    it.to(nextHour);
    await it.round({ full: () => 'the archive is full' });
    expect(await it.runs()).toEqual([]);
    await it.round();
    expect(await it.runs()).toHaveLength(1);
  });
});

describe('times that were missed', () => {
  test.each([
    ['none', '0 * * * *', 3600, 10_000, { fired: 1, skipped: 0, due: 0 }],
    ['some, and the latest is young enough', '*/10 * * * *', 3600, 35 * minute, { fired: 1, skipped: 3, due: 30 * minute }],
    ['one, young enough by a second', '0 0 * * *', 600, 10 * minute, { fired: 1, skipped: 0, due: 0 }],
    ['one, too old by a second', '0 0 * * *', 600, 10 * minute + 1000, { fired: 0, skipped: 1, due: null }],
    ['a day of minutes', '* * * * *', 3600, 24 * hour, { fired: 1, skipped: 500, due: 24 * hour }],
  ])('%s', async (_, cron, catch_up_s, lateMs, expected) => {
    const id = await it.create({ cron, catch_up_s });
    const first = (await it.schedules.schedule(id))!.next_ms!;
    it.to(first + lateMs);
    await it.round();
    await it.round();
    const schedule = (await it.schedules.schedule(id))!;
    expect({ fired: schedule.fired, skipped: schedule.skipped, due: schedule.last === null ? null : schedule.last.due_ms - first }).toEqual(expected);
    expect(schedule.next_ms).toBeGreaterThan(first + lateMs);
    expect(await it.runs()).toHaveLength(expected.fired);
  });

  test('while paused count the same: the latest is made up for when it goes on', async () => {
    const id = await it.create({ cron: '*/10 * * * *' });
    const set = (paused: boolean, version: number) => it.schedules.change({ id, tenant: 'acme', change_id: String(version), version, definition: { ...someDefinition, cron: '*/10 * * * *', timezone: 'UTC' }, paused, next_ms: 'as_it_is', not_after_ms: Infinity });
    await set(true, 1);
    it.to(nextHour);
    await it.round();
    expect(await it.runs()).toEqual([]);
    await set(false, 2);
    await it.round();
    expect(await it.runs()).toEqual([scheduledRunId(id, nextHour)]);
    expect(await it.schedules.schedule(id)).toMatchObject({ fired: 1, skipped: 4 });
  });
});

describe('a time that can make no run', () => {
  test.each<[string, Partial<ScheduledRun>, (here: typeof it) => void, string, string]>([
    ['its agent is gone', {}, (here) => here.agents.clear(), 'agent_not_found', 'No agent is named "assistant" any more.'],
    ['its chain is gone', { chain: 'gone' }, () => undefined, 'invalid_request', 'No chain is named "gone" any more.'],
    ['its limit is above the agent’s', { limits: { max_turns: 8 } }, (here) => here.agents.set('assistant', testSpec({ name: 'assistant', limits: agentLimits({ max_turns: 5 }) })), 'limit_above_maximum', 'limits.max_turns may be at most 5 for this agent now.'],
    ['nobody sees its image', { input: [{ type: 'image', media_type: 'image/png', data: 'AAAA' }] }, () => undefined, 'invalid_request', 'No model of this agent takes images any more.'],
  ])('%s: the schedule says so, and goes on', async (_, run, change, code, message) => {
    const id = await it.create({}, run);
    change(it);
    it.to(nextHour + minute);
    await it.round();
    expect(await it.runs()).toEqual([]);
    expect(await it.schedules.schedule(id)).toMatchObject({ failed: 1, fired: 0, next_ms: nextHour + hour, last_error: { due_ms: nextHour, code, message } });
  });

  test('an agent that is not here may be on another worker for a while', async () => {
    const id = await it.create();
    it.to(nextHour);
    await it.round({ agent: () => 'agent' });
    expect(await it.schedules.schedule(id)).toMatchObject({ failed: 0, next_ms: nextHour });
    // Whose rounds come between this one's: put off, it would be seen first by the one that lacks the agent, each time.
    it.pass(500);
    await it.round();
    expect(await it.runs()).toHaveLength(1);
  });

  test.each([['that comes each minute', '* * * * *', 3600, 13], ['that allows ten seconds', '0 * * * *', 10, 3]])('a schedule %s is told of its missing agent, too', async (_, cron, catch_up_s, rounds) => {
    const id = await it.create({ cron, catch_up_s });
    it.to((await it.schedules.schedule(id))!.next_ms!);
    it.agents.clear();
    for (let count = 0; count < rounds; count++) {
      await it.round();
      it.pass(5001);
    }
    expect(await it.schedules.schedule(id)).toMatchObject({ failed: 1, fired: 0, last_error: { code: 'agent_not_found' } });
  });

  test('a worker that was held up for long makes none', async () => {
    const id = await it.create();
    it.to(nextHour + minute);
    await it.round({ schedules: { ...it.schedules, due: async () => ({ now_ms: nextHour, ids: [id] }) } });
    expect([await it.runs(), (await it.schedules.schedule(id))?.next_ms]).toEqual([[], nextHour]);
  });
});

describe('a session that is shared', () => {
  const session_id = `ses_${'0'.repeat(32)}`;

  async function busy(on_busy: ScheduledRun['on_busy']) {
    const id = await it.create({}, { session_id, on_busy });
    await it.schedules.create({ id: newScheduleId(), tenant: 'acme', definition: { ...someDefinition, cron: '0 * * * *', timezone: 'UTC', run: { ...someDefinition.run, session_id } }, paused: false, next_ms: start, not_after_ms: Infinity, most: 9 });
    await it.store.createSession({ id: session_id, tenant: 'acme', not_after_ms: Infinity });
    await it.round();
    const [current] = await it.runs();
    it.to(nextHour);
    // The other one's next time is of no interest here.
    const round = (over: Partial<FireDeps> = {}) => it.round({ ...over, schedules: { ...it.schedules, due: async () => ({ now_ms: nextHour, ids: [id] }), ...over.schedules } });
    return { id, current: current!, run_id: scheduledRunId(id, nextHour), round };
  }

  test('and busy: rejected, with the reason', async () => {
    const { id, current, round } = await busy('reject');
    await round();
    expect(await it.schedules.schedule(id)).toMatchObject({ failed: 1, last_error: { code: 'session_busy', message: `The session was busy with ${current}.` } });
    expect(await it.runs()).toEqual([current]);
  });

  test('and busy: queued behind', async () => {
    const { current, run_id, round } = await busy('queue');
    await round();
    expect(await it.runs()).toEqual([run_id, current]);
    expect(it.store.jobs().map((job) => job.run_id)).toEqual([current]);
    expect((await it.store.session(session_id))?.current).toBe(current);
  });

  test('and busy: the run in front is cancelled, also by whoever finds that the first one died before it could', async () => {
    const { id, current, run_id, round } = await busy('interrupt');
    await expect(round({ store: { ...it.store, command: () => Promise.reject(new Error('killed')) } })).rejects.toThrow('killed');
    expect(await it.schedules.schedule(id)).toMatchObject({ fired: 0 });
    await round();
    const claimed = await it.store.claim({ run_id: current, n: it.store.jobs().find((job) => job.run_id === current)!.n, claim_id: 'c', held: null });
    expect(claimed).toMatchObject({ type: 'claimed', inbox: [{ command_id: `interrupt-${run_id}`, command: { type: 'cancel' } }] });
    expect(await it.schedules.schedule(id)).toMatchObject({ fired: 1 });
  });

  test('and forgotten: it begins anew', async () => {
    const id = await it.create({}, { session_id });
    it.to(nextHour);
    await it.round();
    expect(await it.runs()).toEqual([scheduledRunId(id, nextHour)]);
    expect(await it.store.session(session_id)).toMatchObject({ tenant: 'acme', current: scheduledRunId(id, nextHour) });
  });

  test('and another tenant’s by now: no run', async () => {
    const id = await it.create({}, { session_id });
    await it.store.createSession({ id: session_id, tenant: 'other', not_after_ms: Infinity });
    it.to(nextHour);
    await it.round();
    expect(await it.schedules.schedule(id)).toMatchObject({ failed: 1, last_error: { code: 'not_found' } });
    expect(await it.runs()).toEqual([]);
  });
});
