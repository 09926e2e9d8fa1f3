/** Events from the first to the last: live over SSE, in S3 in the layout of the contract, readable when Redis has forgotten them. */
import { connectRedis } from '@treadle/run-store';
import type { RunEvent } from '@treadle/core';
import { reply, startS3Server, text, type S3Server } from '@treadle/testkit';
import { afterEach, expect, test } from 'vitest';
import { startStage, until, type Stage } from './processes.ts';

let stage: Stage | null = null;
let s3: S3Server | null = null;
afterEach(async () => {
  await stage?.stop();
  await s3?.stop();
});

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
