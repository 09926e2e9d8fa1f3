/** Redis is emptied under runs in every state; what the archive has is put back, and goes on. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { RunEvent } from '@treadle/core';
import { connectRedis } from '@treadle/run-store';
import { text, tool, type ChatBody, type ScriptedReply } from '@treadle/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startStage, treadle, until, type Role, type Stage } from './processes.ts';

let stage: Stage;

/** By the word in the user's message, and by how many results have come. */
function script(body: ChatBody): ScriptedReply {
  const messages = body.messages ?? [];
  const asked = String(messages.findLast((message) => message.role === 'user')?.content);
  const results = messages.slice(messages.findLastIndex((message) => message.role === 'user')).filter((message) => message.role === 'tool').length;
  if (results > 0) return text(`${asked} is done`);
  if (asked.includes('tool')) return tool(null, 'test__slow_lookup', { ms: 60_000 });
  if (asked.includes('once')) return tool(null, 'test__slow_write', { ms: 60_000 });
  return text(`${asked} is done`);
}

beforeEach(async () => {
  stage = await startStage({ model: { script }, tools: { 'test/slow_lookup': { effect: 'read' } } });
});
afterEach(() => stage.stop());

const create = async (input: string, more: object = {}): Promise<string> => (await stage.client.createRun({ agent: 'tester', input, ...more })).id;
const archived = (id: string, seq = 2) => until(`${id} is archived`, async () => Number((await stage.client.run(id))['archived_seq']) >= seq);

async function emptied(worker: Role): Promise<void> {
  worker.kill();
  await worker.exited;
  const redis = connectRedis(stage.redis.url, { role: 'command' });
  await redis.flushall();
  redis.disconnect();
}

async function restore(...args: string[]): Promise<Record<string, unknown>> {
  const done = await treadle(['restore', '--from-archive', '--json', ...args], { env: { ...stage.env } });
  expect(done).toMatchObject({ code: 0, stderr: '' });
  return JSON.parse(done.stdout) as Record<string, unknown>;
}

async function api(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
  const response = await fetch(`${stage.api.url}/v1/schedules${path}`, { method, ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }) });
  return await response.json() as Record<string, unknown>;
}

const schedule = (cron: string) => api('POST', '', { cron, timezone: 'Europe/Berlin', name: cron, run: { agent: 'tester', input: 'report' } });

async function logOf(id: string): Promise<RunEvent[]> {
  const log: RunEvent[] = [];
  for await (const event of stage.client.events(id)) log.push(event);
  return log;
}

test('with repeats accepted all go on: in a tool, paused, queued in a session, with a time ahead, and one that had ended', async () => {
  const held = await create('held');
  await stage.client.pause(held);
  const worker = await stage.startWorker();
  await until('it is paused', async () => (await stage.client.run(held)).status === 'paused');
  const over = await create('over');
  await stage.client.wait(over, 20_000);
  const inTool = await create('in a tool');
  const session = (await stage.client.run(inTool))['session_id'] as string;
  const queued = await create('queued', { session_id: session, on_busy: 'queue' });
  const later = await create('later', { run_at: new Date(Date.now() + 3_600_000).toISOString() });
  await until('the tool has begun', () => stage.ledger().some((line) => line.phase === 'start'));
  for (const id of [inTool, queued, later, held]) await archived(id);
  await archived(over, (await stage.client.run(over)).last_seq);
  const before = Number((await stage.client.run(inTool))['archived_seq']);
  const folder = join(stage.env['ARCHIVE_DIR']!, 'schedules');
  const [nightly, gone] = [await schedule('0 3 * * *'), await schedule('0 4 * * *')];
  await api('DELETE', `/${String(gone.id)}`);
  await until('the one schedule is archived, and that the other was deleted', () => {
    const names = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.json')).sort() : [];
    return names.join() === [`${String(nightly.id)}/000000000001.json`, `${String(gone.id)}/deleted.json`].sort().join();
  });
  await emptied(worker);

  expect(await restore('--accept-repeats')).toMatchObject({ found: 5, ended: 1, restored: 4, waiting_for_word: 0, present: 0, failed: [], schedules: { found: 1, restored: 1, present: 0, failed: [] } });
  expect(await restore('--accept-repeats')).toMatchObject({ found: 5, restored: 0, present: 4, schedules: { found: 1, restored: 0, present: 1, failed: [] } });
  expect(await api('GET', '')).toEqual({ data: [nightly], next_cursor: null });
  expect(await stage.client.run(held)).toMatchObject({ status: 'paused', pause_reason: 'requested' });
  expect(await stage.client.run(later)).toMatchObject({ status: 'queued' });
  expect(await stage.client.run(queued)).toMatchObject({ status: 'queued' });
  expect((await stage.client.run(over)).status).toBe('completed');

  // The call repeats with the very input that is in its log, a minute long: it is cancelled here, and the session goes on.
  await stage.startWorker();
  await until('the call is repeated', () => stage.ledger().filter((line) => line.phase === 'start' && line.run_id === inTool).length === 2);
  const keys = stage.ledger().filter((line) => line.phase === 'start' && line.run_id === inTool).map((line) => line.idempotency_key);
  expect(new Set(keys).size).toBe(1);
  await stage.client.cancel(inTool);
  expect(await stage.client.wait(inTool, 20_000)).toMatchObject({ status: 'cancelled' });
  expect(await stage.client.wait(queued, 20_000)).toMatchObject({ status: 'completed', answer: 'queued is done' });

  await stage.client.resume(held);
  expect(await stage.client.wait(held, 20_000)).toMatchObject({ status: 'completed', answer: 'held is done' });

  const log = await logOf(inTool);
  expect(log.map((event) => event.seq)).toEqual(log.map((_, index) => index + 1));
  expect(log[before]?.epoch).toBeGreaterThan(1000);
  for (const id of [over, inTool, queued, held]) expect(await stage.client.replay(id)).toMatchObject({ identical: true });
}, 90_000);

test('else a run that may use once tools waits for a person; a call in doubt is not started again', async () => {
  const worker = await stage.startWorker();
  const id = await create('once');
  await until('the call has begun', () => stage.ledger().some((line) => line.phase === 'start'));
  const call = (await until('the call is in the log', async () => {
    const page = await stage.client.get(`/v1/runs/${id}/events?types=tool_use`) as { data: { tool_use_id: string; seq: number }[] };
    return page.data[0];
  }));
  await archived(id, call.seq);
  await emptied(worker);
  expect(await restore()).toMatchObject({ restored: 1, waiting_for_word: 1 });
  expect(await stage.client.run(id)).toMatchObject({ status: 'paused', pause_reason: 'outcome', pending: [{ kind: 'outcome', tool_use_id: call.tool_use_id, tool_name: 'test/slow_write' }] });
  await stage.startWorker();
  expect(await treadle(['runs', 'resolve', id, call.tool_use_id, 'happened', 'written'], { env: { TREADLE_URL: stage.api.url } })).toMatchObject({ code: 0 });
  expect(await stage.client.wait(id, 20_000)).toMatchObject({ status: 'completed', answer: 'once is done' });
  expect(stage.ledger().filter((line) => line.phase === 'start')).toHaveLength(1);
  expect(stage.model.requests.at(-1)?.body?.messages?.at(-1)).toMatchObject({ role: 'tool', content: 'written' });
}, 90_000);

test('bad usage exits 2, a Redis that is away 3', async () => {
  expect((await treadle(['restore'])).code).toBe(2);
  expect((await treadle(['restore', '--from-archive'], { env: { REDIS_URL: 'redis://127.0.0.1:1', ARCHIVE_DIR: stage.env['ARCHIVE_DIR']! } })).code).toBe(3);
}, 30_000);
