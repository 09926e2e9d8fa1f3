/**
 * The trial of a new model on real processes: an API, two workers that report and judge, the command line. A bad model is rolled back and
 * new runs no longer begin on it; a good one becomes the primary.
 */
import type { RunEvent } from '@treadle/core';
import type { Canary } from '@treadle/client';
import { refusal, text, type ChatBody, type ScriptedReply } from '@treadle/testkit';
import { afterEach, expect, test } from 'vitest';
import { startStage, treadle, until, type Role, type Stage } from './processes.ts';

let stage: Stage;
let workers: Role[];
afterEach(() => stage.stop());

/** Runs of a few milliseconds on a busy machine: their times are no subject here. */
const trial = { model: 'next', stages: [0, 50, 100], min_runs: 12, bounds: { latency_ratio: 10 } };

async function open(script: (body: ChatBody) => ScriptedReply): Promise<void> {
  stage = await startStage({
    model: { script }, env: { LOG_LEVEL: 'info' }, agent: { tools: [] },
    config: (modelUrl) => ({
      models: Object.fromEntries(['small', 'next'].map((name) => [name, { provider: 'ollama', model: name, base_url: modelUrl, context_window: 32_768 }])),
      chains: { default: { models: ['small'], canary: trial } },
    }),
  });
  workers = [await stage.startWorker(), await stage.startWorker()];
}

const canary = (): Promise<Canary> => stage.client.canary('default');
const env = () => ({ TREADLE_URL: stage.api.url });

async function runToItsEnd(): Promise<RunEvent[]> {
  const { id } = await stage.client.createRun({ agent: 'tester', input: 'go' });
  const log: RunEvent[] = [];
  for await (const event of stage.client.events(id)) log.push(event);
  return log;
}

const askedModels = (log: readonly RunEvent[]) => log.flatMap((event) => event.type === 'model_request' ? [{ model: event.model, canary: event.canary }] : []);
const versionOf = (log: readonly RunEvent[]) => log.flatMap((event) => event.type === 'run_created' ? [event.agent_version] : []);

function armOf(log: readonly RunEvent[]): string | undefined {
  const [first] = log;
  return first?.type === 'run_created' ? first.agent_spec.chain.canary?.arm : undefined;
}

/** Runs, a few at once, until the canary is where a test wants it. */
async function runUntil(what: string, reached: (now: Canary) => boolean): Promise<RunEvent[][]> {
  const logs: RunEvent[][] = [];
  await until(what, async () => {
    if (reached(await canary())) return true;
    logs.push(...await Promise.all(Array.from({ length: 4 }, () => runToItsEnd())));
    return false;
  }, 90_000);
  return logs;
}

async function metric(of: Role, line: string): Promise<number> {
  const found = (await (await fetch(`${of.url}/metrics`)).text()).split('\n').find((each) => each.startsWith(line));
  return Number(found?.split(' ').at(-1) ?? Number.NaN);
}

test('a bad model is rolled back by the outcomes of its runs, although its runs are answered by the next one; then none begins on it', async () => {
  await open((body) => body.model === 'next' ? refusal(404, "model 'next' not found") : text('done'));
  const logs = await runUntil('the canary is rolled back', (now) => now.status === 'rolled_back');
  expect(new Set(logs.flatMap(versionOf)).size).toBe(1);
  expect(logs.every((log) => log.some((event) => event.type === 'run_end' && event.stop_reason === 'answered'))).toBe(true);
  // The first ones ask it in vain; once it is known not to be there, the others are kept away from it.
  const assigned = logs.filter((log) => armOf(log) === 'canary').map(askedModels);
  expect(assigned.length).toBeGreaterThan(5);
  const [inVain, keptAway] = [[{ model: 'next', canary: true }, { model: 'small', canary: false }], [{ model: 'small', canary: false }]];
  expect(assigned).toContainEqual(inVain);
  for (const asked of assigned) expect([inVain, keptAway]).toContainEqual(asked);

  const { decisions, stage: now } = await canary();
  expect(now).toBe(0);
  expect(decisions.map(({ decision, from_stage, to_stage, reason, by }) => [decision, from_stage, to_stage, reason, by])).toEqual([
    ['rollback', 50, 0, 'failures', 'judge'], ['promote', 0, 50, 'baseline', 'judge']]);
  expect(decisions[0]!.numbers).toMatchObject({ worse: { what: 'failures', age_s: 10 }, totals: { canary: { completed: 0 }, control: { failed: 0 } } });

  for (const log of await Promise.all(Array.from({ length: 10 }, () => runToItsEnd()))) expect(askedModels(log)).toEqual([{ model: 'small', canary: false }]);
  await until('every process tells that nothing begins on it', async () => (await Promise.all([stage.api, ...workers].map((each) => metric(each, 'treadle_canary_weight{chain="default",model="next"}')))).every((weight) => weight === 0));
  const rollbacks = await Promise.all(workers.map((worker) => metric(worker, 'treadle_canary_decisions_total{chain="default",decision="rollback"}')));
  expect(rollbacks.sort()).toEqual([0, 1]);
  const warnings = workers.flatMap((worker) => worker.output().split('\n').filter((line) => line.includes('the canary is rolled back')));
  expect(warnings.map((line) => JSON.parse(line) as object)).toEqual([expect.objectContaining({ level: 'warn', chain: 'default', model: 'next', reason: 'failures', from_stage: 50 })]);

  // Somebody who has mended it tries again by hand.
  expect(await treadle(['canary', 'promote', 'default'], { env: env() })).toMatchObject({ code: 0, stdout: expect.stringContaining('default: next begins 50 % of new runs (active)') as string });
  expect(JSON.parse((await treadle(['canary', 'show', 'default', '--json'], { env: env() })).stdout)).toMatchObject({ stage: 50, status: 'active', decisions: [{ decision: 'promote', by: 'default', reason: 'by_hand' }, {}, {}] });
}, 150_000);

test('a good model goes through the stages and becomes the primary; the command line and the metrics tell of it', async () => {
  await open(() => text('done'));
  expect((await treadle(['chains', 'ls'], { env: env() })).stdout).toMatch(/^default +small → next {3}canary next: 0 % \(active\)\n$/);
  expect((await treadle(['models', 'ls'], { env: env() })).stdout.split('\n').map((line) => line.split(' ')[0])).toEqual(['small', 'next', '']);
  await runUntil('the canary is the primary', (now) => now.stage === 100);
  expect((await canary()).decisions.map(({ decision, from_stage, to_stage, reason }) => [decision, from_stage, to_stage, reason])).toEqual([
    ['promote', 50, 100, 'within_bounds'], ['promote', 0, 50, 'baseline']]);
  for (const log of await Promise.all(Array.from({ length: 5 }, () => runToItsEnd()))) expect(askedModels(log)).toEqual([{ model: 'next', canary: true }]);
  expect((await treadle(['canary', 'show', 'default'], { env: env() })).stdout).toContain('default: next begins 100 % of new runs (active)');
  await until('the workers tell of it', async () => (await Promise.all(workers.map((worker) => metric(worker, 'treadle_canary_weight{chain="default",model="next"}')))).every((weight) => weight === 100));
  // Each worker tells of the model that it asked last; at least one of them has served the last runs.
  const active = await Promise.all(workers.map((worker) => Promise.all(['small', 'next'].map((model) => metric(worker, `treadle_chain_active_model{chain="default",model="${model}"}`)))));
  expect(active).toContainEqual([0, 1]);
  expect(active).not.toContainEqual([1, 1]);
  expect(await metric(workers[0]!, 'treadle_chain_model_info{chain="default",position="1",model="next"}')).toBe(1);
  expect(await treadle(['canary', 'set', 'default', '33'], { env: env() })).toMatchObject({ code: 2, stderr: expect.stringContaining('no stage of this canary') as string });
  expect(await treadle(['canary', 'rollback', 'default'], { env: env() })).toMatchObject({ code: 0, stdout: expect.stringContaining('0 % of new runs (rolled back)') as string });
  expect(askedModels(await runToItsEnd())).toEqual([{ model: 'small', canary: false }]);
}, 150_000);
