/** Forks on real processes: what was said and done is there, nothing is done twice, every request passes the strict validator. */
import type { RunEvent } from '@treadle/core';
import { text, tool } from '@treadle/testkit';
import { afterEach, expect, test } from 'vitest';
import { startStage, until, type Stage } from './processes.ts';

let stage: Stage;
afterEach(() => stage.stop());

async function logOf(id: string): Promise<RunEvent[]> {
  const log: RunEvent[] = [];
  for await (const event of stage.client.events(id)) log.push(event);
  return log;
}

test('a run is gone on from its middle, its end, and with other words; tools before that are not run again', async () => {
  stage = await startStage({
    agent: { limits: { max_turns: { default: 10, max: 20 } } },
    model: { script: [tool('c1', 'test__touch', { name: 'x' }), text('first'), text('again'), text('other'), text('short')] } });
  await stage.startWorker();
  const { id } = await stage.client.createRun({ agent: 'tester', input: 'touch x', tags: ['t'] });
  await stage.client.wait(id, 20_000);
  const log = await logOf(id);
  const result = log.find((event) => event.type === 'tool_result')!.seq;
  const turnEnd = log.find((event) => event.type === 'turn_end')!.seq;

  const middle = await stage.client.fork(id, { after_seq: turnEnd });
  expect(middle).toMatchObject({ forked_from: id, status: 'queued', tags: ['t'], agent: 'tester' });
  expect(middle['session_id']).not.toBe((await stage.client.run(id))['session_id']);
  expect(await stage.client.wait(middle.id, 20_000)).toMatchObject({ status: 'completed', answer: 'again', tool_calls: 0 });
  expect(stage.model.requests.at(-1)?.body?.messages?.map((message) => message.role)).toEqual(['system', 'user', 'assistant', 'tool']);

  const end = await stage.client.fork(id, { after_seq: log.length, input: 'and now?', limits: { max_turns: 20 } });
  expect(await stage.client.wait(end.id, 20_000)).toMatchObject({ answer: 'other', limits: { max_turns: 20 } });
  expect(stage.model.requests.at(-1)?.body?.messages?.slice(-2)).toMatchObject([{ role: 'assistant', content: 'first' }, { role: 'user', content: 'and now?' }]);

  // Inside the first turn: only the question is left of it.
  const inside = await stage.client.fork(id, { after_seq: result });
  expect(await stage.client.wait(inside.id, 20_000)).toMatchObject({ answer: 'short' });
  expect(stage.model.requests.at(-1)?.body?.messages?.map((message) => message.role)).toEqual(['system', 'user']);

  expect(stage.ledger().filter((line) => line.phase === 'start')).toHaveLength(1);
  for (const each of [middle, end, inside]) expect(await stage.client.replay(each.id)).toMatchObject({ identical: true });
  expect((await logOf(middle.id)).slice(0, 2).map((event) => event.type)).toEqual(['run_created', 'session_history']);
  stage.model.assertUsedUp();
}, 60_000);

test('what cannot be forked is refused with its reason; the same key is the same fork', async () => {
  stage = await startStage({ model: { script: [], whenUsedUp: 'done' } });
  await stage.startWorker();
  const { id } = await stage.client.createRun({ agent: 'tester', input: 'go' });
  await stage.client.wait(id, 20_000);
  const refusals = [
    [{ after_seq: 10_000 }, 'invalid_request', 'after_seq'], [{ after_seq: 1 }, 'invalid_request', 'after_seq'], [{ after_seq: 2, chain: 'nowhere' }, 'invalid_request', 'chain'],
    [{ after_seq: 2, limits: { max_turns: 10_000 } }, 'limit_above_maximum', 'limits.max_turns'],
  ] as const;
  for (const [from, code, path] of refusals) {
    await expect(stage.client.fork(id, from)).rejects.toMatchObject({ status: 422, code, problems: [{ path }] });
  }
  await expect(stage.client.fork(id.replace(/^run_./, 'run_f'), { after_seq: 2 })).rejects.toMatchObject({ status: 404 });
  const first = await stage.client.fork(id, { after_seq: 2, chain: 'default' }, { idempotencyKey: 'k' });
  expect((await stage.client.fork(id, { after_seq: 2, chain: 'default' }, { idempotencyKey: 'k' })).id).toBe(first.id);
  await expect(stage.client.fork(id, { after_seq: 2 }, { idempotencyKey: 'k' })).rejects.toMatchObject({ status: 409, code: 'idempotency_conflict' });
  await until('it ends', async () => (await stage.client.run(first.id)).status === 'completed');
}, 60_000);
