/** Workers of two versions: a run that another worker has more for is put off, without an event and without blame; one that nobody has more for goes on. */
import { defaultLimits, idIn, noJudgement, noUsage, type Command, type ModelReply, type PendingCall, type RunEvent } from '@treadle/core';
import { createRun, executeTurn, HeldRuns, noIncrements, WarmRuns, type ClaimReply, type TurnDeps } from '@treadle/engine';
import { alwaysThere, createMemoryRunStore, testSpec, testTool } from '@treadle/testkit';
import { expect, test } from 'vitest';

const clock = { nowMs: () => 1_700_000_000_000, monotonicMs: () => performance.now() };
const random = { uuid: () => crypto.randomUUID(), jitter: () => 0 };
const run_id = idIn('run', 0, '1'.repeat(32));
const answer: ModelReply = { text: 'The answer.', thinking: '', provider_data: null, calls: [], finish: 'stop', finish_raw: 'stop', usage: noUsage };

async function world(over: Partial<TurnDeps> = {}) {
  const store = createMemoryRunStore();
  const run = { tenant: 't', spec: testSpec(), agent_version: 'v', limits: defaultLimits, input: 'go', metadata: {}, tags: [], priority: 50, run_at: null };
  await createRun({ store, clock, random, shards: 1 }, run, { run_id, not_after_ms: Number.MAX_SAFE_INTEGER });
  const deliveries: number[] = [];
  const asked: string[] = [];
  const deps: TurnDeps = {
    store: { ...store, claim: async (request) => { const reply = await store.claim(request); if (reply.type === 'claimed') deliveries.push(reply.deliveries); return reply; } },
    clock, random, warm: new WarmRuns(), worker: 'w', limits: { poison: 3, nudges: 5 }, held: new HeldRuns(store), judge: { judge: () => noJudgement }, history: () => Promise.resolve([]),
    archive: { putBlob: () => Promise.resolve('b'), getBlob: () => Promise.resolve(null), events: () => Promise.resolve([]) }, increments: noIncrements,
    models: { ...alwaysThere, call: ({ request }) => { asked.push(JSON.stringify(request)); return Promise.resolve({ type: 'replied', reply: answer }); } },
    tools: { catalogue: () => Promise.resolve({ tools: [], problems: [] }), check: () => null, asks: () => false, run: () => Promise.reject(new Error('there are no tools')) },
    ...over,
  };
  const log = async (): Promise<RunEvent[]> => (await store.events(run_id, 0, 1000))!.events.map((text) => JSON.parse(text) as RunEvent);
  /** Delivers the run's job if there is one, after so much of its wait. */
  async function deliver(waited_ms = 1000): Promise<void> {
    store.passTime(waited_ms);
    await store.pump(0, { limit: 10, grace_ms: 1e9 });
    const job = store.jobs().find((each) => each.type === 'turn')!;
    await executeTurn(deps, job, new AbortController().signal);
    store.removeJob(job);
  }
  const send = async (command: Command) => (await store.command({ run_id, command_id: crypto.randomUUID(), command, not_after_ms: Number.MAX_SAFE_INTEGER })).type;
  return { store, deps, deliver, send, log, asked, deliveries };
}

test('a run waits, with its commands, for the worker that has what it needs', async () => {
  const why: (readonly string[] | null)[] = [['tool "old"'], ['tool "old"'], null];
  const told: string[] = [];
  const w = await world({ elsewhere: () => why.shift() ?? null, onNotHere: (_, reasons) => { told.push(...reasons); } });
  await w.deliver();
  expect(await w.store.command({ run_id, command_id: 'c', command: { type: 'steer', text: 'Be quick.' }, not_after_ms: Number.MAX_SAFE_INTEGER })).toMatchObject({ type: 'accepted' });
  await w.deliver();
  expect([told, w.asked, (await w.log()).map(({ type }) => type)]).toEqual([['tool "old"', 'tool "old"'], [], ['run_created', 'user_message']]);
  await w.deliver();
  expect(w.asked).toEqual([expect.stringContaining('Be quick.')]);
  expect((await w.log()).at(-1)).toMatchObject({ type: 'run_end', status: 'completed', epoch: 3 });
});

test('that it was left to another clears no run of the deaths of its workers', async () => {
  let leaves = true;
  const w = await world({ elsewhere: () => (leaves ? ['tool "old"'] : null) });
  // A delivery that claims, and is heard of no more.
  await w.store.claim({ run_id, n: 1, claim_id: 'dead', held: null });
  await w.deliver();
  leaves = false;
  await w.deliver();
  expect(w.deliveries).toEqual([2, 2]);
});

test('a run that a newer version has written is left alone until one comes that can read it', async () => {
  const w = await world();
  let newer = true;
  const claim = w.deps.store.claim;
  Object.assign(w.deps.store, { claim: async (request: Parameters<typeof claim>[0]): Promise<ClaimReply> => {
    const reply = await claim({ ...request, held: null });
    return newer && reply.type === 'claimed' ? { ...reply, stored: { ...reply.stored!, fields: { ...reply.stored!.fields, fold_version: '3' } } } : reply;
  } });
  for (let n = 0; n < 3; n++) await w.deliver();
  expect(await w.log()).toHaveLength(2);
  newer = false;
  await w.deliver();
  expect((await w.log()).at(-1)).toMatchObject({ type: 'run_end', status: 'completed' });
});

test('a command that comes while it waits for that worker wakes it early, and is no reason to go on without what it needs', async () => {
  let lacks = true;
  const w = await world({ elsewhere: () => (lacks ? ['tool "old"'] : null) });
  await w.deliver();
  for (const text of ['one', 'two']) {
    expect(await w.send({ type: 'steer', text })).toBe('accepted');
    await w.deliver(0);
  }
  expect([w.asked, (await w.log()).map(({ type }) => type)]).toEqual([[], ['run_created', 'user_message']]);
  lacks = false;
  await w.deliver();
  expect(w.asked).toEqual([expect.stringMatching(/one.*two/)]);
});

test('a command that comes between the claim and the write by which it is put off costs neither the command nor the job', async () => {
  const w = await world({ elsewhere: () => ['tool "old"'] });
  const commit = w.deps.store.commit;
  let between: Command | null = { type: 'steer', text: 'Be quick.' };
  Object.assign(w.deps.store, { commit: async (request: Parameters<typeof commit>[0]) => {
    const command = between;
    between = null;
    if (command !== null) await w.send(command);
    return commit(request);
  } });
  await w.deliver();
  await w.deliver();
  expect(w.deliveries).toEqual([1, 1]);
});

test('what needs nothing of what is missing is not put off: a cancel, a pause', async () => {
  const w = await world({ elsewhere: () => ['tool "old"'] });
  await w.deliver();
  await w.send({ type: 'pause' });
  await w.deliver(0);
  expect((await w.log()).at(-1)).toMatchObject({ type: 'state_change', new: 'paused', reason: 'requested' });
  await w.send({ type: 'cancel' });
  await w.deliver(0);
  expect((await w.log()).at(-1)).toMatchObject({ type: 'run_end', status: 'cancelled' });
  expect(w.asked).toEqual([]);
});

test('a call that was approved before its time is over is carried out by a worker that has its tool', async () => {
  let lacks = false;
  const begun: string[] = [];
  const w = await world({
    elsewhere: () => (lacks ? ['tool "deploy"'] : null),
    models: { ...alwaysThere, call: ({ request }) => Promise.resolve({ type: 'replied', reply: request.messages.some(({ role }) => role === 'tool') ? answer : { ...answer, text: '', calls: [{ provider_id: 'd', name: 'deploy', input: {}, problem: null }] } }) },
    tools: {
      catalogue: () => Promise.resolve({ tools: [testTool('deploy', { approval: { timeout_s: 3600, on_timeout: 'deny' } })], problems: [] }), check: () => null, asks: () => true,
      run: ({ tool_use_id }) => { begun.push(`${tool_use_id} ${lacks ? 'without' : 'with'}`); return Promise.resolve({ content: 'done', is_error: false, settled: true }); },
    },
  });
  await w.deliver();
  const [{ digest } = { digest: '' }] = JSON.parse((await w.store.read(run_id))!.stored.fields['pending'] ?? '[]') as PendingCall[];
  lacks = true;
  expect(await w.send({ type: 'approval', tool_use_id: 'd', digest: digest!, decision: 'approve', by: 'ann', reason: null })).toBe('accepted');
  await w.deliver();
  expect([begun, (await w.log()).at(-1)]).toEqual([[], expect.objectContaining({ type: 'state_change', new: 'paused' })]);
  lacks = false;
  await w.deliver();
  expect(begun).toEqual(['d with']);
});
