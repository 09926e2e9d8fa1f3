/**
 * R30: a rolling deploy, two releases of a product together. A run stays on the version of its agent that it began with; a worker that
 * lacks what that needs leaves the run to one that has it; with nobody left who has it, the run goes on and says what is missing.
 */
import { join } from 'node:path';
import type { RunEvent } from '@treadle/core';
import { createClient, type Client } from '@treadle/client';
import { toolTurns } from '@treadle/testkit';
import { afterEach, expect, test } from 'vitest';
import { startProcess, startStage, until, type Role, type Stage } from './processes.ts';

let stage: Stage | null = null;
let newApi: Role | null = null;
afterEach(async () => {
  newApi?.kill('SIGTERM');
  await newApi?.exited;
  await stage?.stop();
});

const of = (release: 'old' | 'new') => ({ TREADLE_CONFIG: join(import.meta.dirname, 'release.config.ts'), BASE_CONFIG: stage!.env['TREADLE_CONFIG']!, RELEASE: release });

async function logOf(id: string): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of stage!.client.events(id)) events.push(event);
  return events;
}

const create = async (client: Client, count: number) => (await Promise.all(Array.from({ length: count }, () => client.createRun({ agent: 'tester', input: 'go' })))).map(({ id }) => id);
const pidsOf = (log: readonly RunEvent[]) => new Set(log.flatMap((event) => (event.type === 'turn_start' ? [Number(event.worker.split('-').at(-1))] : [])));
const resultsOf = (log: readonly RunEvent[]) => log.flatMap((event) => (event.type === 'tool_result' ? [{ is_error: event.is_error, content: event.content }] : []));

test('old and new workers together: each run is done by those that have what it needs, and by the others when these have gone', async () => {
  stage = await startStage({ model: { script: toolTurns({ turns: 5, args: (n) => ({ n }) }) }, agent: { tools: ['old_tool'] }, env: { TREADLE_RELEASE_WAIT_MS: '8000' } });
  newApi = await startProcess('api', { ...stage.env, ...of('new') });
  const [oldWorker, newWorker] = await Promise.all([stage.startWorker(of('old')), stage.startWorker(of('new'))]);
  const [forOld, forNew] = await Promise.all([create(stage.client, 10), create(createClient({ url: newApi.url }), 10)]);
  for (const [ids, worker, release] of [[forOld, oldWorker, 'old'], [forNew, newWorker, 'new']] as const) {
    for (const log of await Promise.all(ids.map(logOf))) {
      expect(log.at(-1)).toMatchObject({ type: 'run_end', status: 'completed', stop_reason: 'answered' });
      expect(resultsOf(log)).toEqual(Array.from({ length: 5 }, () => ({ is_error: false, content: `of the ${release} release` })));
      expect(pidsOf(log)).toEqual(new Set([worker.pid]));
    }
  }
  const versions = (await stage.client.get('/v1/workers') as { data: { agent_versions: string[] }[] }).data.map(({ agent_versions }) => agent_versions);
  expect(new Set(versions.flat()).size).toBe(2);

  // The old release goes while its runs are under way.
  const late = await create(stage.client, 5);
  await until('they have begun', async () => (await Promise.all(late.map((id) => stage!.client.run(id)))).every(({ turn_number }) => Number(turn_number) >= 2));
  oldWorker.kill('SIGTERM');
  expect(await oldWorker.exited).toBe(0);
  const logs = await Promise.all(late.map(logOf));
  for (const log of logs) {
    expect(log.at(-1)).toMatchObject({ type: 'run_end', status: 'completed' });
    // From some turn on nobody has it any more.
    const lost = resultsOf(log).findIndex(({ is_error }) => is_error);
    for (const [index, { content }] of resultsOf(log).entries()) expect(content).toBe(lost === -1 || index < lost ? 'of the old release' : 'This worker has no tool named old_tool.');
  }
  expect(new Set(logs.flatMap((log) => [...pidsOf(log)]))).toEqual(new Set([oldWorker.pid, newWorker.pid]));
  expect(logs.flatMap(resultsOf).some(({ is_error }) => is_error)).toBe(true);
}, 120_000);
