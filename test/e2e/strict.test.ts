/** `ARCHIVE_MODE=strict` on real processes: with the archive away nothing is shown and no tool starts; afterwards all goes on. */
import type { RunEvent } from '@treadle/core';
import { reply, startS3Server, text, type ChatBody, type S3Server } from '@treadle/testkit';
import { afterEach, expect, test } from 'vitest';
import { startStage, until, type Stage } from './processes.ts';

let stage: Stage | null = null;
let s3: S3Server | null = null;
afterEach(async () => {
  await stage?.stop();
  await s3?.stop();
});

const twoCalls = reply({ text: 'Let me see.', calls: [{ id: 'a', name: 'test__touch', args: { name: 'x' } }, { id: 'b', name: 'test__touch', args: { name: 'x' } }] });
const isToolsReply = (body: ChatBody) => (body.messages ?? []).some((message) => message.role === 'tool');

async function strictStage() {
  s3 = await startS3Server();
  stage = await startStage({
    model: { script: (body) => isToolsReply(body) ? text('The answer.', { chunkDelayMs: 1, cutAt: 'every_byte' }) : twoCalls },
    env: { ARCHIVE_MODE: 'strict', S3_BUCKET: s3.bucket, S3_ENDPOINT: s3.endpoint, S3_ACCESS_KEY_ID: 'test', S3_SECRET_ACCESS_KEY: 'testtest' },
  });
  await stage.startWorker();
  return { stage, s3 };
}

/** Every line that the archive has. */
function archivedEvents(server: S3Server): Set<string> {
  return new Set([...server.objects].filter(([key]) => key.includes('/events/')).flatMap(([, bytes]) => Buffer.from(bytes).toString().trimEnd().split('\n')));
}

test('a reader sees each event when the archive has it, the reply whole, and tools start after it', async () => {
  const { stage: on, s3: server } = await strictStage();
  const { id } = await on.client.createRun({ agent: 'tester', input: 'go' });
  const events: RunEvent[] = [];
  for await (const event of on.client.events(id)) {
    const lines = [...archivedEvents(server)].map((line) => (JSON.parse(line) as RunEvent)).filter((each) => each.run_id === id).map((each) => each.seq);
    expect(lines).toContain(event.seq);
    events.push(event);
  }
  expect(events.map((event) => event.seq)).toEqual(events.map((_, index) => index + 1));
  expect(events.filter((event) => event.type === 'assistant_text').map((event) => [event.content, event.is_final])).toEqual([['Let me see.', true], ['The answer.', true]]);
  expect(await on.client.run(id)).toMatchObject({ status: 'completed', answer: 'The answer.' });
  expect(on.ledger().filter((line) => line.phase === 'start')).toHaveLength(2);
}, 60_000);

test('with the archive away nothing is shown and no tool starts; when it is back each tool starts once', async () => {
  const { stage: on, s3: server } = await strictStage();
  const first = await on.client.createRun({ agent: 'tester', input: 'go' });
  expect(await on.client.wait(first.id, 30_000)).toMatchObject({ status: 'completed' });
  const [asked, started] = [on.model.requests.length, on.ledger().filter((line) => line.phase === 'start').length];

  server.answerOnly(503);
  const ids = [];
  for (let n = 0; n < 5; n++) ids.push((await on.client.createRun({ agent: 'tester', input: `go ${n}` })).id);
  await new Promise((resolve) => { setTimeout(resolve, 8000); });
  for (const id of ids) {
    expect(await on.client.run(id)).toMatchObject({ status: 'queued', answer: null, archived_seq: 0 });
    expect(await on.client.get(`/v1/runs/${id}/events`)).toEqual({ data: [], next_cursor: null });
  }
  expect(on.ledger().filter((line) => line.phase === 'start')).toHaveLength(started);
  expect(on.model.requests.length).toBe(asked);

  server.answerOnly(null);
  for (const id of ids) expect(await on.client.wait(id, 60_000)).toMatchObject({ status: 'completed', answer: 'The answer.', recoveries: {} });
  expect(on.ledger().filter((line) => line.phase === 'start')).toHaveLength(started + 10);
  for (const id of ids) {
    const calls = await on.client.get(`/v1/runs/${id}/ledger`) as { data: { status: string; outcome: string | null }[] };
    expect(calls.data.map((call) => [call.status, call.outcome])).toEqual([['settled', null], ['settled', null]]);
  }
  await until('all of it is archived, in one segment each', () => [...server.objects.keys()].filter((key) => key.includes('/events/')).length === 6);
}, 180_000);
