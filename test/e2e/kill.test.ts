/**
 * 200 runs of 5 turns with 2 calls each over 3 worker processes, while a worker is killed with SIGKILL every 2 s.
 */
import { evolve, initialState, type RunEvent } from '@treadle/core';
import { connectRedis } from '@treadle/run-store';
import { reply, text } from '@treadle/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startStage, until, type Role, type Stage } from './processes.ts';

const runs = 200;
const toolTurns = 4;
const killEveryMs = 2000;

let stage: Stage;
beforeAll(async () => {
  stage = await startStage({
    model: { script: (body) => {
      const results = (body.messages ?? []).filter((message) => message.role === 'tool').length;
      // Long enough that the killing meets many turns, slow enough for a person to think of it as a model.
      const delivery = { delayMs: 150 };
      if (results >= toolTurns * 2) return text('done', delivery);
      const calls = [{ id: null, name: 'test__add', args: { a: results, b: 1 } }, { id: null, name: 'test__append_row', args: { v: String(results) } }];
      return reply({ calls }, delivery);
    } },
    agent: { limits: { max_turns: 60 } },
    // Killing at random hits some runs several times in a row; isolating poison is tested elsewhere.
    env: { TREADLE_POISON_LIMIT: '50', WORKER_CONCURRENCY: '10' },
  });
});
afterAll(async () => { await stage.stop(); });

test('every run completes, no once tool starts twice, every log folds to its state, and the archive alone can tell it', async () => {
  const ids = await enqueue();
  let workers = await Promise.all([1, 2, 3].map(() => stage.startWorker()));
  const killer = killing(() => workers, (next) => { workers = next; });
  await until('all runs end', async () => (await unfinished(ids)).length === 0, 240_000);
  const kills = await killer.stop();

  expect(kills).toBeGreaterThanOrEqual(3);
  const ended = await Promise.all(ids.map((id) => stage.client.run(id)));
  expect(ended.filter((run) => run.status !== 'completed').map((run) => `${run.id} ${run.status} ${run.stop_reason ?? ''}`)).toEqual([]);
  expect(startedTwice()).toEqual([]);
  await checkLogs(ids);
  await checkArchive(ids, workers);
  expect(stage.model.violations).toEqual([]);
}, 400_000);

async function enqueue(): Promise<string[]> {
  const created = await Promise.all(Array.from({ length: runs }, (_, index) => stage.client.createRun({ agent: 'tester', input: `run ${index}` })));
  return created.map((run) => run.id);
}

/** Kills one worker after the other, and starts another in its place. */
function killing(current: () => Role[], replace: (workers: Role[]) => void): { stop(): Promise<number> } {
  let kills = 0;
  let stopped = false;
  const done = (async () => {
    while (!stopped) {
      await new Promise((resolve) => { setTimeout(resolve, killEveryMs); });
      const [victim, ...rest] = current();
      if (stopped || victim === undefined) return;
      victim.kill('SIGKILL');
      kills++;
      replace([...rest, await stage.startWorker()]);
    }
  })();
  return { stop: async () => { stopped = true; await done; return kills; } };
}

async function unfinished(ids: readonly string[]): Promise<string[]> {
  const page = await Promise.all(['queued', 'running', 'paused'].map((status) => stage.client.runs({ status, limit: '200' })));
  return page.flatMap((each) => each.data.map((run) => run.id)).filter((id) => ids.includes(id));
}

/** Calls of the tool that may happen once, by run and id, that the tool itself saw begin more than once. */
function startedTwice(): string[] {
  const starts = stage.ledger().filter((line) => line.phase === 'start' && line.tool === 'append_row').map((line) => `${line.run_id ?? ''} ${line.tool_use_id ?? ''}`);
  expect(starts.length).toBeGreaterThan(runs * toolTurns * 0.95);
  return starts.filter((start, index) => starts.indexOf(start) !== index);
}

/** Also that the killing met turns at all: otherwise nothing was tested. */
async function checkLogs(ids: readonly string[]): Promise<void> {
  let takenOver = 0;
  for (const id of ids) {
    const report = await stage.client.replay(id);
    expect(report, id).toMatchObject({ identical: true, differences: [] });
    for await (const event of stage.client.events(id)) if (event.type === 'turn_start' && event.attempt > 1) takenOver++;
  }
  expect(takenOver).toBeGreaterThan(3);
}

/** Redis forgets everything; the API still tells every log, whole. */
async function checkArchive(ids: readonly string[], workers: readonly Role[]): Promise<void> {
  await until('everything is archived', async () => (await Promise.all(ids.map((id) => stage.client.run(id)))).every((run) => run['archived_seq'] === run.last_seq), 60_000);
  const before = await Promise.all(ids.map((id) => stage.client.run(id)));
  for (const worker of workers) worker.kill('SIGTERM');
  await Promise.all(workers.map((worker) => worker.exited));
  const redis = connectRedis(stage.redis.url, { role: 'command' });
  await redis.flushall();
  redis.disconnect();
  for (const run of before) {
    let state = { ...initialState, run_id: run.id };
    for await (const event of stage.client.events(run.id)) state = evolve(state, event as RunEvent);
    expect(state).toMatchObject({ run_id: run.id, status: 'completed', answer: 'done', last_seq: run.last_seq, tool_calls: toolTurns * 2 });
  }
}
