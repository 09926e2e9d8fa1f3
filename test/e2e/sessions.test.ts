/** Runs of one session: each goes on from what the one before has said, one at a time. */
import { connectRedis } from '@treadle/run-store';
import { text, tool, type ChatBody } from '@treadle/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startStage, until, type Stage } from './processes.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage({ model: { script: (body) => {
    const messages = body.messages ?? [];
    const last = String(messages.findLast((message) => message.role === 'user')?.content);
    if (last.includes('slowly') && messages.at(-1)?.role === 'user') return tool(null, 'test__slow_lookup', { ms: 4000 });
    return text(`heard ${messages.filter((message) => message.role === 'user').length}`);
  } } });
  await stage.startWorker();
});
afterAll(async () => { await stage.stop(); });

const ask = (input: string, more: { session_id?: string; on_busy?: 'reject' | 'queue' | 'interrupt' | 'steer' } = {}) => stage.client.createRun({ agent: 'tester', input, ...more });
const session = (run: { readonly [field: string]: unknown }): string => run['session_id'] as string;
const asked = (words: string): ChatBody | undefined => stage.model.requests.map((request) => request.body).findLast((body) => body?.messages?.some((message) => String(message.content).includes(words)))!;

test('a run goes on from the transcript of the session, calls and results included, and its log alone tells it', async () => {
  const first = await ask('slowly: what is one?');
  await stage.client.wait(first.id, 20_000);
  const second = await ask('and two?', { session_id: session(first) });
  expect(await stage.client.wait(second.id, 20_000)).toMatchObject({ status: 'completed', answer: 'heard 2' });
  expect(asked('and two?')!.messages!.map((message) => message.role)).toEqual(['system', 'user', 'assistant', 'tool', 'assistant', 'user']);
  expect(await stage.client.replay(second.id)).toMatchObject({ identical: true });
  const third = await ask('and three?', { session_id: session(first) });
  expect(await stage.client.wait(third.id, 20_000)).toMatchObject({ answer: 'heard 3' });
  expect(stage.model.violations).toEqual([]);
}, 60_000);

test('a session whose runs Redis has forgotten goes on from the archive', async () => {
  const first = await ask('what is a?');
  await stage.client.wait(first.id, 20_000);
  await until('it is archived', async () => { const run = await stage.client.run(first.id); return run['archived_seq'] === run.last_seq; });
  const redis = connectRedis(stage.redis.url, { role: 'command' });
  const keys = await redis.keys(`*run:${first.id}:*`);
  await redis.del(...keys);
  redis.disconnect();
  const second = await ask('what is b?', { session_id: session(first) });
  expect(await stage.client.wait(second.id, 20_000)).toMatchObject({ answer: 'heard 2' });
}, 60_000);

describe('while the session is busy', () => {
  test('a run is refused, unless it says what shall happen', async () => {
    const first = await ask('slowly, please');
    await expect(ask('me too', { session_id: session(first) })).rejects.toMatchObject({ status: 409, code: 'session_busy' });
    await expect(ask('me too', { session_id: `ses_${'0'.repeat(32)}` })).rejects.toMatchObject({ status: 404, code: 'not_found' });
    await stage.client.wait(first.id, 20_000);
  }, 60_000);

  test('queue: it waits, and hears what was said before it', async () => {
    const first = await ask('slowly, and then');
    const second = await ask('the second', { session_id: session(first), on_busy: 'queue' });
    const third = await ask('the third', { session_id: session(first), on_busy: 'queue' });
    expect([second.status, third.status]).toEqual(['queued', 'queued']);
    expect(await stage.client.wait(third.id, 30_000)).toMatchObject({ status: 'completed', answer: 'heard 3' });
    const [a, b, c] = await Promise.all([first, second, third].map((run) => stage.client.run(run.id)));
    expect(Date.parse(b!.started_at!)).toBeGreaterThanOrEqual(Date.parse(a!.ended_at!));
    expect(Date.parse(c!.started_at!)).toBeGreaterThanOrEqual(Date.parse(b!.ended_at!));
  }, 60_000);

  test('interrupt: the run in front is cancelled, and the new one goes on from what it had said', async () => {
    const first = await ask('slowly, until somebody comes');
    await until('it runs', async () => (await stage.client.run(first.id)).status === 'running');
    const second = await ask('stop that, do this', { session_id: session(first), on_busy: 'interrupt' });
    expect(await stage.client.wait(second.id, 20_000)).toMatchObject({ status: 'completed', answer: 'heard 2' });
    expect(await stage.client.run(first.id)).toMatchObject({ status: 'cancelled' });
    expect(stage.model.violations).toEqual([]);
  }, 60_000);

  test('steer: the text reaches the run under way, once, and no run is created, though it is asked again when that one has ended', async () => {
    const first = await ask('slowly, and listen');
    await until('the tool runs', () => stage.ledger().some((line) => line.phase === 'start' && line.run_id === first.id));
    const steer = (input = 'in French') => stage.client.createRun({ agent: 'tester', input, session_id: session(first), on_busy: 'steer' }, { idempotencyKey: 'steered' });
    expect((await Promise.all([steer(), steer()])).map(({ id }) => id)).toEqual([first.id, first.id]);
    await stage.client.wait(first.id, 20_000);
    expect((await steer()).id).toBe(first.id);
    await expect(steer('in German')).rejects.toMatchObject({ status: 409, code: 'idempotency_conflict' });
    // Another run is under way by now: it was not meant either.
    const second = await ask('slowly, and listen again', { session_id: session(first) });
    expect((await steer()).id).toBe(first.id);
    await stage.client.cancel(second.id);
    await stage.client.wait(second.id, 20_000);
    const steers = [];
    for (const { id } of [first, second]) for await (const event of stage.client.events(id)) if (event.type === 'steer') steers.push(event.content);
    expect(steers).toEqual(['in French']);
  }, 60_000);
});
