/**
 * The real processes on a Redis that three Sentinels watch: the master dies, or hangs and comes back as a replica, under runs in progress.
 * Replication lags, so the new master may lack what the old one had acknowledged last: that is found out and gone on from, as R7 says.
 */
import { readinessProblems, connectRedis } from '@treadle/run-store';
import { reply, startWatchedRedis, text, type WatchedRedis } from '@treadle/testkit';
import { afterEach, expect, test } from 'vitest';
import { startStage, treadle, until, type Stage } from './processes.ts';

const runs = 12;
const toolTurns = 6;

let stage: Stage<WatchedRedis>;
afterEach(() => stage.stop());

async function staged(): Promise<Stage<WatchedRedis>> {
  return startStage({
    redis: () => startWatchedRedis(),
    model: { script: (body) => {
      const results = (body.messages ?? []).filter((message) => message.role === 'tool').length;
      const delivery = { delayMs: 300 };
      if (results >= toolTurns) return text('done', delivery);
      return reply({ calls: [{ id: null, name: results % 2 === 0 ? 'test__add' : 'test__append_row', args: results % 2 === 0 ? { a: results, b: 1 } : { v: String(results) } }] }, delivery);
    } },
    tools: { 'test/append_row': { effect: 'idempotent' } },
    env: { TREADLE_POISON_LIMIT: '50', WORKER_CONCURRENCY: '8' },
  });
}

test.each(['dies', 'hangs and comes back as a replica'])('the master %s: the replica takes over, and every run goes on without a process being restarted', async (how) => {
  stage = await staged();
  const workers = [await stage.startWorker(), await stage.startWorker()];
  const created = await Promise.all(Array.from({ length: runs }, (_, index) => stage.client.createRun({ agent: 'tester', input: `run ${index}` })));
  await until('turns are under way', () => stage.ledger().length >= runs * 2);
  const { master } = stage.redis;
  if (how === 'dies') await master.kill();
  else process.kill(master.pid, 'SIGSTOP');
  await stage.redis.failedOver();
  if (how !== 'dies') process.kill(master.pid, 'SIGCONT');

  const later = await until('a new run is accepted', () => stage.client.createRun({ agent: 'tester', input: 'later' }).catch(() => undefined), 20_000);
  const ids = [...created, later].map(({ id }) => id);
  // Requests fail while the connections find the new master.
  const statusOf = (id: string): Promise<string> => stage.client.run(id).then((run) => run.status, () => 'unknown');
  await until('all runs end', async () => (await Promise.all(ids.map(statusOf))).every((status) => status === 'completed'), 60_000).catch(async (error: unknown) => {
    const open = (await Promise.all(ids.map((id) => stage.client.run(id).catch(String)))).filter((run) => typeof run === 'string' || run.status !== 'completed');
    throw new Error(`${String(error)}: ${JSON.stringify(open).slice(0, 3000)}\n${workers.map((worker) => worker.output().slice(-3000)).join('\n')}`);
  });

  for (const id of ids) {
    expect(await stage.client.replay(id), id).toMatchObject({ identical: true, differences: [] });
    const seqs: number[] = [];
    for await (const event of stage.client.events(id)) seqs.push(event.seq);
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
  }
  // What the new master did not have may be done again, with the same key.
  const keys = new Map<string, Set<string | null>>();
  for (const line of stage.ledger().filter((each) => each.phase === 'start' && each.tool === 'append_row')) {
    const call = `${line.run_id ?? ''} ${line.tool_use_id ?? ''}`;
    keys.set(call, (keys.get(call) ?? new Set()).add(line.idempotency_key ?? null));
  }
  expect(keys.size).toBe(ids.length * toolTurns / 2);
  expect([...keys.values()].filter((each) => each.size !== 1 || each.has(null))).toEqual([]);
  for (const worker of workers) expect(await (await fetch(`${worker.url}/readyz`)).json()).toMatchObject({ ok: true, problems: [] });
  const redis = connectRedis(stage.redis.url, { role: 'command' });
  expect(await readinessProblems(redis, { prefix: 'treadle', shards: 1 })).toEqual([]);
  redis.disconnect();
  expect((await treadle(['doctor'], { env: stage.env })).stdout).toMatch(/Redis\s+Sentinel: master on port \d+, replicas: /);
  for (const worker of workers) {
    worker.kill('SIGTERM');
    expect(await worker.exited).toBe(0);
  }
}, 150_000);
