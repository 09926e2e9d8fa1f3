/** Kind 9: payloads larger than anybody wants to carry. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RunEvent } from '@treadle/core';
import { reply, status, text, tool, type ChatBody, type ScriptedReply } from '@treadle/testkit';
import sharp from 'sharp';
import { connectRedis } from '@treadle/run-store';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Role } from '../e2e/processes.ts';
import { finish, ofType, play } from './general-checks.ts';
import { startCases, type Cases } from './stage.ts';
import { noise, png } from './pictures.ts';
import { wires, type Wire } from './speech.ts';
import { messagesIn, messagesOf, picturesIn, picturesOf, resultCount, resultsOf } from './wire.ts';

const cap = 32_768;
let cases: Cases;
let worker: Role;
beforeAll(async () => {
  cases = await startCases({ models: { seeing: { supports_images: true } }, chains: { seeing: ['seeing'] }, agents: { seeing: { chain: 'seeing' }, reader: { tools: ['t/*', 'read_blob'] } } });
  worker = await cases.worker();
});
afterAll(async () => { await cases.stop(); });

/** Results stand in the log as they came, and in what a model is sent as they were asked for. */
function inOrder(events: readonly RunEvent[]) {
  const results = ofType(events, 'tool_result');
  return ofType(events, 'tool_use').map(({ tool_use_id }) => results.find((result) => result.tool_use_id === tool_use_id)!);
}

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

  test('C46: the whole of a result can be read piece by piece', async () => {
    const script = (_: ChatBody, count: number): ScriptedReply => count === 0 ? tool('c1', 't__page', { n: 1, bytes: 100_000 })
      : count === 1 ? tool('c2', 'read_blob', { sha256: named(_)!, offset: 50_000, limit: 20 }) : text('read');
    const named = (body: ChatBody): string | undefined => / kept as blob ([0-9a-f]{64}); read_blob/.exec(messagesIn(body).find(({ role }) => role === 'tool')!.content)?.[1];
    const { run, requests, events } = await play(cases, 'C46 read', script, { agent: 'reader' });
    expect(run).toMatchObject({ status: 'completed', answer: 'read' });
    const whole = `page 1 ${'lorem ipsum '.repeat(10_000)}`.slice(0, 100_000);
    expect(resultsOf(requests[2])[1]!.content).toBe(`[bytes 50000 to 50020 of 100000; go on at offset 50020]\n${whole.slice(50_000, 50_020)}`);
    expect(Buffer.byteLength(ofType(events, 'tool_result')[0]!.content)).toBeLessThanOrEqual(cap);
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

  test('R23: ten thousand calls in one reply are no reply: none of them is carried out or kept, and the model is asked again', async () => {
    const calls = Array.from({ length: 10_000 }, (_, index) => ({ id: `c${index}`, name: 't__note', args: { v: String(index) } }));
    const { run, events, live } = await play(cases, 'R23 calls', [reply({ calls }), text('There were too many.')]);
    expect(run).toMatchObject({ status: 'completed', answer: 'There were too many.' });
    expect(ofType(events, 'error')).toMatchObject([{ error_type: 'tool_call_malformed', detail: 'the reply held 10000 tool calls; at most 512 are taken' }]);
    expect([live.starts(), ofType(events, 'tool_use')]).toEqual([[], []]);
  }, 60_000);

  test('R23: a tool’s name of a megabyte and arguments of two hundred levels are errors for the model to read, and are kept short', async () => {
    let deep: unknown = 'end';
    let chain: unknown = { limit: 0 };
    for (let level = 0; level < 200; level++) [deep, chain] = [{ deeper: deep }, { limit: level, and: chain }];
    const { run, events, live } = await play(cases, 'R23 name', [tool('a', 'n'.repeat(1_000_000), {}), tool('b', 't__note', { v: 'x', deep }), tool('c', 't__query', { q: chain }), text('well')]);
    expect(run).toMatchObject({ status: 'completed', answer: 'well' });
    const results = ofType(events, 'tool_result');
    expect(results.map(({ is_error, content }) => [is_error, content.length < 2000])).toEqual([[true, true], [true, true], [true, true]]);
    // Also where the tool's schema would take them: what is cut off is not what was meant.
    for (const { content } of results.slice(1)) expect(content).toContain('nested deeper than 64 levels');
    expect(live.starts()).toEqual([]);
    expect(JSON.stringify(events).length).toBeLessThan(100_000);
  }, 60_000);

  test('C46: through all of that the worker’s event loop is never late by 200 ms (99th percentile of 5 s)', async () => {
    const { workerS, idleS, readings } = await watch.stop();
    expect(readings).toBeGreaterThan(1);
    expect(workerS - idleS, `the worker ${workerS} s, an idle process ${idleS} s`).toBeLessThan(0.2);
  }, 30_000);
});

// Behind the watch on the event loop: the worker loads an image library here, once in its life.
describe('images for a model that takes none', () => {
  test.each(wires)('C45: a wide and a heavy picture of a tool are replaced by notes before they are sent to %s', async (wire) => {
    const { run, requests, events } = await play(cases, `C45 blind ${wire}`, [reply({ calls: ['wide', 'heavy'].map(picture) }), text('seen')], { wire });
    expect(run).toMatchObject({ status: 'completed', answer: 'seen' });
    const results = inOrder(events);
    expect(resultsOf(requests[1])).toEqual(results.map(({ tool_use_id: id, content }) => ({ id, content: `${content}\n[1 image of this result left out: this model takes none.]` })));
    expect(picturesOf(requests[1])).toEqual([]);
    expect(requests[1]!.rawBody.length).toBeLessThan(20_000);
  });
});

describe('images of a tool', () => {
  test.each(wires)('C45: a wide and a heavy picture are shrunk before they are sent to %s; the log names them, and the archive has them as they came', async (wire) => {
    const kinds = ['wide', 'heavy', 'small'];
    const played = await play(cases, `C45 ${wire}`, [reply({ calls: kinds.map(picture) }), tool('again', 't__list_items', {}), text('seen')], { agent: 'seeing', wire });
    expect(played.run).toMatchObject({ status: 'completed', answer: 'seen' });
    expect(played.requests).toHaveLength(3);
    const originals = [png(9000, 100), noise(2200, 2200), png(30, 20)];
    expect(originals[1]!.length).toBeGreaterThan(6_400_000);
    for (const request of played.requests.slice(1)) {
      const sent = picturesOf(request);
      expect(await Promise.all(sent.map(sizeOf))).toEqual(['1568x17 jpeg', '1568x1568 jpeg', '30x20 png']);
      expect(sent.every((each) => each.length < 5_000_000)).toBe(true);
      expect(sent[2]).toBe(originals[2]);
    }
    const results = inOrder(played.events).slice(0, 3);
    const bytes = originals.map((each) => Buffer.from(each, 'base64'));
    expect(results.map(({ attachments }) => attachments)).toEqual(bytes.map((each) => [{ blob: sha256(each), media_type: 'image/png', bytes: each.length }]));
    expect(results.map(({ content }) => content)).toEqual(bytes.map((each) => `[image: image/png, ${each.length} bytes]`));
    expect(JSON.stringify(played.events).length).toBeLessThan(40_000);
    for (const each of bytes) expect(readFileSync(join(cases.stage.env['ARCHIVE_DIR']!, 'runs', played.run.id, 'blobs', sha256(each))).equals(each)).toBe(true);
    const redis = connectRedis(cases.stage.redis.url, { role: 'command' });
    expect(await largestValue(redis)).toBeLessThan(1_000_000);
    redis.disconnect();
  }, 60_000);

  test.each(wires)('C45: what is no picture, or only the beginning of one, is said in words to %s', async (wire) => {
    const { run, requests } = await play(cases, `C45 odd ${wire}`, [reply({ calls: ['none', 'broken'].map(picture) }), text('seen')], { agent: 'seeing', wire });
    expect(run).toMatchObject({ status: 'completed', answer: 'seen' });
    expect(picturesOf(requests[1])).toEqual([]);
    expect(resultsOf(requests[1]).map(({ content }) => content)).toEqual([
      expect.stringMatching(/^\[no image that can be shown: image\/png, 4900000 bytes, kept as blob [0-9a-f]{64}\]$/),
      expect.stringMatching(/^\[image: image\/png, \d+ bytes\]\n\[1 image of this result left out: too large, or not to be read\.\]$/)]);
  });

  test.each(wires)('C45: one that %s refuses all the same is shrunk again, and then taken out', async (wire) => {
    const refusing = (body: ChatBody, count: number): ScriptedReply => count === 0 ? reply({ calls: [picture('small')] })
      : picturesIn(body.messages).length > 0 ? refusals[wire] : text('without');
    const { run, requests, events } = await play(cases, `C45 refused ${wire}`, refusing, { agent: 'seeing', wire });
    expect(run).toMatchObject({ status: 'completed', answer: 'without' });
    expect(requests.map((request) => picturesOf(request).length)).toEqual([0, 1, 1, 1, 0]);
    expect(ofType(events, 'error').map(({ error_type, action }) => [error_type, action])).toEqual([['image_too_large', 'shrink_image'], ['image_too_large', 'shrink_image'], ['image_too_large', 'remove_image']]);
    expect(ofType(events, 'image_removed')).toHaveLength(1);
    expect(resultsOf(requests[4])[0]!.content).toContain('[An image was taken out: the model refused it for its size.]');
  });
});

const picture = (kind: string) => ({ id: kind, name: 't__picture', args: { kind } });
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** As each provider words it. */
const refusals: Readonly<Record<Wire, ScriptedReply>> = {
  ollama: status(400, {}, { error: 'image too large' }),
  openai: status(400, {}, { error: { message: 'Invalid image: image too large', type: 'invalid_request_error', param: null, code: 'image_too_large' } }),
  anthropic: status(400, {}, { type: 'error', error: { type: 'invalid_request_error', message: 'messages.2.content.0.image.source.base64: image exceeds 5 MB maximum' } }),
};

async function sizeOf(data: string): Promise<string> {
  const { width, height, format } = await sharp(Buffer.from(data, 'base64')).metadata();
  return `${width}x${height} ${format}`;
}

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
