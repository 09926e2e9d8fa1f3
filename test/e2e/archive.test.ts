/** Events from the first to the last: live over SSE, in S3 in the layout of the contract, readable when Redis has forgotten them. */
import { connectRedis } from '@treadle/run-store';
import type { RunEvent } from '@treadle/core';
import { createClient, type Run } from '@treadle/client';
import { reply, startS3Server, text, type S3Server } from '@treadle/testkit';
import { afterEach, expect, test } from 'vitest';
import { scaled } from '../chaos/random.ts';
import { startProcess, startStage, until, type Stage } from './processes.ts';

let stage: Stage | null = null;
let s3: S3Server | null = null;
afterEach(async () => {
  await stage?.stop();
  await s3?.stop();
});

const s3Env = (server: S3Server) => ({ S3_BUCKET: server.bucket, S3_ENDPOINT: server.endpoint, S3_ACCESS_KEY_ID: 'test', S3_SECRET_ACCESS_KEY: 'testtest' });

test('a run is seen live, lies in S3 as promised, and is told from there when Redis is empty', async () => {
  s3 = await startS3Server();
  const words = 'One two three four five six seven eight nine ten.';
  stage = await startStage({
    model: { script: [reply({ calls: [{ id: null, name: 'test__big', args: { bytes: 100_000 } }] }), text(words, { chunkDelayMs: 5, cutAt: 'every_byte' })] },
    env: { S3_BUCKET: s3.bucket, S3_ENDPOINT: s3.endpoint, S3_ACCESS_KEY_ID: 'test', S3_SECRET_ACCESS_KEY: 'testtest', S3_PREFIX: 'pre/' },
  });
  await stage.startWorker();
  const { id } = await stage.client.createRun({ agent: 'tester', input: 'go' });
  const live: RunEvent[] = [];
  for await (const event of stage.client.events(id)) live.push(event);

  expect(live.map((event) => event.seq)).toEqual(live.map((_, index) => index + 1));
  const increments = live.flatMap((event) => event.type === 'assistant_text' && !event.is_final ? [event.content] : []);
  expect(increments.length).toBeGreaterThan(1);
  expect(increments.join('')).toBe(words);
  const big = live.find((event) => event.type === 'tool_result');
  expect(big).toMatchObject({ truncated_bytes: expect.any(Number) as number, blob: expect.stringMatching(/^[0-9a-f]{64}$/) as string });

  await until('it is archived', async () => (await stage!.client.run(id))['archived_seq'] === live.length);
  const keys = [...s3.objects.keys()].filter((key) => key.includes(id));
  for (const key of keys) expect(key).toMatch(new RegExp(`^pre/(runs/${id}/(events/\\d{12}-\\d{12}\\.jsonl|run\\.json|blobs/[0-9a-f]{64})|index/default/\\d{4}-\\d\\d-\\d\\d/${id})$`));
  expect(keys).toContain(`pre/runs/${id}/run.json`);
  expect(keys).toContain(`pre/runs/${id}/blobs/${(big as { blob: string }).blob}`);

  const redis = connectRedis(stage.redis.url, { role: 'command' });
  await redis.flushall();
  redis.disconnect();
  const archived: RunEvent[] = [];
  for await (const event of stage.client.events(id, { after: 3 })) archived.push(event);
  expect(archived).toEqual(live.slice(3));
  expect(await stage.client.run(id)).toMatchObject({ id, status: 'completed', answer: words });
}, 90_000);

test('a deleted run is gone from everywhere, though the process that was asked dies at once', async () => {
  s3 = await startS3Server();
  stage = await startStage({ model: { script: [reply({ calls: [{ id: null, name: 'test__big', args: { bytes: 100_000 } }] })], whenUsedUp: 'done' }, env: s3Env(s3) });
  const worker = await stage.startWorker();
  const ids = [];
  for (let n = 0; n < 2; n++) ids.push((await stage.client.createRun({ agent: 'tester', input: 'go' })).id);
  const [id, kept] = ids as [string, string];
  for (const each of ids) await until('it is archived', async () => { const run = await stage!.client.run(each); return run.status === 'completed' && run['archived_seq'] === run.last_seq; });
  worker.kill();
  await worker.exited;
  expect(await stage.client.remove(id)).toMatchObject({ id });
  stage.api.kill();
  const api = await startProcess('api', stage.env);
  try {
    const client = createClient({ url: api.url });
    const code = async (path: string) => client.get(`/v1/runs/${id}${path}`).catch((error: unknown) => (error as { code: string }).code);
    expect([await code(''), await code('/events'), await code('/messages'), await code('/ledger')]).toEqual(Array.from({ length: 4 }, () => 'run_deleted'));
    expect([...s3.objects.keys()].filter((key) => key.includes(`runs/${id}/`)).length).toBeGreaterThan(1);
    await stage.startWorker();
    await until('its objects are gone', () => [...s3!.objects.keys()].filter((key) => key.includes(id)).join() === `deleted/${id}.json`);
    const redis = connectRedis(stage.redis.url, { role: 'command' });
    expect((await redis.keys(`*${id}*`)).map((key) => key.split(':').at(-1))).toEqual(['ctl']);
    await redis.flushall();
    redis.disconnect();
    expect([await code(''), await code('/events')]).toEqual(['run_deleted', 'run_deleted']);
    expect(await client.run(kept)).toMatchObject({ id: kept, status: 'completed' });
  } finally {
    api.kill('SIGTERM');
    await api.exited;
  }
}, 90_000);

test('C63: what the retention is over for is gone from Redis, and is read from the archive', async () => {
  stage = await startStage({ model: { script: [], whenUsedUp: 'done' }, env: { TREADLE_RETENTION_H: '0' } });
  await stage.startWorker();
  const redis = connectRedis(stage.redis.url, { role: 'command' });
  const oneRun = async () => stage!.client.wait((await stage!.client.createRun({ agent: 'tester', input: 'x'.repeat(100_000) })).id, 20_000);
  /** Without what sessions leave, which have a time of their own, and what BullMQ keeps of itself. */
  const keys = async () => (await redis.keys('*')).filter((key) => !/:session(s|-queue)?:|:stalled-check$/.test(key)).sort();
  const memory = async () => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
  const first = await oneRun();
  const empty = async (id: string) => until('it has left Redis', async () => (await redis.keys(`*${id}*`)).filter((key) => !key.includes('session')).length === 0 && (await redis.zcard('{treadle:00}:index:default')) === 0);
  await empty(first.id);
  const [baseline, bytes] = [await keys(), await memory()];
  const runs: Run[] = [];
  while (runs.length < scaled({ small: 30, large: 2000 })) runs.push(...await Promise.all(Array.from({ length: 10 }, oneRun)));
  for (const run of runs) await empty(run.id);
  expect(await keys()).toEqual(baseline);
  for (const name of ['to_archive', 'held', 'due', 'expiring']) expect(await redis.zcard(`{treadle:00}:${name}`)).toBe(0);
  expect(await memory() - bytes).toBeLessThan(scaled({ small: 2, large: 10 }) * 1024 * 1024);
  redis.disconnect();
  for (const run of runs) expect(await stage.client.run(run.id)).toMatchObject({ status: 'completed' });
}, scaled({ small: 120_000, large: 1_800_000 }));

test('while the archive is away runs go on, and everything is archived once it is back', async () => {
  s3 = await startS3Server();
  stage = await startStage({
    model: { script: [], whenUsedUp: 'done' },
    env: { S3_BUCKET: s3.bucket, S3_ENDPOINT: s3.endpoint, S3_ACCESS_KEY_ID: 'test', S3_SECRET_ACCESS_KEY: 'testtest' },
  });
  await stage.startWorker();
  s3.down();
  const { id } = await stage.client.createRun({ agent: 'tester', input: 'go' });
  expect(await stage.client.wait(id, 20_000)).toMatchObject({ status: 'completed', archived_seq: 0 });
  s3.up();
  await until('it is archived', async () => { const run = await stage!.client.run(id); return run['archived_seq'] === run.last_seq; }, 60_000);
}, 120_000);
