/** Trees of runs over what may happen to a store: Redis is emptied under them, a run is gone on from, the archive comes first. */
import type { RunEvent } from '@treadle/core';
import { connectRedis } from '@treadle/run-store';
import { reply, text, tool, type ChatBody, type ScriptedReply } from '@treadle/testkit';
import { afterEach, expect, test } from 'vitest';
import { startStage, treadle, until, type Role, type Stage } from './processes.ts';

let stage: Stage;
afterEach(() => stage.stop());

const agents = {
  boss: { instructions: 'Lead.', chain: 'default', tools: ['test/*', 'spawn_agent'], subagents: ['helper'] },
  helper: { instructions: 'Help.', chain: 'default', tools: ['test/*'] },
};

/** By the word in the user's message, and by how many results have come. */
function script(body: ChatBody): ScriptedReply {
  const messages = body.messages ?? [];
  const asked = String(messages.findLast((message) => message.role === 'user')?.content);
  const results = messages.filter((message) => message.role === 'tool');
  const spawn = (input: string) => ({ id: null, name: 'spawn_agent', args: { agent: 'helper', input } });
  if (asked.startsWith('slow')) return results.length === 0 ? tool(null, 'test__slow_lookup', { ms: 60_000 }) : text(`${asked} is done`);
  if (asked.startsWith('quick')) return text(`${asked} is done`);
  return results.length === 0 ? reply({ calls: [spawn('quick one'), spawn(asked === 'go' ? 'slow one' : 'quick two')] }) : text(`got ${results.map((result) => String(result.content).split('\n')[1]).join(' and ')}`);
}

async function begin(env: Readonly<Record<string, string>> = {}): Promise<Role> {
  stage = await startStage({ model: { script }, config: { agents }, tools: { 'test/slow_lookup': { effect: 'read' } }, env });
  return stage.startWorker();
}

const start = async (input: string): Promise<string> => (await stage.client.createRun({ agent: 'boss', input })).id;

async function logOf(id: string): Promise<RunEvent[]> {
  const response = await fetch(`${stage.api.url}/v1/runs/${id}/events`, { headers: { accept: 'application/x-ndjson' } });
  return (await response.text()).split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as RunEvent);
}

const childrenIn = async (id: string): Promise<string[]> => (await logOf(id)).flatMap((event) => event.type === 'child_run' && event.status === 'queued' ? [event.child_run_id] : []);
const archived = (id: string) => until(`${id} is archived`, async () => { const run = await stage.client.run(id); return run['archived_seq'] === run.last_seq; });

async function emptied(worker: Role): Promise<void> {
  worker.kill();
  await worker.exited;
  const redis = connectRedis(stage.redis.url, { role: 'command' });
  await redis.flushall();
  redis.disconnect();
}

async function restored(): Promise<Record<string, unknown>> {
  const done = await treadle(['restore', '--from-archive', '--json', '--accept-repeats'], { env: { ...stage.env } });
  expect(done).toMatchObject({ code: 0, stderr: '' });
  return JSON.parse(done.stdout) as Record<string, unknown>;
}

const slowCalls = (id: string) => stage.ledger().filter((line) => line.phase === 'start' && line.run_id === id);

test('a tree whose Redis is lost comes back: nobody is started anew, and what had ended is heard of', async () => {
  const worker = await begin();
  const id = await start('go');
  const [quick, slow] = await until('both are started', async () => { const ids = await childrenIn(id); return ids.length === 2 && ids; });
  await until('one is over, one is in its tool', async () => (await stage.client.run(quick!)).status === 'completed' && slowCalls(slow!).length === 1);
  await until('the run has heard of it', async () => (await logOf(id)).some((event) => event.type === 'child_run' && event.status === 'completed'));
  for (const each of [id, quick!, slow!]) await archived(each);
  await emptied(worker);
  expect(await restored()).toMatchObject({ found: 3, restored: 2, ended: 1, failed: [] });
  await stage.startWorker();
  await until('the slow one is in its tool again', () => slowCalls(slow!).length === 2);
  expect(await stage.client.run(id)).toMatchObject({ status: 'paused', pause_reason: 'children' });
  expect((await stage.client.tree(id)).children.map((child) => child.run.id)).toEqual([quick, slow]);
  await stage.client.cancel(slow!);
  const run = await stage.client.wait(id, 30_000);
  expect(run).toMatchObject({ status: 'completed', answer: expect.stringContaining('got quick one is done') as string });
  expect(await childrenIn(id)).toEqual([quick, slow]);
  expect(stage.model.requests.filter((request) => JSON.stringify(request.body).includes('quick one') && request.body?.messages?.length === 2)).toHaveLength(1);
  for (const each of [id, slow!]) expect(await stage.client.replay(each)).toMatchObject({ identical: true });
}, 90_000);

test('a fork starts nothing anew: what was answered is in its transcript', async () => {
  await begin();
  const id = await start('both');
  const run = await stage.client.wait(id, 30_000);
  expect(run).toMatchObject({ status: 'completed', answer: 'got quick one is done and quick two is done' });
  const before = stage.model.requests.length;
  const fork = await stage.client.fork(id, { after_seq: run.last_seq, input: 'quick question' });
  expect(await stage.client.wait(fork.id, 30_000)).toMatchObject({ status: 'completed', answer: 'quick question is done', parent_run_id: null, forked_from: id });
  expect(stage.model.requests).toHaveLength(before + 1);
  expect((await stage.client.tree(fork.id)).children).toEqual([]);
  expect(JSON.stringify(stage.model.requests.at(-1)?.body)).toContain('[Answer of the sub-agent helper');
  const shown = await treadle(['runs', 'show', id], { env: { TREADLE_URL: stage.api.url } });
  expect(shown.stdout.match(/^ {2}started helper: run_\S+ completed/gm)).toHaveLength(2);
}, 60_000);

test('where nothing is shown before the archive has it, a tree goes its way all the same', async () => {
  await begin({ ARCHIVE_MODE: 'strict' });
  const id = await start('both');
  expect(await stage.client.wait(id, 40_000)).toMatchObject({ status: 'completed', answer: 'got quick one is done and quick two is done' });
  for (const child of await childrenIn(id)) expect(await stage.client.run(child)).toMatchObject({ status: 'completed', parent_run_id: id });
}, 60_000);
