/** Redis is emptied under runs that are in a model call, that wait for a provider, that are many; and runs that it has forgotten are forked. */
import type { RunEvent } from '@treadle/core';
import { connectRedis } from '@treadle/run-store';
import { reply, stall, status, text, type ChatBody, type ScriptedReply } from '@treadle/testkit';
import { describe, expect, test, type TestContext } from 'vitest';
import { startStage, treadle, until, type Role } from './processes.ts';

const prefix = '{treadle:00}';
/** Words in `met` have come once: each first request is refused, or hangs. */
function replyTo(body: ChatBody, met: Set<string>): ScriptedReply {
  const messages = body.messages ?? [];
  const asked = String(messages.findLast((message) => message.role === 'user')?.content);
  const results = messages.filter((message) => message.role === 'tool').length;
  const first = !met.has(asked);
  met.add(asked);
  if (first && asked.startsWith('hang')) return stall({ after: 'nothing' });
  if (first && asked.startsWith('busy')) return status(503, { 'retry-after': asked.split(' ')[1]! }, { error: 'busy' });
  if (asked.startsWith('rows') && results < 4) return reply({ calls: [{ id: null, name: 'test__append_row', args: { v: `${asked} ${results}` } }] }, { delayMs: 100 });
  return text(`${asked} is done`);
}

/** Each test has a stage of its own. */
async function begin({ onTestFinished }: TestContext) {
  const met = new Set<string>();
  const stage = await startStage({ model: { script: (body) => replyTo(body, met) }, agent: { tools: ['test/append_row'] }, tools: { 'test/append_row': { effect: 'idempotent' } } });
  onTestFinished(() => stage.stop());

  const create = async (input: string, more: object = {}): Promise<string> => (await stage.client.createRun({ agent: 'tester', input, ...more })).id;
  const archivedTo = (id: string, type: RunEvent['type']) => until(`the ${type} of ${id} is archived`, async () => {
    const page = await stage.client.get(`/v1/runs/${id}/events?types=${type}`) as { data: RunEvent[] };
    const run = await stage.client.run(id);
    return page.data[0] !== undefined && Number(run['archived_seq']) >= page.data[0].seq ? page.data[0] : undefined;
  });

  async function inRedis<T>(act: (redis: ReturnType<typeof connectRedis>) => Promise<T>): Promise<T> {
    const redis = connectRedis(stage.redis.url, { role: 'command' });
    try {
      return await act(redis);
    } finally {
      redis.disconnect();
    }
  }

  async function emptied(...workers: Role[]): Promise<void> {
    for (const worker of workers) {
      worker.kill();
      await worker.exited;
    }
    await inRedis((redis) => redis.flushall());
  }

  async function restore(...args: string[]): Promise<Record<string, unknown>> {
    const done = await treadle(['restore', '--from-archive', '--json', ...args], { env: { ...stage.env } });
    expect(done).toMatchObject({ code: 0, stderr: '' });
    return JSON.parse(done.stdout) as Record<string, unknown>;
  }

  async function whole(id: string): Promise<RunEvent[]> {
    const log: RunEvent[] = [];
    for await (const event of stage.client.events(id)) log.push(event);
    expect(log.map((event) => event.seq)).toEqual(log.map((_, index) => index + 1));
    expect(await stage.client.replay(id)).toMatchObject({ identical: true });
    return log;
  }

  return { stage, create, archivedTo, inRedis, emptied, restore, whole };
}

// Three that mostly wait, at once.
describe('what waits', () => {
  test.concurrent.for([['30', 'running'], ['600', 'paused']] as const)('a run in a model call asks again; one that waits %s s for its provider (%s) waits on until the same time', { timeout: 120_000 }, async ([seconds, waiting], context) => {
    const { stage, create, archivedTo, inRedis, emptied, restore, whole } = await begin(context);
    const worker = await stage.startWorker();
    const hangs = await create('hang');
    await archivedTo(hangs, 'model_request');
    const waits = await create(`busy ${seconds}`);
    const error = await archivedTo(waits, 'error') as RunEvent & { readonly retry_in: number | null };
    await until('all of it is archived', async () => { const run = await stage.client.run(waits); return run.status === waiting && run['archived_seq'] === run.last_seq; });
    const before = await stage.client.run(waits);
    await emptied(worker);

    expect(await restore('--accept-repeats')).toMatchObject({ restored: 2, failed: [] });
    const due = await inRedis(async (redis) => Number(await redis.zscore(`${prefix}:due`, waits)));
    const wakes = waiting === 'paused' ? Date.parse(String(before['resumes_at'])) : (error.ts + (error.retry_in ?? 0)) * 1000;
    expect(Math.abs(due - wakes)).toBeLessThan(2);
    expect(await stage.client.run(waits)).toMatchObject({ status: waiting, resumes_at: before['resumes_at'] });

    // What is known of the provider went with Redis: the time of the wait alone holds it back.
    await stage.startWorker();
    expect(await stage.client.wait(hangs, 20_000)).toMatchObject({ status: 'completed', answer: 'hang is done' });
    expect((await stage.client.run(waits)).status).toBe(waiting);
    await inRedis(async (redis) => {
      await redis.zadd(`${prefix}:due`, 1, waits);
      await redis.hset(`${prefix}:run:${waits}:ctl`, 'not_before', '1');
    });
    expect(await stage.client.wait(waits, 20_000)).toMatchObject({ status: 'completed' });
    for (const id of [hangs, waits]) await whole(id);
  });

  test.concurrent('a session goes on in order: what waits behind an unfinished run cannot be resumed before it', async (context) => {
    const { stage, create, archivedTo, emptied, restore } = await begin(context);
    const worker = await stage.startWorker();
    const first = await create('hang first');
    const session_id = (await stage.client.run(first))['session_id'] as string;
    const second = await create('second', { session_id, on_busy: 'queue' });
    await archivedTo(first, 'model_request');
    await archivedTo(second, 'run_created');
    await emptied(worker);
    // Nobody knows yet what the second may do: a person is asked.
    expect(await restore()).toMatchObject({ restored: 2, waiting_for_word: 1 });
    expect([(await stage.client.run(first)).status, (await stage.client.run(second)).status]).toEqual(['running', 'paused']);
    await expect(stage.client.resume(second)).rejects.toMatchObject({ status: 409, code: 'invalid_state', message: expect.stringContaining(first) });
    await stage.startWorker();
    expect(await stage.client.wait(first, 20_000)).toMatchObject({ status: 'completed' });
    await until('its turn has come', async () => {
      const run = await stage.client.run(second);
      if (run.status === 'paused') await stage.client.resume(second).catch(() => undefined);
      return run.status === 'completed';
    });
    const messages = stage.model.requests.at(-1)?.body?.messages ?? [];
    expect(messages.map((message) => message.content)).toEqual(expect.arrayContaining(['hang first', 'hang first is done', 'second']));
  }, 90_000);
});

test('under load: every run that the archive has goes on to its end, each call under one key', async (context) => {
  const { stage, create, archivedTo, emptied, restore, whole } = await begin(context);
  const workers = [await stage.startWorker(), await stage.startWorker()];
  const ids = await Promise.all(Array.from({ length: 20 }, (_, index) => create(`rows ${index}`)));
  for (const id of ids) await archivedTo(id, 'run_created');
  await until('runs are under way', () => stage.ledger().length > 10);
  await emptied(...workers);
  const summary = await restore('--accept-repeats') as { restored: number; ended: number; failed: unknown[] };
  expect(summary.failed).toEqual([]);
  expect(summary.restored + summary.ended).toBe(ids.length);
  await Promise.all([stage.startWorker(), stage.startWorker()]);
  for (const id of ids) expect(await stage.client.wait(id, 60_000)).toMatchObject({ status: 'completed' });
  for (const id of ids) await whole(id);
  const keys = new Map<string, Set<string | null>>();
  for (const line of stage.ledger().filter((each) => each.phase === 'start')) {
    const call = `${line.run_id ?? ''} ${line.tool_use_id ?? ''}`;
    keys.set(call, (keys.get(call) ?? new Set()).add(line.idempotency_key ?? null));
  }
  expect(keys.size).toBe(ids.length * 4);
  expect([...keys.values()].every((each) => each.size === 1)).toBe(true);
}, 150_000);

test('a run that has left Redis is read, replayed from the archive and forked', async (context) => {
  const { stage, create, inRedis, emptied, whole } = await begin(context);
  const worker = await stage.startWorker();
  const id = await create('rows gone');
  await stage.client.wait(id, 20_000);
  const log = await whole(id);
  await until('its document is archived', async () => { const run = await stage.client.run(id); return run['archived_seq'] === run.last_seq; });
  await until('its document is there', async () => inRedis(async (redis) => (await redis.zscore(`${prefix}:to_archive`, id)) === null));
  await emptied(worker);
  await stage.startWorker();
  expect(await stage.client.run(id)).toMatchObject({ status: 'completed', answer: 'rows gone is done' });
  const turnEnd = log.find((event) => event.type === 'turn_end')!.seq;
  const fork = await stage.client.fork(id, { after_seq: turnEnd });
  expect(await stage.client.wait(fork.id, 20_000)).toMatchObject({ status: 'completed', forked_from: id });
  const end = await stage.client.fork(id, { after_seq: log.length, input: 'and now?' });
  expect(await stage.client.wait(end.id, 20_000)).toMatchObject({ status: 'completed', answer: 'and now? is done' });
  await whole(fork.id);
  expect(stage.ledger().filter((line) => line.phase === 'start' && line.run_id === id)).toHaveLength(4);
}, 60_000);
