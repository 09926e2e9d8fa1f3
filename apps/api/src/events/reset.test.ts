/** R7, for readers: a store that has lost its last writes never makes a reader take one history for another. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { begins, createdRun, createTestApi, ends, increments, keysOf, type TestApi } from '../fixtures/test-api.ts';
import { readStream, type Frame } from '../fixtures/sse-client.ts';

let api: TestApi;
let base: string;
/** The store's clock, as this process knows it. */
let nowMs: number;
const clock = { nowMs: () => nowMs, monotonicMs: () => performance.now() };
beforeEach(async () => {
  nowMs = 1_700_000_000_000;
  api = createTestApi({ deps: { clock } });
  base = await api.app.listen({ host: '127.0.0.1', port: 0 });
});
afterEach(() => api.close());

const read = (id: string, lastEventId?: number, more: Parameters<typeof readStream>[2] = {}) => (
  readStream(`${base}/v1/runs/${id}/events`, keysOf.alpha, { ...more, ...(lastEventId === undefined ? {} : { headers: { 'last-event-id': String(lastEventId) } }) }));
const told = (frames: readonly Frame[]) => frames.map((frame) => `${frame.id} ${frame.event}`);
const log = async (id: string) => (await api.memory.events(id, 0, 1000))!.events;

/** A run of five events, and how many writes made it; then three more, which are lost, unless the archive has them. */
async function lost({ archived = false } = {}): Promise<{ id: string; lose: () => Promise<void> }> {
  const id = await createdRun(api);
  await api.work(id, begins);
  const { writes } = api.memory;
  await api.work(id, increments(3, (index) => `old ${index}`));
  if (archived) await api.archiveRun(id);
  return { id, lose: () => { nowMs += 5000; return api.loseBackTo(id, writes); } };
}

/** Reads on its own until `until` frames have come, then whatever follows. */
function open(id: string, until: number) {
  const frames: Frame[] = [];
  const reading = read(id, undefined, { onFrame: (frame) => frames.push(frame) });
  return { frames, reading, there: () => expect.poll(() => frames.length).toBe(until) };
}

test('an open stream is reset, then shown what is written instead', async () => {
  const { id, lose } = await lost();
  const reader = open(id, 8);
  await reader.there();
  await lose();
  await expect.poll(() => reader.frames.at(-1)).toEqual({ id: '5', event: 'reset', data: '{"type":"reset","last_seq":5}' });
  await api.work(id, ends);
  const { frames, clean } = await reader.reading;
  expect([clean, told(frames).slice(8)]).toEqual([true, ['5 reset', '6 assistant_text', '7 final_response', '8 turn_end', '9 state_change', '10 run_end']]);
  expect(frames.slice(9).map((frame) => frame.data)).toEqual((await log(id)).slice(5));
});

test('it is reset to where the run went on, though the log has grown again by the time somebody looks', async () => {
  const { id, lose } = await lost();
  const reader = open(id, 8);
  await reader.there();
  const looked = reader.frames.length;
  // Two of the three events that were lost are there again, and are others.
  await Promise.all([lose(), api.work(id, increments(2, (index) => `new ${index}`))]);
  await expect.poll(() => reader.frames.length).toBe(looked + 3);
  expect(told(reader.frames).slice(looked)).toEqual(['5 reset', '6 assistant_text', '7 assistant_text']);
  await api.work(id, ends);
  expect((await reader.reading).frames.slice(looked + 1).map((frame) => frame.data)).toEqual((await log(id)).slice(5));
});

test('where the run has ended meanwhile, in fewer events, its end is shown and the stream ends', async () => {
  const { id, lose } = await lost();
  await api.work(id, increments(20));
  const reader = open(id, 28);
  await reader.there();
  const back = lose();
  await Promise.all([back, api.work(id, ends)]);
  expect(told((await reader.reading).frames).slice(28)).toEqual(['5 reset', '6 assistant_text', '7 final_response', '8 turn_end', '9 state_change', '10 run_end']);
  expect(told((await read(id, 28)).frames).at(-1)).toBe('10 run_end');
});

test('it is reset once, though this process takes the store for a little younger than it is', async () => {
  const { id, lose } = await lost();
  const reader = open(id, 8);
  await reader.there();
  await lose();
  nowMs -= 4000;
  await api.work(id, increments(1));
  await api.work(id, ends);
  expect(told((await reader.reading).frames).filter((each) => each.endsWith('reset'))).toHaveLength(1);
});

test('it is reset though what is there instead has as many events, and then ends', async () => {
  const { id, lose } = await lost();
  await api.work(id, increments(2, (index) => `old ${index}`));
  const reader = open(id, 10);
  await reader.there();
  await Promise.all([lose(), api.work(id, ends)]);
  expect((await log(id)).length).toBe(10);
  expect(told((await reader.reading).frames).slice(10)).toEqual(['5 reset', '6 assistant_text', '7 final_response', '8 turn_end', '9 state_change', '10 run_end']);
});

test('it is reset, too, where the log has grown beyond what was lost before anybody looked', async () => {
  const hold: { go: (() => void) | null } = { go: null };
  await api.close();
  // The followers' look is held back.
  let held: Promise<void> | null = null;
  api = createTestApi({ deps: { clock }, store: (store) => ({ ...store, events: async (...asked) => { await held; return store.events(...asked); } }) });
  base = await api.app.listen({ host: '127.0.0.1', port: 0 });
  const { id, lose } = await lost();
  const reader = open(id, 8);
  await reader.there();
  held = new Promise((resolve) => { hold.go = resolve; });
  await lose();
  await api.work(id, increments(4, (index) => `new ${index}`));
  held = null;
  hold.go?.();
  await api.work(id, ends);
  const { frames } = await reader.reading;
  expect(frames[8]).toMatchObject({ event: 'reset', id: '5' });
  expect(frames.slice(9).map((frame) => frame.data)).toEqual((await log(id)).slice(5));
});

test('who comes back to what is lost is reset before anything else', async () => {
  const { id, lose } = await lost();
  await lose();
  const early = read(id, 8);
  await expect.poll(() => api.followers.size).toBeGreaterThan(0);
  // Now there is an event 8 again, and it is another.
  await api.work(id, increments(4, (index) => `new ${index}`));
  const late = read(id, 8);
  await expect.poll(() => api.followers.size).toBeGreaterThan(0);
  await api.work(id, ends);
  for (const { frames } of [await early, await late]) {
    expect(frames[0]).toMatchObject({ event: 'reset', id: '5' });
    expect(frames.slice(1).map((frame) => frame.data)).toEqual((await log(id)).slice(5));
  }
  expect(told((await read(id, 8)).frames).slice(0, 2)).toEqual(['5 reset', '6 assistant_text']);
});

test('who says which epoch its last event had is reset only if that was lost', async () => {
  const { id, lose } = await lost();
  await lose();
  await api.work(id, increments(4));
  await api.work(id, ends);
  const epoch = (seq: number) => log(id).then((lines) => String((JSON.parse(lines[seq - 1]!) as { epoch: number }).epoch));
  const url = `${base}/v1/runs/${id}/events`;
  const first = async (seq: number, of: string) => told((await readStream(url, keysOf.alpha, { headers: { 'last-event-id': String(seq), 'treadle-last-epoch': of } })).frames)[0];
  expect(await first(8, await epoch(8))).toBe('9 assistant_text');
  expect(await first(8, '2')).toBe('5 reset');
  expect(await first(4, await epoch(4))).toBe('5 model_request');
  expect((await readStream(url, keysOf.alpha, { headers: { 'last-event-id': '8', 'treadle-last-epoch': 'x' } })).status).toBe(422);
});

test('who has seen what was written long after that, or before it, is not reset', async () => {
  const { id, lose } = await lost();
  await lose();
  await api.work(id, increments(2));
  api.memory.passTime(120_000);
  nowMs += 120_000;
  await api.work(id, increments(2));
  await api.work(id, ends);
  expect(told((await read(id, 8)).frames)[0]).toBe('9 assistant_text');
  expect(told((await read(id, 5)).frames)[0]).toBe('6 assistant_text');
  expect(told((await read(id)).frames).filter((each) => each.endsWith('reset'))).toEqual([]);
});

test('what the archive has will be written back: its readers wait', async () => {
  const { id, lose } = await lost({ archived: true });
  const reader = open(id, 8);
  await reader.there();
  await lose();
  const again = read(id, 8, { breakAfter: 1 });
  await expect.poll(() => api.followers.size).toBeGreaterThan(1);
  expect(reader.frames).toHaveLength(8);
  await api.close();
  expect([(await reader.reading).frames.length, (await again).status, (await again).frames]).toEqual([8, 200, []]);
});

test('a page has no reset: a position that the log does not reach is refused', async () => {
  const { id, lose } = await lost();
  await lose();
  for (const accept of ['application/json', 'application/x-ndjson']) {
    const { status, body } = await readStream(`${base}/v1/runs/${id}/events?after=8`, keysOf.alpha, { headers: { accept } });
    expect([status, JSON.parse(body)]).toMatchObject([400, { code: 'invalid_request', detail: 'after: beyond the end of the log, which is 5' }]);
  }
});
