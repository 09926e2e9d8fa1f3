/** A run whose model has as many calls in flight as it may have comes again: without an event, a request or blame, and it hops nowhere. */
import { defaultLimits, idIn, noJudgement, noUsage, type Command, type ModelReply, type RunEvent } from '@treadle/core';
import { createRun, executeTurn, HeldRuns, noIncrements, WarmRuns, type ModelGateway, type Span, type TurnDeps } from '@treadle/engine';
import { alwaysThere, createMemoryRunStore, testModel, testSpec, testTool } from '@treadle/testkit';
import { expect, test } from 'vitest';

const clock = { nowMs: () => 1_700_000_000_000, monotonicMs: () => performance.now() };
const random = { uuid: () => crypto.randomUUID(), jitter: () => 0 };
const run_id = idIn('run', 0, '1'.repeat(32));
const answer: ModelReply = { text: 'The answer.', thinking: '', provider_data: null, calls: [], finish: 'stop', finish_raw: 'stop', usage: noUsage };
const asksTool: ModelReply = { ...answer, text: '', calls: [{ provider_id: 'c', name: 'look', input: {}, problem: null }] };
const waitMs = 700;

async function world({ replies = [answer], models = {}, limits = {}, ...over }: Partial<Omit<TurnDeps, 'models' | 'limits'>> & { replies?: ModelReply[]; models?: Partial<ModelGateway>; limits?: Partial<typeof defaultLimits> } = {}) {
  const store = createMemoryRunStore();
  const spec = testSpec({ tools: ['look'], chain: { name: 'both', models: [testModel('m1'), testModel('m2')] } });
  await createRun({ store, clock, random, shards: 1 }, { tenant: 't', spec, agent_version: 'v', limits: { ...defaultLimits, ...limits }, input: 'go', metadata: {}, tags: [], priority: 50, run_at: null }, { run_id, not_after_ms: Number.MAX_SAFE_INTEGER });
  const deliveries: number[] = [];
  const asked: string[] = [];
  const room = { crowded: true, looks: 0 };
  const deps: TurnDeps = {
    store: { ...store, claim: async (request) => { const reply = await store.claim(request); if (reply.type === 'claimed') deliveries.push(reply.deliveries); return reply; } },
    clock, random, warm: new WarmRuns(), worker: 'w', limits: { poison: 3, nudges: 5 }, held: new HeldRuns(store), judge: { judge: () => noJudgement }, history: () => Promise.resolve([]),
    archive: { putBlob: () => Promise.resolve('b'), getBlob: () => Promise.resolve(null), events: () => Promise.resolve([]) }, increments: noIncrements,
    models: {
      ...alwaysThere, crowdedMs: () => { room.looks++; return room.crowded ? waitMs : 0; },
      call: ({ request }) => { asked.push(`${request.model.name}: ${JSON.stringify(request.messages)}`); return Promise.resolve({ type: 'replied', reply: replies.shift()! }); }, ...models,
    },
    tools: { catalogue: () => Promise.resolve({ tools: [testTool('look')], problems: [] }), check: () => null, asks: () => false, run: () => Promise.resolve({ content: 'seen', is_error: false, settled: true }) },
    ...over,
  };
  const log = async (): Promise<RunEvent[]> => (await store.events(run_id, 0, 1000))!.events.map((text) => JSON.parse(text) as RunEvent);
  /** Delivers the run's job after so much of its wait; false where it has none yet. */
  async function deliver(waited_ms = waitMs): Promise<boolean> {
    store.passTime(waited_ms);
    await store.pump(0, { limit: 10, grace_ms: 1e9 });
    const job = store.jobs().find((each) => each.type === 'turn');
    if (job === undefined) return false;
    await executeTurn(deps, job, new AbortController().signal);
    store.removeJob(job);
    return true;
  }
  const send = async (command: Command) => (await store.command({ run_id, command_id: crypto.randomUUID(), command, not_after_ms: Number.MAX_SAFE_INTEGER })).type;
  const types = async () => (await log()).map(({ type }) => type);
  return { store, deps, deliver, send, log, types, asked, deliveries, room };
}

test('a run that finds no room comes again after its wait, without an event or a request, and goes on at its own model when there is room', async () => {
  const w = await world();
  await w.deliver();
  expect(await w.deliver(waitMs - 1)).toBe(false);
  await w.deliver(1);
  expect([w.room.looks, w.asked, await w.types()]).toEqual([2, [], ['run_created', 'user_message']]);
  w.room.crowded = false;
  await w.deliver();
  expect(w.asked).toEqual([expect.stringMatching(/^m1: /)]);
  expect((await w.log()).at(-1)).toMatchObject({ type: 'run_end', status: 'completed', epoch: 3 });
});

test('that it found no room clears no run of the deaths of its workers, and is none itself', async () => {
  const w = await world();
  // A delivery that claims, and is heard of no more.
  await w.store.claim({ run_id, n: 1, claim_id: 'dead', held: null });
  for (let n = 0; n < 4; n++) await w.deliver();
  expect([w.deliveries, await w.types()]).toEqual([[2, 2, 2, 2], ['run_created', 'user_message']]);
});

test('the place may be gone when it is to be taken: the run comes again then, and nothing of what it had decided is in its log', async () => {
  const w = await world({ models: { admit: () => { w.room.crowded = true; return Promise.resolve({ unavailable: [], room_ms: 0, permit: null }); } } });
  w.room.crowded = false;
  await w.deliver();
  expect([w.room.looks, w.asked, await w.types()]).toEqual([2, [], ['run_created', 'user_message']]);
});

test('who has leave to ask has a place: the model is asked, however many want it', async () => {
  const released: string[] = [];
  const w = await world({ models: { admit: () => { w.room.crowded = true; return Promise.resolve({ unavailable: [], room_ms: 0, permit: { model: 'm1', release: () => { released.push('m1'); } } }); } } });
  w.room.crowded = false;
  await w.deliver();
  expect([w.asked.length, (await w.log()).at(-1)]).toEqual([1, expect.objectContaining({ type: 'run_end', status: 'completed' })]);
  expect(released).toEqual([]);
});

test('a command that wakes it early finds no more room than it did, and is not lost', async () => {
  const w = await world();
  await w.deliver();
  for (const text of ['one', 'two']) {
    expect(await w.send({ type: 'steer', text })).toBe('accepted');
    await w.deliver(0);
  }
  expect(w.asked).toEqual([]);
  w.room.crowded = false;
  await w.deliver();
  expect(w.asked).toEqual([expect.stringMatching(/one.*two/)]);
});

test('that it looked for room is no part of its trace', async () => {
  const ended: unknown[] = [];
  const span: Span = { traceparent: null, begin: () => span, carriedBy: () => undefined, end: ({ type }) => { ended.push(type); } };
  const w = await world({ tracer: { begin: () => span } });
  await w.deliver();
  expect(ended).toEqual([]);
  w.room.crowded = false;
  await w.deliver();
  expect(ended).toEqual(['model_call', 'turn']);
});

test('to be paused or cancelled it needs no room', async () => {
  const w = await world();
  await w.deliver();
  await w.send({ type: 'pause' });
  await w.deliver(0);
  expect((await w.log()).at(-1)).toMatchObject({ type: 'state_change', new: 'paused', reason: 'requested' });
  await w.send({ type: 'cancel' });
  await w.deliver(0);
  expect((await w.log()).at(-1)).toMatchObject({ type: 'run_end', status: 'cancelled' });
});

test('what ends waits for nobody: a run that has had its last turn, summary included, and one that has been delivered too often', async () => {
  const last = await world({ replies: [asksTool, answer], limits: { max_turns: 1 } });
  last.room.crowded = false;
  await last.deliver();
  last.room.crowded = true;
  await last.deliver();
  expect([last.asked.length, (await last.log()).at(-1)]).toEqual([2, expect.objectContaining({ type: 'run_end', stop_reason: 'max_turns' })]);
  const dead = await world();
  for (const claim_id of ['one', 'two', 'three']) await dead.store.claim({ run_id, n: 1, claim_id, held: null });
  await dead.deliver();
  expect((await dead.log()).at(-1)).toMatchObject({ type: 'run_end', stop_reason: 'poisoned' });
});

test('a turn that has begun waits for nobody: it settles its calls, and the next turn looks for room', async () => {
  const w = await world({ replies: [asksTool, answer] });
  w.room.crowded = false;
  const call = w.deps.models.call;
  Object.assign(w.deps.models, { call: (request: Parameters<typeof call>[0]) => { w.room.crowded = true; return call(request); } });
  await w.deliver();
  await w.deliver();
  expect((await w.types()).filter((type) => type.startsWith('turn_') || type === 'tool_result')).toEqual(['turn_start', 'tool_result', 'turn_end']);
  w.room.crowded = false;
  await w.deliver();
  expect((await w.log()).at(-1)).toMatchObject({ type: 'run_end', status: 'completed' });
});
