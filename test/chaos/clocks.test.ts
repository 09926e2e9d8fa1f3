/** R17 and C59: workers whose clocks are an hour or a day off; waits run on Redis' clock, and nothing is reordered. */
import { scheduledRunId } from '@treadle/engine';
import { turnJobs } from '@treadle/queue';
import { connectRedis, createScheduleStore } from '@treadle/run-store';
import { newScheduleId, reply, someDefinition, status, type ChatBody } from '@treadle/testkit';
import { afterEach, expect, test } from 'vitest';
import { problemsOf } from './checker.ts';
import { until } from '../e2e/processes.ts';
import { allRead } from './reader.ts';
import { allEnded, historyOf, post, postRuns, readAll, startChaos, usagePerReply, usualScript, type ChaosStage } from './stage.ts';
import { randomFrom } from './random.ts';

let stage: ChaosStage | null = null;
afterEach(async () => {
  await stage?.stop();
  stage = null;
});

/** One that is due at this time; answers the id of the run that it makes then. */
async function schedule({ redis }: ChaosStage, dueMs: number): Promise<string> {
  const client = connectRedis(redis.url, { role: 'command' });
  const id = newScheduleId();
  const definition = { ...someDefinition, cron: '0 0 1 1 *', timezone: 'UTC', run: { ...someDefinition.run, agent: 'tester', input: '[[later-3]]', limits: {} } };
  await createScheduleStore({ redis: client, jobs: turnJobs({ prefix: 'treadle' }) }, { prefix: 'treadle', shards: 1 })
    .restore({ id, tenant: 'default', definition, paused: false, created_at_ms: dueMs, version: 1, next_ms: dueMs, last: null, fired: 0, skipped: 0, failed: 0, last_error: null });
  client.disconnect();
  return scheduledRunId(id, dueMs);
}

const hour = 3_600_000;
const waitS = 3;

test.each([['an hour', hour], ['a day', 24 * hour]])('C59: workers %s ahead and behind wake waiting runs and schedules in time, and no event is out of order', async (_, shiftMs) => {
  const asked = new Map<string, number>();
  const labelOf = (body: ChatBody): string => /\[\[([\w-]+)/.exec(JSON.stringify(body.messages ?? []))?.[1] ?? '';
  const here = stage = await startChaos({
    script: (body) => {
      const label = labelOf(body);
      if (!label.startsWith('wait') || asked.has(label)) return label.startsWith('later') ? reply({ text: 'done', usage: { prompt: usagePerReply.input, output: usagePerReply.output } }) : usualScript(body);
      asked.set(label, Date.now());
      return status(429, { 'retry-after': String(waitS) }, { error: 'slow down' });
    },
  });
  await Promise.all([here.more('worker', { CLOCK_SHIFT_MS: String(shiftMs) }), here.more('worker', { CLOCK_SHIFT_MS: String(-shiftMs) }), here.more('worker')]);
  const usual = await postRuns(here, Array.from({ length: 6 }, (__, index) => `run-${index}`));
  const waiting = await postRuns(here, Array.from({ length: 6 }, (__, index) => `wait-${index}`));
  const atMs = Date.now() + waitS * 1000;
  const later = await Promise.all([0, 1, 2].map((index) => post(here.url, `later-${index}`, { agent: 'tester', input: `[[later-${index}]]`, run_at: new Date(atMs).toISOString() })));
  const scheduled = await schedule(here, atMs);
  const ids = [...usual, ...waiting, ...later].map(({ id }) => id!);
  const readers = readAll(here, ids, randomFrom(1));
  await allEnded(here, ids, 60_000);
  await allRead(readers, (reader) => reader.ended);
  const history = await historyOf(here, ids, readers);
  expect(problemsOf(history)).toEqual([]);
  // By the model server's own clock: nobody came back before the time, whoever's clock said what.
  for (const { key } of waiting) {
    const times = here.model.requests.filter((request) => request.body !== null && labelOf(request.body) === key).map((request) => request.at_ms);
    expect(times[1]! - times[0]!, key).toBeGreaterThanOrEqual(waitS * 1000 - 50);
  }
  await until('the schedule has made its run, and that has ended', async () => (await here.client.run(scheduled).catch(() => null))?.status === 'completed', 30_000);
  for (const index of [0, 1, 2, 3]) {
    const [first] = here.model.requests.filter((request) => request.body !== null && labelOf(request.body) === `later-${index}`);
    expect(first!.at_ms).toBeGreaterThanOrEqual(atMs - 50);
  }
  for (const run of history.runs) {
    const times = run.log.map((line) => (JSON.parse(line) as { ts: number }).ts);
    expect(times, run.id).toEqual([...times].sort((one, other) => one - other));
  }
}, 120_000);
