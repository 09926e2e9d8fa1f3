/** Kind 9: payloads larger than anybody wants to carry. */
import { spawn } from 'node:child_process';
import { text, tool, type ChatBody, type ScriptedReply } from '@treadle/testkit';
import { connectRedis } from '@treadle/run-store';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Role } from '../e2e/processes.ts';
import { finish, ofType, play } from './general-checks.ts';
import { startCases, type Cases } from './stage.ts';
import { png } from './pictures.ts';
import { messagesOf, resultCount, resultsOf } from './wire.ts';

const cap = 32_768;
let cases: Cases;
let worker: Role;
beforeAll(async () => {
  cases = await startCases({ models: { seeing: { supports_images: true } }, chains: { seeing: ['seeing'] }, agents: { seeing: { chain: 'seeing' } } });
  worker = await cases.worker();
});
afterAll(async () => { await cases.stop(); });

describe('images', () => {
  test.each(['wide', 'heavy'])('C45: a %s picture of a tool is replaced by a note before it is sent', async (kind) => {
    const { run, requests, events } = await play(cases, `C45 ${kind}`, [tool('c1', 't__picture', { kind }), text('seen')]);
    expect(run).toMatchObject({ status: 'completed', answer: 'seen' });
    expect(requests).toHaveLength(2);
    expect(resultsOf(requests[1])).toEqual([{ id: 'c1', content: '[image (image/png) left out]' }]);
    expect(requests[1]!.rawBody.length).toBeLessThan(20_000);
    expect(ofType(events, 'tool_result')[0]!.is_error).toBe(false);
  });
});

describe('big payloads', () => {
  let watch: Watch;
  beforeAll(() => { watch = watchLag(worker); });

  test('C46: an input of 20 MB is refused with 413, and nothing is left of it', async () => {
    const before = (await cases.stage.client.runs()).data.length;
    const response = await fetch(`${cases.stage.api.url}/v1/runs`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ agent: 'tester', input: 'x'.repeat(20_000_000) }) });
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ code: 'body_too_large' });
    expect((await cases.stage.client.runs()).data).toHaveLength(before);
  });

  test('C46: a result of 20 MB is stored by reference, and the run goes on', async () => {
    const bytes = 20_000_000;
    const { run, events } = await play(cases, 'C46 20 MB', [tool('c1', 't__page', { n: 1, bytes }), text('long')]);
    expect(run).toMatchObject({ status: 'completed', answer: 'long' });
    const [result] = ofType(events, 'tool_result');
    expect(Buffer.byteLength(result!.content)).toBeLessThanOrEqual(cap);
    expect(result!.blob).toMatch(/^[0-9a-f]{64}$/);
    expect(bytes - result!.truncated_bytes!).toBeLessThanOrEqual(cap);
  });

  test('C46: 1 MB a turn grows Redis by less than three times what is kept, and no value passes 1 MB', async () => {
    const runs = 10;
    const turns = 5;
    const redis = connectRedis(cases.stage.redis.url, { role: 'command' });
    try {
      const before = await usedMemory(redis);
      const script = (body: ChatBody): ScriptedReply => resultCount(body) < turns ? tool(null, 't__page', { n: resultCount(body), bytes: 1_000_000 }) : text('read');
      const live = await Promise.all(Array.from({ length: runs }, (_, index) => cases.begin(`C46 ${index}`, script, { agent: 'tester' })));
      for (const each of live) expect((await finish(cases, each)).run).toMatchObject({ status: 'completed', tool_calls: turns });
      expect(await usedMemory(redis) - before).toBeLessThan(3 * runs * turns * cap);
      expect(await largestValue(redis)).toBeLessThan(1_000_000);
    } finally {
      redis.disconnect();
    }
  }, 60_000);

  test('C46: through all of that the worker’s event loop is never late by 200 ms (99th percentile of 5 s)', async () => {
    const { workerS, idleS, readings } = await watch.stop();
    expect(readings).toBeGreaterThan(1);
    expect(workerS - idleS, `the worker ${workerS} s, an idle process ${idleS} s`).toBeLessThan(0.2);
  }, 30_000);
});

// Behind the watch on the event loop: the worker loads an image library here, once in its life.
describe('images of the user', () => {
  test('C45: a wide picture of the user is refused once, and sent smaller', async () => {
    const data = png(9000, 100);
    const { run, requests, events } = await play(cases, 'C45 user', [text('seen')], {
      agent: 'seeing', wire: 'anthropic', refusals: 1, input: [{ type: 'text', text: '[[C45 user]] What is it?' }, { type: 'image', media_type: 'image/png', data }] });
    expect(run).toMatchObject({ status: 'completed', answer: 'seen' });
    // Else the picture was within the limits from the beginning.
    expect(requests.map((request) => request.refused.length)).toEqual([1, 0]);
    expect(requests[0]!.rawBody).toContain(data);
    expect(messagesOf(requests[1]).map((message) => message.content)).toContain('[image]');
    expect(ofType(events, 'error')).toMatchObject([{ error_type: 'image_too_large', action: 'shrink_image' }]);
  });
});

type Redis = ReturnType<typeof connectRedis>;

async function usedMemory(redis: Redis): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))![1]);
}

/** Bytes of the largest element of any key. */
async function largestValue(redis: Redis): Promise<number> {
  let most = 0;
  for (const key of await redis.keys('*')) most = Math.max(most, ...(await elements(redis, key)).map((value) => Buffer.byteLength(value)));
  return most;
}

async function elements(redis: Redis, key: string): Promise<string[]> {
  switch (await redis.type(key)) {
    case 'string': return [await redis.get(key) ?? ''];
    case 'hash': return Object.values(await redis.hgetall(key));
    case 'list': return redis.lrange(key, 0, -1);
    case 'stream': return (await redis.xrange(key, '-', '+')).flatMap(([, fields]) => fields);
    default: return [];
  }
}

interface Watch { stop(): Promise<{ readonly workerS: number; readonly idleS: number; readonly readings: number }> }

/**
 * The worst 99th percentile of five seconds of event loop delay, of a worker by its own metric, and of a process that does nothing:
 * what that one has is this machine's doing.
 */
function watchLag(role: Role): Watch {
  const idle = spawn(process.execPath, ['-e', idleProgram], { stdio: ['pipe', 'pipe', 'inherit'] });
  let idleOutput = '';
  idle.stdout.on('data', (chunk: Buffer) => { idleOutput += chunk.toString(); });
  const exited = new Promise<void>((resolve) => { idle.once('close', () => { resolve(); }); });
  const readings = new Set<number>();
  let stopped = false;
  const reading = (async () => {
    // One reading more than there is to see now: the metric is written every 5 s.
    for (let wanted = Infinity; readings.size < wanted; await new Promise((resolve) => { setTimeout(resolve, 200); })) {
      const metrics = await (await fetch(`${role.url}/metrics`)).text();
      readings.add(Number(/^treadle_event_loop_lag_seconds (\S+)$/m.exec(metrics)![1]));
      if (stopped && wanted === Infinity) wanted = readings.size + 1;
    }
  })();
  return {
    stop: async () => {
      stopped = true;
      await reading;
      idle.stdin.end();
      await exited;
      return { workerS: Math.max(...readings), idleS: Number(idleOutput), readings: readings.size };
    },
  };
}

const idleProgram = `
  const delays = require('node:perf_hooks').monitorEventLoopDelay({ resolution: 20 });
  let worst = 0;
  const look = () => { worst = Math.max(worst, delays.percentile(99) / 1e9); delays.reset(); };
  delays.enable();
  setInterval(look, 5000).unref();
  process.stdin.on('end', () => { look(); process.stdout.write(String(worst)); }).resume();
`;
