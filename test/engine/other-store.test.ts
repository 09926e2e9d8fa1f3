/**
 * A store that comes back without its last writes: what the archive has of them is written back before the run goes on; where the two tell
 * different histories, the run ends as `state_lost`.
 */
import { defaultLimits, idIn, initialState, noJudgement, noUsage, restoreState, type Command, type ModelReply, type RunEvent } from '@treadle/core';
import { archiveRun, createRun, executeTurn, HeldRuns, IncrementWriter, readLog, replayRun, WarmRuns, type Archive, type StoreFound, type TurnDeps } from '@treadle/engine';
import { alwaysThere, createMemoryArchive, createMemoryRunStore, testSpec, testTool } from '@treadle/testkit';
import { expect, test } from 'vitest';

const run_id = idIn('run', 0, '1'.repeat(32));
const random = { uuid: () => crypto.randomUUID(), jitter: () => 0 };
const said = (over: Partial<ModelReply>): ModelReply => ({ text: '', thinking: '', provider_data: null, calls: [], finish: 'stop', finish_raw: 'stop', usage: noUsage, ...over });
const calls = (...names: string[]) => names.map((name, index) => ({ provider_id: `c${index}`, name, input: {}, problem: null }));

/** A clock whose pauses cost nothing. */
function steps() {
  let nowMs = 1_700_000_000_000;
  return { nowMs: () => nowMs, monotonicMs: () => nowMs += 600 };
}

async function world(replies: ModelReply[]) {
  const store = createMemoryRunStore();
  const archive = createMemoryArchive();
  const clock = steps();
  let reading: Archive['events'] = archive.events;
  const found: StoreFound[] = [];
  const begun: string[] = [];
  const requests: string[] = [];
  let inTool = (): Promise<void> => Promise.resolve();
  const run = { tenant: 't', spec: testSpec(), agent_version: 'v', limits: defaultLimits, input: 'go', metadata: {}, tags: [], priority: 50, run_at: null };
  await createRun({ store, clock, random, shards: 1 }, run, { run_id, not_after_ms: Number.MAX_SAFE_INTEGER });
  const held = new HeldRuns(store);
  const deps: TurnDeps = {
    store, clock, random, warm: new WarmRuns(), worker: 'w', limits: { poison: 3, nudges: 5 }, held, judge: { judge: () => noJudgement }, history: () => Promise.resolve([]),
    archive: { putBlob: () => Promise.resolve('b'), getBlob: () => Promise.resolve(null), events: (...asked) => reading(...asked) }, increments: new IncrementWriter({ store, random }),
    onOtherStore: (_run_id, each) => { found.push(each); },
    models: { ...alwaysThere, call: ({ request }) => {
      requests.push(JSON.stringify(request.messages));
      return Promise.resolve({ type: 'replied', reply: replies.shift()! });
    } },
    tools: {
      catalogue: () => Promise.resolve({ tools: [testTool('look', { effect: 'read', parallel: 'serial' }), testTool('touch', { effect: 'once', parallel: 'serial' })], problems: [] }), check: () => null, asks: () => false,
      run: async ({ tool }) => { begun.push(tool.name); await inTool(); return { content: 'ok', is_error: false, settled: true }; },
    },
  };
  const state = async () => restoreState(initialState, (await store.read(run_id))!.stored);
  async function work(deliveries = 20): Promise<void> {
    for (let left = deliveries; left > 0; left--) {
      store.passTime(5000);
      await store.pump(0, { limit: 10, grace_ms: 1e9 });
      const job = store.jobs().find((each) => each.type === 'turn');
      if (job === undefined) return;
      if (await executeTurn(deps, job, new AbortController().signal) === 'done') store.removeJob(job);
    }
  }
  const archiving = () => archiveRun({ store, archive, options: { segment_events: 3, keep_events: 0, retention_ms: 1e9 } }, run_id);
  /** Takes back what was written since there were so many writes. */
  const loseBackTo = (writes: number): void => { store.rollBack(store.writes - writes); store.becomeAnother(); };
  const log = async (): Promise<RunEvent[]> => (await readLog({ store, archive }, run_id, { after_seq: 0, limit: 1000 })).map(({ event }) => event);
  const send = (command: Command) => store.command({ run_id, command_id: crypto.randomUUID(), command, not_after_ms: Number.MAX_SAFE_INTEGER });
  async function whole(): Promise<RunEvent[]> {
    await archiving();
    const events = await log();
    expect(events.map((event) => event.seq)).toEqual(events.map((_, index) => index + 1));
    expect((await archive.events(run_id, 0, 1000)).map((text) => JSON.parse(text) as unknown)).toEqual(events);
    expect(await replayRun({ store, archive }, run_id)).toMatchObject({ identical: true });
    return events;
  }
  return { store, archive, found, begun, requests, work, state, archiving, loseBackTo, log, send, whole, setReading: (events: Archive['events']) => { reading = events; }, setInTool: (act: () => Promise<void>) => { inTool = act; } };
}

const twoTurns = () => [said({ calls: calls('look', 'touch') }), said({ calls: calls('look') }), said({ text: 'The answer.' })];

test('what nobody has is gone, and the run goes on from where the store ends', async () => {
  const w = await world([...twoTurns().slice(0, 2), ...twoTurns().slice(1)]);
  await w.work(1);
  const [writes, seq] = [w.store.writes, (await w.state()).last_seq];
  await w.archiving();
  await w.work(1);
  w.loseBackTo(writes);
  expect((await w.state()).last_seq).toBe(seq);
  await w.work();
  const events = await w.whole();
  expect(events.at(-1)).toMatchObject({ type: 'run_end', stop_reason: 'answered' });
  expect(events[seq]!.epoch).toBeGreaterThan(1000);
  expect(w.begun).toEqual(['look', 'touch', 'look', 'look']);
});

test('what the archive has is written back: no tool runs again, nothing that was shown is missing, no word is heard twice', async () => {
  const w = await world([...twoTurns().slice(0, 1), said({ text: 'The answer.' })]);
  await w.send({ type: 'steer', text: 'in French' });
  await w.send({ type: 'steer', text: 'and brief' });
  const writes = w.store.writes;
  await w.work(1);
  await w.archiving();
  const shown = await w.log();
  w.loseBackTo(writes);
  expect((await w.state()).last_seq).toBe(2);
  await w.work();
  expect(w.found).toEqual([{ type: 'written_back', from: 2, to: shown.length }]);
  const events = await w.whole();
  expect(events.slice(0, shown.length)).toEqual(shown);
  expect(events.at(-1)).toMatchObject({ type: 'run_end', stop_reason: 'answered' });
  expect(w.begun).toEqual(['look', 'touch']);
  expect(events.filter((event) => event.type === 'steer').map((event) => event.content)).toEqual(['in French', 'and brief']);
  expect(w.requests).toHaveLength(2);
});

test('a call without a result in the archived log is in doubt, and is not started again', async () => {
  const w = await world([said({ calls: calls('touch') }), said({ text: 'The answer.' })]);
  const writes = w.store.writes;
  w.setInTool(async () => { await w.archiving(); w.loseBackTo(writes); w.setInTool(() => Promise.resolve()); });
  await w.work(1);
  await w.work();
  expect(w.found).toMatchObject([{ type: 'written_back', from: 2 }]);
  const events = await w.whole();
  expect(events.filter((event) => event.type === 'tool_result')).toMatchObject([{ outcome: 'unknown' }]);
  expect(w.begun).toEqual(['touch']);
});

test('a run that had ended has ended, with its last duty', async () => {
  const w = await world([said({ text: 'The answer.' })]);
  const writes = w.store.writes;
  await w.work(1);
  await w.archiving();
  const document = await w.archive.getRun(run_id);
  w.loseBackTo(writes);
  await w.work();
  expect((await w.state()).status).toBe('completed');
  expect(w.store.jobs()).toEqual([expect.objectContaining({ type: 'finish', run_id })]);
  await w.whole();
  expect(JSON.parse((await w.archive.getRun(run_id))!)).toEqual(JSON.parse(document!));
  expect(w.requests).toHaveLength(1);
});

test('with the archive away the run waits, without an event and without blame, past commands too', async () => {
  const w = await world(twoTurns());
  await w.work(1);
  const seq = (await w.state()).last_seq;
  await w.send({ type: 'steer', text: 'hurry' });
  w.loseBackTo(w.store.writes);
  w.setReading(() => Promise.reject(new Error('away')));
  await w.work(4);
  expect((await w.state()).last_seq).toBe(seq);
  expect(w.found.map(({ type }) => type)).toEqual(Array.from({ length: 4 }, () => 'archive_away'));
  w.setReading(w.archive.events);
  await w.work();
  expect((await w.whole()).at(-1)).toMatchObject({ type: 'run_end', stop_reason: 'answered' });
}, 30_000);

test('two histories end the run as state_lost, and the archive keeps its own', async () => {
  const w = await world(twoTurns());
  await w.work(1);
  const { last_seq, status } = await w.state();
  const own = await w.log();
  const other = own.map((event) => JSON.stringify(event.type === 'tool_result' ? { ...event, content: 'something else' } : event));
  await w.archive.putSegment({ run_id, first_seq: 1, last_seq: last_seq + 1, events: [...other, JSON.stringify({ ...own.at(-1), type: 'steer', content: 'x', seq: last_seq + 1 })] });
  w.loseBackTo(w.store.writes);
  await w.work();
  expect(status).toBe('running');
  expect(await w.state()).toMatchObject({ status: 'failed', stop_reason: 'state_lost' });
  expect(w.found).toEqual([{ type: 'lost', problem: expect.stringMatching(/another history than the store: transcript/) }]);
  expect(await w.archive.events(run_id, 0, 1000)).toHaveLength(last_seq + 1);
  expect(w.requests).toHaveLength(1);
});

test('an archived log that goes on from nowhere ends the run as state_lost', async () => {
  const w = await world(twoTurns());
  await w.work(1);
  const { last_seq } = await w.state();
  await w.archive.putSegment({ run_id, first_seq: last_seq + 1, last_seq: last_seq + 1, events: [JSON.stringify({ ...(await w.log()).at(-1), seq: last_seq + 1 })] });
  w.loseBackTo(w.store.writes);
  await w.work();
  expect(await w.state()).toMatchObject({ status: 'failed', stop_reason: 'state_lost' });
});
