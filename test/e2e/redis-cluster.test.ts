/**
 * The real processes on a Redis Cluster of three masters with two shards on different nodes; one worker is killed on the way.
 */
import { queueDepths } from '@treadle/queue';
import { connectRedis, readinessProblems } from '@treadle/run-store';
import { reply, startRedisCluster, text, type RedisCluster } from '@treadle/testkit';
import { Cluster } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startStage, treadle, until, type Stage } from './processes.ts';

const runs = 12;
const toolTurns = 4;
/** The slots of its first two shards, 13457 and 9392, are two nodes'. */
const prefix = 'apart';

let stage: Stage<RedisCluster>;
beforeAll(async () => {
  stage = await startStage({
    redis: startRedisCluster,
    model: { script: (body) => {
      const results = (body.messages ?? []).filter((message) => message.role === 'tool').length;
      const delivery = { delayMs: 50 };
      if (results >= toolTurns) return text('done', delivery);
      return reply({ calls: [{ id: null, name: results % 2 === 0 ? 'test__add' : 'test__append_row', args: results % 2 === 0 ? { a: results, b: 1 } : { v: String(results) } }] }, delivery);
    } },
    env: { TREADLE_SHARDS: '2', TREADLE_PREFIX: prefix, TREADLE_POISON_LIMIT: '50', WORKER_CONCURRENCY: '6', LOG_LEVEL: 'info' },
  });
});
afterAll(async () => { await stage.stop(); });

test('runs of both shards complete over three nodes, also those of a worker that was killed', async () => {
  const redis = connectRedis(stage.redis.url, { role: 'command' });
  if (!(redis instanceof Cluster)) throw new TypeError('no Cluster');
  expect(await readinessProblems(redis, { prefix, shards: 2 })).toEqual([]);

  const victim = await stage.startWorker();
  const created = await Promise.all(Array.from({ length: runs }, (_, index) => stage.client.createRun({ agent: 'tester', input: `run ${index}` })));
  expect(new Set(created.map(({ id }) => id.slice(-2)))).toEqual(new Set(['00', '01']));
  await until('turns are under way', () => stage.ledger().length > 2);
  victim.kill('SIGKILL');
  const worker = await stage.startWorker();
  await until('all runs end', async () => (await Promise.all(created.map(({ id }) => stage.client.run(id)))).every((run) => run.status === 'completed'), 60_000);

  for (const { id } of created) {
    expect(await stage.client.replay(id), id).toMatchObject({ identical: true, differences: [] });
    const seqs: number[] = [];
    for await (const event of stage.client.events(id)) seqs.push(event.seq);
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
  }
  const starts = stage.ledger().filter((line) => line.phase === 'start' && line.tool === 'append_row').map((line) => `${line.run_id ?? ''} ${line.tool_use_id ?? ''}`);
  expect(starts.length).toBeGreaterThanOrEqual(runs * toolTurns / 2 - 6);
  expect(new Set(starts).size).toBe(starts.length);

  // Both nodes that hold a shard did the work, and BullMQ wrote no events there.
  const held = await Promise.all(redis.nodes('master').map(async (node) => (await node.keys(`{${prefix}:0?}:run:*:ctl`)).map((key) => key.slice(0, `{${prefix}:00}`.length))));
  expect(held.filter((tags) => tags.length > 0).map((tags) => [...new Set(tags)]).sort()).toEqual([[`{${prefix}:00}`], [`{${prefix}:01}`]]);
  expect(worker.output()).toMatch(/"redis":"Cluster, masters: /);
  expect(await (await fetch(`${worker.url}/readyz`)).json()).toMatchObject({ ok: true, problems: [] });
  await until('both queues are empty', async () => (await queueDepths(redis, { prefix, shards: 2 })).every(({ waiting, active }) => waiting + active === 0));
  redis.disconnect();

  const doctor = await treadle(['doctor'], { env: stage.env });
  expect(doctor.stdout).toMatch(/ok\s+Redis\s+Cluster, masters: 127\.0\.0\.1:\d+, 127\.0\.0\.1:\d+, 127\.0\.0\.1:\d+; version /);
  expect(doctor.stdout).not.toMatch(/^error\s+Redis/m);

  worker.kill('SIGTERM');
  expect(await worker.exited).toBe(0);
}, 120_000);
