/**
 * `strict`: nothing is shown, and no tool begun, before the archive has it. With the archive away runs wait, and nobody is blamed.
 */
import { defaultLimits, idIn, initialState, noJudgement, noUsage, restoreState, type Command, type ModelReply, type RunEvent } from '@treadle/core';
import { archiveFirst, archiveRun, createRun, executeTurn, HeldRuns, noIncrements, readLog, shownWhenArchived, WarmRuns, type TurnDeps } from '@treadle/engine';
import { alwaysThere, createMemoryArchive, createMemoryRunStore, testSpec, testTool } from '@treadle/testkit';
import { expect, test } from 'vitest';

const clock = { nowMs: () => 1_700_000_000_000, monotonicMs: () => performance.now() };
const random = { uuid: () => crypto.randomUUID(), jitter: () => 0 };
const run_id = idIn('run', 0, '1'.repeat(32));
const reply = (over: Partial<ModelReply>): ModelReply => ({ text: '', thinking: '', provider_data: null, calls: [], finish: 'stop', finish_raw: 'stop', usage: noUsage, ...over });

async function world() {
  const store = createMemoryRunStore();
  const archive = createMemoryArchive();
  let away = false;
  const guarded = { ...archive, putSegment: (segment: Parameters<typeof archive.putSegment>[0]) => (away ? Promise.reject(new Error('away')) : archive.putSegment(segment)) };
  const archiving = { store, archive: guarded, options: { segment_events: 100, keep_events: 0, retention_ms: 1_000_000 } };
  const run = { tenant: 't', spec: testSpec(), agent_version: 'v', limits: defaultLimits, input: 'go', metadata: {}, tags: [], priority: 50, run_at: null };
  await createRun({ store, clock, random, shards: 1 }, run, { run_id, not_after_ms: Number.MAX_SAFE_INTEGER });
  const shown = shownWhenArchived({ store, archive });
  const begun: { tool: string; archived: readonly string[] }[] = [];
  const replies = [reply({ text: 'Let me see.', calls: ['look', 'touch'].map((name, index) => ({ provider_id: `c${index}`, name, input: {}, problem: null })) }), reply({ text: 'The answer.' })];
  let afterModel = (): void => undefined;
  const held = new HeldRuns(store);
  const deps: TurnDeps = {
    store, clock, random, warm: new WarmRuns(), worker: 'w', limits: { poison: 3, nudges: 5 }, held, judge: { judge: () => noJudgement }, history: () => Promise.resolve([]),
    archive: { putBlob: () => Promise.resolve('b'), getBlob: () => Promise.resolve(null), events: () => Promise.resolve([]) }, increments: noIncrements, archiveFirst: archiveFirst(archiving, () => undefined),
    models: { ...alwaysThere, call: (call) => { call.onText('The'); const next = replies.shift()!; afterModel(); return Promise.resolve({ type: 'replied', reply: next }); } },
    tools: {
      catalogue: () => Promise.resolve({ tools: [testTool('look', { effect: 'read', parallel: 'serial' }), testTool('touch', { effect: 'once', parallel: 'serial' })], problems: [] }), check: () => null, asks: () => false,
      run: async ({ tool }) => { begun.push({ tool: tool.name, archived: await archive.events(run_id, 0, 1000) }); return { content: 'ok', is_error: false, settled: true }; },
    },
  };
  const log = async (): Promise<RunEvent[]> => (await store.events(run_id, 0, 1000))!.events.map((text) => JSON.parse(text) as RunEvent);
  /** Delivers the jobs that there are, and lets waits end, until nothing is left to do. */
  async function work(rounds = 1): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      store.passTime(5000);
      await store.pump(0, { limit: 10, grace_ms: 1e9 });
      for (let job = store.jobs().find((each) => each.type === 'turn'); job !== undefined; job = store.jobs().find((each) => each.type === 'turn')) {
        await executeTurn(deps, job, new AbortController().signal);
        store.removeJob(job);
      }
    }
  }
  const seen = async () => (await readLog({ store: shown, archive }, run_id, { after_seq: 0, limit: 1000 })).map(({ event }) => event);
  const state = async () => restoreState(initialState, (await shown.read(run_id))!.stored);
  const send = (command: Command) => store.command({ run_id, command_id: crypto.randomUUID(), command, not_after_ms: Number.MAX_SAFE_INTEGER });
  return { store, archive, archiving, work, log, begun, shown, seen, state, send, setAway: (on: boolean) => { away = on; }, afterModel: (act: () => void) => { afterModel = act; } };
}

test('each tool is begun when the archive has its call, and the run ends as any other', async () => {
  const w = await world();
  await w.work();
  expect(w.begun.map(({ tool }) => tool)).toEqual(['look', 'touch']);
  for (const { archived } of w.begun) expect(archived.filter((line) => line.includes('"tool_use"'))).toHaveLength(2);
  expect(w.begun[1]!.archived.some((line) => line.includes('"tool_result"'))).toBe(true);
  await archiveRun(w.archiving, run_id);
  const events = await w.seen();
  expect(events.at(-1)).toMatchObject({ type: 'run_end', stop_reason: 'answered' });
  expect(events.map((event) => event.seq)).toEqual(events.map((_, index) => index + 1));
  expect(events.filter((event) => event.type === 'assistant_text' && !event.is_final)).toEqual([]);
});

test('what is not archived is not shown, in any way; an accepted run is', async () => {
  const w = await world();
  expect([await w.seen(), (await w.state()).status, (await w.state()).last_seq]).toEqual([[], 'queued', 2]);
  w.afterModel(() => { w.setAway(true); });
  await w.work();
  const [shown, all] = [await w.seen(), (await w.store.read(run_id))!.stored.last_seq];
  expect(shown.at(-1)!.seq).toBeLessThan(all);
  expect(shown.some((event) => event.type === 'tool_use')).toBe(false);
  expect(await w.state()).toMatchObject({ status: 'queued', calls: [], last_seq: shown.at(-1)!.seq });
  expect((await w.shown.read(run_id, 'messages'))!.stored.messages).toEqual([]);
  expect(await w.shown.events(run_id, shown.length, 10)).toMatchObject({ events: [], last_seq: shown.length });
});

test('with the archive away no tool begins, no event is added, and the run goes on when it is back', async () => {
  const w = await world();
  w.afterModel(() => { w.setAway(true); });
  await w.work();
  const before = await w.log();
  expect(before.at(-1)).toMatchObject({ type: 'tool_use' });
  await w.work(6);
  expect([w.begun, await w.log()]).toEqual([[], before]);
  w.afterModel(() => undefined);
  w.setAway(false);
  await w.work(3);
  await archiveRun(w.archiving, run_id);
  expect(w.begun.map(({ tool }) => tool)).toEqual(['look', 'touch']);
  expect((await w.seen()).at(-1)).toMatchObject({ type: 'run_end', stop_reason: 'answered' });
  expect((await w.seen()).flatMap((event) => event.type === 'tool_result' ? [event.outcome ?? 'ok'] : [])).toEqual(['ok', 'ok']);
});

test('a run can be cancelled while it waits for the archive; that is shown afterwards', async () => {
  const w = await world();
  w.afterModel(() => { w.setAway(true); });
  await w.work();
  expect(await w.send({ type: 'cancel' })).toEqual({ type: 'accepted' });
  await w.work();
  expect((await w.store.read(run_id))?.status).toBe('cancelled');
  expect((await w.state()).status).toBe('queued');
  w.setAway(false);
  // First the range that had been sealed before, then the rest.
  for (let times = 0; times < 2; times++) await archiveRun(w.archiving, run_id);
  expect([(await w.state()).status, (await w.seen()).at(-1)?.type, w.begun]).toEqual(['cancelled', 'run_end', []]);
});
