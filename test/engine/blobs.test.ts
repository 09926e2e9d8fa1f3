/** What tools give beside their text: kept in the archive, named in the log, put into requests when they are sent. */
import { createHash } from 'node:crypto';
import { defaultLimits, idIn, noJudgement, noUsage, type Message, type ModelReply, type RunEvent } from '@treadle/core';
import { createRun, executeTurn, HeldRuns, IncrementWriter, WarmRuns, type Archive, type ToolAttachment, type ToolRunResult, type TurnDeps } from '@treadle/engine';
import { alwaysThere, createMemoryArchive, createMemoryRunStore, testModel, testSpec, testTool } from '@treadle/testkit';
import { expect, test } from 'vitest';

const clock = { nowMs: () => 1_700_000_000_000, monotonicMs: () => performance.now() };
const random = { uuid: () => crypto.randomUUID(), jitter: () => 0 };
const run_id = idIn('run', 0, '1'.repeat(32));
const reply = (over: Partial<ModelReply>): ModelReply => ({ text: '', thinking: '', provider_data: null, calls: [], finish: 'stop', finish_raw: 'stop', usage: noUsage, ...over });
const picture = (name: string, media_type = 'image/png'): ToolAttachment => ({ media_type, bytes: Buffer.from(name) });
const sha = (name: string): string => createHash('sha256').update(name).digest('hex');
const base64 = (name: string): string => Buffer.from(name).toString('base64');

interface Parts {
  /** Of the calls, in order; the model asks for one after the other, and then answers. */
  readonly results: readonly Pick<ToolRunResult, 'content' | 'attachments'>[];
  readonly sees?: boolean;
  readonly reads?: boolean;
  readonly maxBytes?: number;
  readonly archive?: (real: Archive) => Pick<Archive, 'putBlob' | 'getBlob'>;
}

async function played({ results, sees = true, reads = false, maxBytes = 1000, archive: wrap = (real) => real }: Parts): Promise<{ events: RunEvent[]; requests: (readonly Message[])[]; archive: Archive }> {
  const [store, archive] = [createMemoryRunStore(), createMemoryArchive()];
  const spec = testSpec({ chain: { name: 'c', models: [{ ...testModel('m'), context_window: 100_000, supports_images: sees }] } });
  await createRun({ store, clock, random, shards: 1 }, { tenant: 't', spec, agent_version: 'v', limits: { ...defaultLimits, max_observation_bytes: maxBytes, loop_limit: 100 }, input: 'go', metadata: {}, tags: [], priority: 50, run_at: null }, { run_id, not_after_ms: Number.MAX_SAFE_INTEGER });
  const requests: (readonly Message[])[] = [];
  let ran = 0;
  const deps: TurnDeps = {
    store, clock, random, warm: new WarmRuns(), worker: 'w', limits: { poison: 3, nudges: 5 }, held: new HeldRuns(store), judge: { judge: () => noJudgement }, history: () => Promise.resolve([]),
    archive: { ...wrap(archive), events: (...asked) => archive.events(...asked) }, increments: new IncrementWriter({ store, random }),
    models: {
      ...alwaysThere,
      call: async ({ request }) => {
        const at = requests.push(request.messages) - 1;
        return { type: 'replied', reply: at < results.length ? reply({ calls: [{ provider_id: `c${at}`, name: 'look', input: { at }, problem: null }] }) : reply({ text: 'done' }) };
      },
    },
    tools: {
      catalogue: () => Promise.resolve({ tools: [testTool('look', { effect: 'read' }), ...(reads ? [testTool('read_blob', { effect: 'read' })] : [])], problems: [] }), check: () => null, asks: () => false,
      run: () => Promise.resolve({ is_error: false, settled: true, ...results[ran++]! }),
    },
  };
  for (let n = 1; requests.length <= results.length; n++) await executeTurn(deps, { run_id, n }, new AbortController().signal);
  return { events: (await store.events(run_id, 0, 1000))!.events.map((text) => JSON.parse(text) as RunEvent), requests, archive };
}

const resultsIn = (messages: readonly Message[] | undefined) => (messages ?? []).flatMap((message) => message.role === 'tool' ? [message] : []);
const resultEvents = (events: readonly RunEvent[]) => events.flatMap((event) => event.type === 'tool_result' ? [event] : []);

test('an image is named in the log, kept in the archive, and shown in every later request', async () => {
  const { events, requests, archive } = await played({ results: [{ content: '[image]', attachments: [picture('one'), picture('a letter', 'application/pdf')] }, { content: 'plain' }] });
  expect(resultEvents(events)[0]).toMatchObject({ content: '[image]', attachments: [{ blob: sha('one'), media_type: 'image/png', bytes: 3 }, { blob: sha('a letter'), media_type: 'application/pdf', bytes: 8 }] });
  expect(JSON.stringify(events)).not.toContain(base64('one'));
  for (const name of ['one', 'a letter']) expect(Buffer.from((await archive.getBlob(run_id, sha(name)))!).toString()).toBe(name);
  for (const request of requests.slice(1)) expect(resultsIn(request)[0]).toMatchObject({ content: '[image]', images: [{ media_type: 'image/png', data: base64('one') }] });
  expect(resultsIn(requests[2])[1]).not.toHaveProperty('images');
});

test('a model that takes none is told so, and nothing is read for it', async () => {
  let read = 0;
  const { requests } = await played({
    sees: false, results: [{ content: '[image]', attachments: [picture('one'), picture('two')] }],
    archive: (real) => ({ putBlob: real.putBlob.bind(real), getBlob: () => { read += 1; return Promise.resolve(null); } }) });
  expect(resultsIn(requests[1])).toEqual([expect.objectContaining({ content: '[image]\n[2 images of this result left out: this model takes none.]' })]);
  expect(resultsIn(requests[1])[0]).not.toHaveProperty('images');
  expect(read).toBe(0);
});

test('what an archive does not take is not referred to', async () => {
  const { events, requests } = await played({
    results: [{ content: `[image] ${'x'.repeat(2000)}`, attachments: [picture('one')] }],
    archive: (real) => ({ putBlob: () => Promise.reject(new Error('away')), getBlob: real.getBlob.bind(real) }) });
  const [result] = resultEvents(events);
  expect(result!.content).toMatch(/\[1 of what belongs to this result could not be kept, and is not there\.\]$/);
  expect(result).not.toHaveProperty('attachments');
  expect(result).not.toHaveProperty('blob');
  expect(result!.truncated_bytes).toBeGreaterThan(0);
  expect(resultsIn(requests[1])[0]).not.toHaveProperty('images');
});

test('what an archive does not give any more is said where it would stand', async () => {
  for (const getBlob of [() => Promise.resolve(null), () => Promise.reject(new Error('away'))]) {
    const { requests } = await played({ results: [{ content: '[image]', attachments: [picture('one')] }], archive: (real) => ({ putBlob: real.putBlob.bind(real), getBlob }) });
    expect(resultsIn(requests[1])[0]!.content).toBe('[image]\n[1 image of this result left out: they cannot be had now.]');
  }
});

test('of many images the newest ten are shown, and of one result ten are kept', async () => {
  const many = Array.from({ length: 12 }, (_, index) => picture(`p${index}`));
  const { events, requests } = await played({ results: [{ content: 'many', attachments: many }, { content: 'one', attachments: [picture('last')] }] });
  expect(resultEvents(events)[0]!.attachments).toHaveLength(10);
  expect(resultEvents(events)[0]!.content).toContain('[2 of what belongs to this result could not be kept, and are not there.]');
  const [first, second] = resultsIn(requests[2]);
  expect([first!.images!.length, second!.images!.length]).toEqual([9, 1]);
  expect(first!.content).toContain('[1 image of this result left out: there are newer ones.]');
});

test('whoever can read blobs is told the name of what was cut, within the same limit', async () => {
  const content = 'x'.repeat(5000);
  for (const reads of [true, false]) {
    const [result] = resultEvents((await played({ reads, results: [{ content }] })).events);
    expect(result!.blob).toBe(sha(content));
    expect(Buffer.byteLength(result!.content)).toBeLessThanOrEqual(1000);
    expect(result!.content.endsWith(`\n[The whole is kept as blob ${sha(content)}; read_blob reads it.]`)).toBe(reads);
  }
});
