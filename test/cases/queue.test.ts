/** C55, C57, C59: a worker that is told to go, jobs whose ids are still known or that are lost, waits over a cut connection. */
import { connectRedis } from '@treadle/run-store';
import { reply, startTcpProxy, status, text, tool, type ChatBody, type ScriptedReply } from '@treadle/testkit';
import { describe, expect, test, type TestContext } from 'vitest';
import { startStage, until } from '../e2e/processes.ts';

const resultsOf = (body: ChatBody): number => (body.messages ?? []).filter((message) => message.role === 'tool').length;
const askedOf = (body: ChatBody): string => String(body.messages?.find((message) => message.role === 'user')?.content);

/** Each test has a stage of its own: much of their time is waiting, and two of them wait at once. */
async function begin({ onTestFinished }: TestContext, script: (body: ChatBody) => ScriptedReply, env: Readonly<Record<string, string>> = {}) {
  const stage = await startStage({ model: { script }, env });
  onTestFinished(() => stage.stop());
  const starts = (id: string) => stage.ledger().filter((line) => line.phase === 'start' && line.run_id === id);
  const create = async (input: string): Promise<string> => (await stage.client.createRun({ agent: 'tester', input })).id;
  const whole = async (id: string): Promise<void> => {
    const seqs: number[] = [];
    for await (const event of stage.client.events(id)) seqs.push(event.seq);
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
    expect(await stage.client.replay(id)).toMatchObject({ identical: true });
  };
  return { stage, starts, create, whole };
}

describe('a worker that is told to go', () => {
  test.concurrent.for([
    ['within the time it has, it finishes it and renews its lease', 20_000, 'settled'], ['beyond that time, the call is in doubt and is not started again', 1000, 'unknown'],
  ] as const)('C55: a worker that is told to go during a tool that is longer than its lease: %s', { timeout: 120_000 }, async ([, drainMs, outcome], context) => {
    const script = (body: ChatBody): ScriptedReply => resultsOf(body) > 0 ? text('done') : tool(null, 'test__slow_write', { ms: 9000 });
    const { stage, starts, create, whole } = await begin(context, script, { TREADLE_LEASE_MS: '2000', TREADLE_DRAIN_TIMEOUT_MS: String(drainMs) });
    const leaving = await stage.startWorker();
    const ids = await Promise.all(Array.from({ length: 5 }, (__, index) => create(`run ${index}`)));
    await until('all tools run', () => stage.ledger().filter((line) => line.phase === 'start').length === ids.length);
    await stage.startWorker();
    leaving.kill('SIGTERM');
    expect(await leaving.exited).toBe(0);
    for (const id of ids) {
      expect(await stage.client.wait(id, 60_000)).toMatchObject({ status: 'completed' });
      expect(starts(id), id).toHaveLength(1);
      const { data } = await stage.client.get(`/v1/runs/${id}/events?types=tool_result`) as { data: { outcome?: string }[] };
      expect(data.map((event) => event.outcome ?? 'settled')).toEqual([outcome]);
      await whole(id);
    }
  });
});

describe('jobs that are lost, and waits', () => {
  test.concurrent('C57: a run that is paused and resumed in one turn, three times, goes on each time, and one whose job is lost is found', async (context) => {
    const { stage, starts, create, whole } = await begin(context, (body) => resultsOf(body) < 4 ? reply({ calls: [{ id: null, name: 'test__append_row', args: { v: String(resultsOf(body)) } }] }) : text('done'));
    const id = await create('often');
    const paused = async (): Promise<boolean> => (await stage.client.run(id)).status === 'paused';
    await stage.client.pause(id);
    const worker = await stage.startWorker();
    await until('it is paused', paused);
    for (let round = 0; round < 3; round++) {
      await stage.client.resume(id);
      await stage.client.pause(id);
      await until('it is paused again', paused);
    }
    await stage.client.resume(id);
    expect(await stage.client.wait(id, 20_000)).toMatchObject({ status: 'completed' });
    expect(starts(id)).toHaveLength(4);
    await whole(id);

    // Whatever adds jobs has stopped: of these runs no job is left.
    worker.kill('SIGTERM');
    await worker.exited;
    const lost = await Promise.all(['one', 'two', 'three'].map(create));
    const redis = connectRedis(stage.redis.url, { role: 'command' });
    for (const each of lost) expect(await redis.zrem('{treadle:00}:turns:prioritized', `${each}-1`) + await redis.del(`{treadle:00}:turns:${each}-1`)).toBe(2);
    redis.disconnect();
    await stage.startWorker();
    for (const each of lost) expect(await stage.client.wait(each, 60_000)).toMatchObject({ status: 'completed' });
  }, 150_000);

  test.concurrent('C59: runs that wait for a provider wake, though Redis was away when their time came and nothing else is going on', async (context) => {
    const asked = new Set<string>();
    const waits = ['2', '4', '6'];
    const { stage, create, whole } = await begin(context, (body) => {
      const seconds = askedOf(body);
      if (asked.has(seconds)) return text('done');
      asked.add(seconds);
      return status(429, { 'retry-after': seconds }, { error: 'slow down' });
    });
    const proxy = await startTcpProxy({ port: stage.redis.port });
    context.onTestFinished(() => proxy.close());
    await stage.startWorker({ REDIS_URL: `redis://127.0.0.1:${proxy.port}` });
    const ids = await Promise.all(waits.map(create));
    await until('all wait', async () => (await Promise.all(ids.map((id) => stage.client.get(`/v1/runs/${id}/events?types=error`)))).every((page) => (page as { data: unknown[] }).data.length > 0));
    proxy.freeze();
    const redis = connectRedis(stage.redis.url, { role: 'command' });
    await until('the time of all has come', async () => {
      const times = await Promise.all(ids.map((id) => redis.zscore('{treadle:00}:due', id)));
      const [seconds] = await redis.time();
      return times.every((time) => time !== null && Number(time) < Number(seconds) * 1000);
    });
    redis.disconnect();
    proxy.pass();
    for (const id of ids) {
      expect(await stage.client.wait(id, 60_000)).toMatchObject({ status: 'completed' });
      await whole(id);
    }
  }, 120_000);
});
