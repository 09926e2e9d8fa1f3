import { createHash } from 'node:crypto';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RunEvent } from '@treadle/core';
import { createKeyTable, type ApiKey } from '../auth/keys.ts';
import { asked, begins, createdRun, createTestApi, ends, increments, keysOf, type TestApi } from '../fixtures/test-api.ts';
import { largeLog, type LargeLogApi } from '../fixtures/large-log.ts';
import { readStream, type Frame } from '../fixtures/sse-client.ts';

let api: TestApi;
let base: string;
/** A run of 300 events that has ended, and its log as the store has it. */
let long: { id: string; log: readonly string[] };

beforeAll(async () => {
  api = createTestApi();
  base = await api.app.listen({ host: '127.0.0.1', port: 0 });
  const id = await createdRun(api);
  await api.work(id, [...begins, ...increments(290, (n) => `part ${n}\nwith a line, 현재 🌍 and \u2028 `), ...ends]);
  long = { id, log: (await api.memory.events(id, 0, 1000))!.events };
});
afterAll(() => api.close());

const eventsOf = (id: string, query = '') => `${base}/v1/runs/${id}/events${query}`;
const lines = (frames: readonly Frame[]) => frames.map((frame) => frame.data);

describe('the event stream', () => {
  test('gives the whole log of an ended run, framed, and ends', async () => {
    const { status, headers, frames, clean } = await readStream(eventsOf(long.id), keysOf.alpha);
    expect([status, clean, headers['content-type'], headers['cache-control'], headers['x-accel-buffering'], headers['content-encoding']])
      .toEqual([200, true, 'text/event-stream; charset=utf-8', 'no-cache, no-transform', 'no', undefined]);
    expect(lines(frames)).toEqual(long.log);
    frames.forEach((frame, index) => {
      expect([frame.id, frame.event]).toEqual([String(index + 1), (JSON.parse(frame.data) as RunEvent).type]);
    });
  });

  test('resumes at every offset, by header and by query', async () => {
    expect(long.log).toHaveLength(300);
    for (let after = 0; after < 300; after++) {
      const by = after % 2 === 0 ? { url: eventsOf(long.id), headers: { 'last-event-id': String(after) } } : { url: eventsOf(long.id, `?after=${after}`), headers: {} };
      const { frames } = await readStream(by.url, keysOf.alpha, { headers: by.headers });
      expect([after, frames.length, lines(frames)]).toEqual([after, 300 - after, long.log.slice(after)]);
    }
  });

  test('read with breaks after 0 to 7 events adds up to the log, while the run goes on', async () => {
    const id = await createdRun(api);
    const seen: Frame[] = [];
    let read = false;
    const reader = (async () => {
      for (let last = '', n = 0; seen.at(-1)?.event !== 'run_end'; n++) {
        const headers: Record<string, string> = last === '' ? {} : { 'last-event-id': last };
        const { frames } = await readStream(eventsOf(id), keysOf.alpha, { headers, breakAfter: (n * 5) % 8 });
        seen.push(...frames);
        last = seen.at(-1)?.id ?? '';
      }
      read = true;
    })();
    await api.work(id, begins);
    for (let n = 0; n < 30; n++) {
      await api.work(id, increments(3));
      await new Promise((resolve) => { setImmediate(resolve); });
    }
    await api.work(id, ends);
    await reader;
    expect(read).toBe(true);
    expect(lines(seen)).toEqual((await api.memory.events(id, 0, 1000))!.events);
  });

  test('prefers the header to the query, takes an empty header for none, and tells a reconnecting browser to stop', async () => {
    const both = await readStream(eventsOf(long.id, '?after=10'), keysOf.alpha, { headers: { 'last-event-id': '298' } });
    expect(both.frames.map((frame) => frame.id)).toEqual(['299', '300']);
    const empty = await readStream(eventsOf(long.id, '?after=299'), keysOf.alpha, { headers: { 'last-event-id': '' } });
    expect(empty.frames.map((frame) => frame.id)).toEqual(['300']);
    expect((await readStream(eventsOf(long.id), keysOf.alpha, { headers: { 'last-event-id': '300' } })).status).toBe(204);
    expect(await readStream(eventsOf(long.id, '?after=300'), keysOf.alpha)).toMatchObject({ status: 200, clean: true, frames: [] });
  });

  test.each(['abc', '-1', '1.5', '301', '99999999999999999999', '0x10', ' '])('refuses the position "%s" with 400', async (position) => {
    for (const { url, headers } of [
      { url: eventsOf(long.id, `?after=${encodeURIComponent(position)}`), headers: {} },
      ...(position.trim() === '' ? [] : [{ url: eventsOf(long.id), headers: { 'last-event-id': position } }]),
    ]) {
      const { status, body } = await readStream(url, keysOf.alpha, { headers });
      expect([status, (JSON.parse(body) as { code: string }).code]).toEqual([400, 'invalid_request']);
    }
  });

  test('filters by type, and ends all the same', async () => {
    const { frames, clean } = await readStream(eventsOf(long.id, '?types=run_created,final_response,approval_requested'), keysOf.alpha);
    expect([frames.map((frame) => frame.event), clean]).toEqual([['run_created', 'final_response'], true]);
    expect((await readStream(eventsOf(long.id, '?types=run_created,nonsense'), keysOf.alpha)).status).toBe(422);
    expect((await readStream(eventsOf(long.id, '?colour=red'), keysOf.alpha)).status).toBe(422);
  });

  test('goes on from the archive to what is new', async () => {
    const id = await createdRun(api);
    await api.work(id, [...begins, ...increments(150)]);
    await api.archiveRun(id);
    expect((await api.memory.events(id, 0, 10))!.events).toEqual([]);
    const reading = readStream(eventsOf(id), keysOf.alpha);
    await expect.poll(() => api.followers.size).toBeGreaterThan(0);
    await api.work(id, ends);
    expect((await reading).frames.map((frame) => Number(frame.id))).toEqual(Array.from({ length: 160 }, (_, index) => index + 1));
  });

  test('answers at once, and breathes while nothing happens', async () => {
    const own = createTestApi({ options: { heartbeatMs: 20 } });
    const url = await own.app.listen({ host: '127.0.0.1', port: 0 });
    const id = await createdRun(own);
    let responded = false;
    let comments = 0;
    const reading = readStream(`${url}/v1/runs/${id}/events`, keysOf.alpha, {
      headers: { 'accept-encoding': 'gzip' }, onResponse: () => { responded = true; }, onComment: () => { comments += 1; } });
    await expect.poll(() => responded, { timeout: 1000 }).toBe(true);
    await expect.poll(() => comments, { timeout: 5000 }).toBeGreaterThanOrEqual(3);
    await own.work(id, [...begins, ...ends]);
    expect(await reading).toMatchObject({ clean: true, frames: { length: 10 } });
    await own.close();
  });

  test('a reader that leaves frees everything, and the run does not mind', async () => {
    const counts = { opened: 0, gone: 0 };
    const own = createTestApi({ deps: { observe: { sseClientOpened: () => { counts.opened += 1; }, sseClientGone: () => { counts.gone += 1; } } } });
    const url = await own.app.listen({ host: '127.0.0.1', port: 0 });
    const id = await createdRun(own);
    await readStream(`${url}/v1/runs/${id}/events`, keysOf.alpha, { breakAfter: 2 });
    await expect.poll(() => counts).toEqual({ opened: 1, gone: 1 });
    await expect.poll(() => own.followers.size).toBe(0);
    await own.work(id, [...begins, ...ends]);
    expect((await own.memory.read(id))?.status).toBe('completed');
    await own.close();
  });

  test('bears with a store that is away for a while, and gives up after that', async () => {
    let away = false;
    const own = createTestApi({
      store: (store) => ({ ...store, events: (...args) => (away ? Promise.reject(new Error('Connection is closed.')) : store.events(...args)) }),
      options: { streamRetryMs: 10, streamOutageMs: 300 },
    });
    const url = await own.app.listen({ host: '127.0.0.1', port: 0 });
    const id = await createdRun(own);
    const frames: Frame[] = [];
    const read = () => readStream(`${url}/v1/runs/${id}/events`, keysOf.alpha, { onFrame: (frame) => frames.push(frame) });
    const reading = read();
    await expect.poll(() => frames.length).toBe(2);
    away = true;
    await own.work(id, begins);
    away = false;
    await expect.poll(() => frames.length).toBe(5);
    away = true;
    await own.work(id, increments(1));
    expect((await reading).frames).toHaveLength(5);
    away = false;
    await own.close();
  });

  test('closing the server ends streams cleanly', async () => {
    const own = createTestApi({ options: { closeGraceMs: 100 } });
    const url = await own.app.listen({ host: '127.0.0.1', port: 0 });
    const id = await createdRun(own);
    let frames = 0;
    const reading = readStream(`${url}/v1/runs/${id}/events`, keysOf.alpha, { onFrame: () => { frames += 1; } });
    await expect.poll(() => frames).toBe(2);
    const startMs = performance.now();
    await own.close();
    expect(await reading).toMatchObject({ clean: true, frames: { length: 2 } });
    expect(performance.now() - startMs).toBeLessThan(5000);
  });
});

describe('JSONL', () => {
  test('is the whole log, a line for each event', async () => {
    const { status, headers, body, clean } = await readStream(eventsOf(long.id), keysOf.alpha, { headers: { accept: 'application/x-ndjson' } });
    expect([status, headers['content-type'], clean]).toEqual([200, 'application/x-ndjson', true]);
    expect(body).toBe(`${long.log.join('\n')}\n`);
  });

  test('of a live run is what is there', async () => {
    const id = await createdRun(api);
    const { body, clean } = await readStream(eventsOf(id), keysOf.alpha, { headers: { accept: 'application/x-ndjson' } });
    expect([body.split('\n').length, clean]).toEqual([3, true]);
  });

  test('that cannot be read on is visibly cut short', async () => {
    const own = createTestApi({ store: (store) => ({
      ...store, events: (id, after, limit) => (after >= 100 ? Promise.reject(new Error('Connection is closed.')) : store.events(id, after, limit)) }) });
    const url = await own.app.listen({ host: '127.0.0.1', port: 0 });
    const id = await createdRun(own);
    await own.work(id, [...begins, ...increments(200)]);
    const { clean } = await readStream(`${url}/v1/runs/${id}/events`, keysOf.alpha, { headers: { accept: 'application/x-ndjson' } });
    expect(clean).toBe(false);
    await own.close();
  });
});

describe('a reader that never reads', () => {
  function sleeper(url: string, accept: string): Promise<{ closed: Promise<void>; destroy: () => void }> {
    return new Promise((resolve, reject) => {
      const asking = request(url, { headers: { authorization: `Bearer ${keysOf.alpha}`, accept, connection: 'keep-alive' }, agent: false });
      asking.on('error', reject).on('response', (response) => {
        response.pause();
        const { socket } = response;
        response.on('error', () => undefined);
        resolve({ closed: new Promise((gone) => { socket.once('close', () => gone()); }), destroy: () => socket.destroy() });
      }).end();
    });
  }

  test('is cut off, costs little memory, and does not hold back one that reads', async () => {
    const gone = { count: 0 };
    const own = createTestApi({
      store: largeLog(400, 32_000), options: { drainTimeoutMs: 1500, maxBufferedBytes: 256 * 1024 }, deps: { observe: { sseClientGone: () => { gone.count += 1; } } } });
    const answers: ServerResponse[] = [];
    own.app.addHook('onRequest', async (_request, reply) => { answers.push(reply.raw); });
    let peakBytes = 0;
    const sampling = setInterval(() => { peakBytes = Math.max(peakBytes, ...answers.map((answer) => answer.writableLength)); }, 5);
    const url = await own.app.listen({ host: '127.0.0.1', port: 0 });
    const id = await createdRun(own);
    const sleepers = await Promise.all(Array.from({ length: 20 }, () => sleeper(`${url}/v1/runs/${id}/events`, 'text/event-stream')));
    const beforeBytes = process.memoryUsage().rss;
    const startMs = performance.now();
    const healthy = await readStream(`${url}/v1/runs/${id}/events`, keysOf.alpha, { breakAfter: 400 });
    expect([healthy.frames.length, performance.now() - startMs < 5000]).toEqual([400, true]);
    await expect.poll(() => gone.count, { timeout: 10_000 }).toBe(21);
    clearInterval(sampling);
    expect([peakBytes > 256 * 1024, peakBytes < (256 + 64) * 1024]).toEqual([true, true]);
    await expect.poll(() => connections(own), { timeout: 5000 }).toBe(0);
    expect(process.memoryUsage().rss - beforeBytes).toBeLessThan(150 * 1024 * 1024);
    for (const each of sleepers) each.destroy();
    await own.close();
  });

  test('of a log that has ended is cut off as well, and counts until it is gone', async () => {
    const counts = { opened: 0, gone: 0 };
    const own = createTestApi({
      store: largeLog(8, 32_000, true), options: { drainTimeoutMs: 700 },
      deps: { observe: { sseClientOpened: () => { counts.opened += 1; }, sseClientGone: () => { counts.gone += 1; } } } });
    const url = await own.app.listen({ host: '127.0.0.1', port: 0 });
    const id = await createdRun(own);
    // Little enough to lie in the writer or in the system's buffers, so that nobody ever waits for the reader.
    const sleepers = await Promise.all(['text/event-stream', 'text/event-stream', 'application/x-ndjson'].map((accept) => sleeper(`${url}/v1/runs/${id}/events`, accept)));
    await expect.poll(() => connections(own), { timeout: 5000 }).toBe(0);
    await expect.poll(() => counts).toEqual({ opened: 2, gone: 2 });
    for (const each of sleepers) each.destroy();
    await own.close();
  });

  test('counts as a client while its end waits to be read', async () => {
    let open = 0;
    const own = createTestApi({
      store: largeLog(300, 32_000, true), options: { drainTimeoutMs: 1500, maxBufferedBytes: 16 * 1024 * 1024 },
      deps: { observe: { sseClientOpened: () => { open += 1; }, sseClientGone: () => { open -= 1; } } } });
    let ended: ServerResponse | null = null;
    own.app.addHook('onRequest', async (_request, reply) => { ended = reply.raw; });
    const url = await own.app.listen({ host: '127.0.0.1', port: 0 });
    const asleep = await sleeper(`${url}/v1/runs/${await createdRun(own)}/events`, 'text/event-stream');
    await expect.poll(() => ended?.writableEnded).toBe(true);
    expect([open, await connections(own)]).toEqual([1, 1]);
    await expect.poll(() => [open], { timeout: 5000 }).toEqual([0]);
    expect(await connections(own)).toBe(0);
    asleep.destroy();
    await own.close();
  });

  // Without a limit the heap grows as long as nobody has the time to collect it, on a busy machine by all that was ever read.
  test('C73: fifty of them, and one that reads 200 MB, are served from a heap of 160 MB', async () => {
    const child = fork(join(import.meta.dirname, '../fixtures/large-log.ts'), { execArgv: ['--max-semi-space-size=16', '--max-old-space-size=160'] });
    let sampling: NodeJS.Timeout | undefined;
    let sleepers: readonly { destroy: () => void }[] = [];
    try {
      const [{ eventsUrl, events }] = await once(child, 'message') as [LargeLogApi];
      const rssMb = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))![1]) / 1024;
      const beforeMb = rssMb();
      let peakMb = 0;
      sampling = setInterval(() => { peakMb = Math.max(peakMb, rssMb()); }, 10);
      const accepts = Array.from({ length: 50 }, (_, n) => (n % 5 === 0 ? 'application/x-ndjson' : 'text/event-stream'));
      sleepers = await Promise.all(accepts.map((accept) => sleeper(eventsUrl, accept)));
      expect(await countLines(eventsUrl)).toBe(events);
      expect(peakMb - beforeMb).toBeLessThan(150);
    } finally {
      clearInterval(sampling);
      for (const each of sleepers) each.destroy();
      const gone = once(child, 'exit');
      if (child.kill()) await gone;
    }
  });

  /** Reads a whole log as JSONL and keeps nothing of it. */
  async function countLines(url: string): Promise<number> {
    const response = await fetch(url, { headers: { authorization: `Bearer ${keysOf.alpha}`, accept: 'application/x-ndjson' } });
    let lines = 0;
    for await (const chunk of response.body!) for (const byte of chunk as Uint8Array) if (byte === 10) lines += 1;
    return lines;
  }

  test('does not hold back the server when it closes', async () => {
    const own = createTestApi({ store: largeLog(400, 32_000), options: { closeGraceMs: 100 } });
    const url = await own.app.listen({ host: '127.0.0.1', port: 0 });
    const id = await createdRun(own);
    await Promise.all(['text/event-stream', 'application/x-ndjson'].map((accept) => sleeper(`${url}/v1/runs/${id}/events`, accept)));
    const startMs = performance.now();
    await own.close();
    expect(performance.now() - startMs).toBeLessThan(3000);
  });

  test.each(['events of a run', 'events of a session'])('of JSONL is cut off too: %s', async (what) => {
    const own = createTestApi({ store: largeLog(2000, 32_000), options: { drainTimeoutMs: 200, maxBufferedBytes: 64 * 1024 } });
    const url = await own.app.listen({ host: '127.0.0.1', port: 0 });
    const id = await createdRun(own);
    const { session_id } = (await own.app.inject({ url: `/v1/runs/${id}`, ...asked(keysOf.alpha) })).json<{ session_id: string }>();
    const asleep = await sleeper(what === 'events of a run' ? `${url}/v1/runs/${id}/events` : `${url}/v1/sessions/${session_id}/events`, 'application/x-ndjson');
    await expect.poll(() => connections(own), { timeout: 10_000 }).toBe(0);
    asleep.destroy();
    await own.close();
  });
});

test('a stream, and a wait, end when the key expires', async () => {
  const nowMs = Date.now();
  const expiring: ApiKey = { key_sha256: createHash('sha256').update('tk_soon').digest('hex'), tenant: 'alpha', scopes: ['admin'], expires_at_ms: nowMs + 400, name: null };
  const clock = { nowMs: () => Math.min(Date.now(), nowMs), monotonicMs: () => performance.now() };
  const own = createTestApi({ deps: { keys: createKeyTable([expiring]), clock } });
  const url = await own.app.listen({ host: '127.0.0.1', port: 0 });
  const id = await createdRun(own, { input: 'x' }, 'tk_soon');
  const waiting = fetch(`${url}/v1/runs/${id}/wait?timeout_ms=60000`, { headers: { authorization: 'Bearer tk_soon' } });
  const { frames, clean } = await readStream(`${url}/v1/runs/${id}/events`, 'tk_soon');
  expect([frames.length, clean, (await waiting).status, performance.timeOrigin + performance.now() - nowMs >= 390]).toEqual([2, true, 200, true]);
  await own.close();
});

function connections(api_: TestApi): Promise<number> {
  return new Promise((resolve, reject) => { api_.app.server.getConnections((error, count) => (error ? reject(error) : resolve(count))); });
}

test('the stream of a foreign or unknown run is a problem, not a stream', async () => {
  const { status, headers } = await readStream(eventsOf(long.id), keysOf.beta);
  expect([status, headers['content-type']]).toEqual([404, 'application/problem+json']);
  expect((await api.app.inject({ url: '/v1/runs/run_x/events', ...asked(keysOf.alpha, undefined, { accept: 'text/event-stream' }) })).statusCode).toBe(404);
});
