/** Approvals in the engine: bound to what was asked about, and as durable as the log. */
import { defaultLimits, idIn, noJudgement, noUsage, type Command, type ModelReply, type PendingCall, type ReplyCall, type RunEvent } from '@treadle/core';
import { archiveRun, createRun, executeTurn, HeldRuns, noIncrements, restoreRuns, WarmRuns, type ToolRun, type TurnDeps } from '@treadle/engine';
import { alwaysThere, createMemoryArchive, createMemoryRunStore, testSpec, testTool, type MemoryRunStore } from '@treadle/testkit';
import { beforeEach, expect, test } from 'vitest';

/** As the stores' own; nothing else moves it. */
let nowMs = 1_700_000_000_000;
const clock = { nowMs: () => nowMs, monotonicMs: () => performance.now() };
const random = { uuid: () => crypto.randomUUID(), jitter: () => 0 };
beforeEach(() => { nowMs = 1_700_000_000_000; });
const run_id = idIn('run', 0, '1'.repeat(32));
const approval = (timeout_s: number | null = null) => ({ timeout_s, on_timeout: 'deny' as const });
const call = (id: string, name: string): ReplyCall => ({ provider_id: id, name, input: { what: id }, problem: null });
const replyOf = (over: Partial<ModelReply>): ModelReply => ({ text: '', thinking: '', provider_data: null, calls: [], finish: 'stop', finish_raw: 'stop', usage: noUsage, ...over });

/** A run whose first reply makes these calls, on a store of its own. */
function world(calls: readonly ReplyCall[], timeout_s: number | null = null) {
  const archive = createMemoryArchive();
  const begun: ToolRun[] = [];
  const asks = { yes: true };
  const at = (store: MemoryRunStore) => {
    const deps: TurnDeps = {
      store, clock, random, warm: new WarmRuns(), worker: 'w', limits: { poison: 3, nudges: 5 }, held: new HeldRuns(store), judge: { judge: () => noJudgement }, history: () => Promise.resolve([]), archive, increments: noIncrements,
      models: { ...alwaysThere, call: ({ request }) => Promise.resolve({ type: 'replied', reply: request.messages.some(({ role }) => role === 'tool') ? replyOf({ text: 'done' }) : replyOf({ calls }) }) },
      tools: {
        catalogue: () => Promise.resolve({ tools: [testTool('deploy', { effect: 'once', parallel: 'serial', approval: approval(timeout_s) }), testTool('mail', { effect: 'once', parallel: 'serial' })], problems: [] }),
        check: () => null, asks: ({ name }) => asks.yes && name === 'deploy',
        run: (run) => { begun.push(run); return Promise.resolve({ content: `did ${String(run.input.what)}`, is_error: false, settled: true }); },
      },
    };
    return {
      store,
      /** Works off all jobs there are. */
      work: async () => {
        for (let job = store.jobs().find(({ type }) => type === 'turn'); job !== undefined; job = store.jobs().find(({ type }) => type === 'turn')) {
          await executeTurn(deps, job, new AbortController().signal);
          store.removeJob(job);
        }
      },
      log: async () => (await store.events(run_id, 0, 1000))!.events.map((text) => JSON.parse(text) as RunEvent),
      pending: async () => JSON.parse((await store.read(run_id))!.stored.fields['pending'] ?? '[]') as PendingCall[],
      status: async () => (await store.read(run_id))!.status,
      send: async (command: Command) => (await store.command({ run_id, command_id: crypto.randomUUID(), command, not_after_ms: Number.MAX_SAFE_INTEGER })).type,
    };
  };
  const create = async () => {
    const first = at(createMemoryRunStore());
    const run = { tenant: 't', spec: testSpec(), agent_version: 'v', limits: defaultLimits, input: 'go', metadata: {}, tags: [], priority: 50, run_at: null };
    await createRun({ store: first.store, clock, random, shards: 1 }, run, { run_id, not_after_ms: Number.MAX_SAFE_INTEGER });
    return first;
  };
  return { archive, begun, asks, at, create };
}

const word = ({ tool_use_id, digest = '' }: PendingCall, decision: 'approve' | 'deny' = 'approve'): Command => ({ type: 'approval', tool_use_id, digest, decision, by: 'ann', reason: null });
const names = (begun: readonly ToolRun[]): string[] => begun.map(({ tool, input }) => `${tool.name} ${String(input.what)}`);

test('a run that waits comes back from the archive as it waited: asked once, carried out once, and nothing of its batch is in doubt', async () => {
  const { archive, begun, at, create } = world([call('m', 'mail'), call('d', 'deploy')]);
  const first = await create();
  await first.work();
  const [waiting] = await first.pending();
  await archiveRun({ store: first.store, archive, options: { segment_events: 100, keep_events: 0, retention_ms: 0 } }, run_id);

  const second = at(createMemoryRunStore());
  expect(await restoreRuns({ store: second.store, archive, clock }, { accept_repeats: false, strict: false, shards: 1 })).toMatchObject({ restored: 1, failed: [] });
  await second.work();
  expect([await second.status(), await second.pending(), begun]).toEqual(['paused', [waiting], []]);
  expect(await second.send(word({ ...waiting!, digest: 'sha256:other' }))).toBe('invalid_state');
  expect(await second.send(word(waiting!))).toBe('accepted');
  expect(await second.send(word(waiting!, 'deny'))).toBe('already_decided');
  await second.work();
  expect(names(begun)).toEqual(['mail m', 'deploy d']);
  expect(await second.status()).toBe('completed');
});

test('one whose time is over while nobody has it is denied once it is back', async () => {
  const { archive, begun, at, create } = world([call('d', 'deploy')], 1);
  const first = await create();
  await first.work();
  await archiveRun({ store: first.store, archive, options: { segment_events: 100, keep_events: 0, retention_ms: 0 } }, run_id);
  const second = at(createMemoryRunStore());
  await restoreRuns({ store: second.store, archive, clock }, { accept_repeats: false, strict: false, shards: 1 });
  expect(second.store.jobs()).toEqual([]);
  second.store.passTime(1001);
  nowMs += 1001;
  await second.store.pump(0, { limit: 10, grace_ms: 1000 });
  await second.work();
  expect([await second.status(), begun]).toEqual(['completed', []]);
});

test('a call that is not the one that was approved is never begun', async () => {
  const { begun, create } = world([call('d', 'deploy')]);
  const run = await create();
  await run.work();
  const [waiting] = await run.pending();
  // Words are checked where they are taken; this one says a digest of its own for what it changes.
  await run.send({ ...word(waiting!), changed: { input: { what: 'everything' }, digest: waiting!.digest! } } as Command);
  await run.work();
  expect(begun).toEqual([]);
  const results = (await run.log()).flatMap((event) => event.type === 'tool_result' ? [event] : []);
  expect(results).toMatchObject([{ tool_use_id: 'd', is_error: true, outcome: 'not_started', content: 'This is not the call that was approved; it was not carried out.' }]);
  expect(await run.status()).toBe('completed');
});

test('a tool whose every call has to be approved is not begun by one that nobody was asked about', async () => {
  const { begun, asks, create } = world([call('d', 'deploy'), call('m', 'mail')]);
  asks.yes = false;
  const run = await create();
  await run.work();
  expect(names(begun)).toEqual(['mail m']);
  expect((await run.log()).flatMap((event) => event.type === 'tool_result' ? [event.content] : [])).toEqual(['Nobody was asked about this call; it was not carried out.', 'did m']);
});
