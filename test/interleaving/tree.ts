/**
 * A run that starts others: two whose answers it waits for beside a call of its own, then one that it does not wait for. Each of them
 * writes once. Played with workers that stop at any port call, whosever turn it is, and with commands at any step.
 */
import { isEnded, type ChildRun, type Message, type ModelReply, type RunEvent } from '@treadle/core';
import { commandProblems, logOf, requestProblems, runProblems, toolProblems } from './check.ts';
import type { Scenario, Switches } from './play.ts';
import { memoryStage } from './stage.ts';
import { runId, Worker, World } from './world.ts';

export interface TreeScenario extends Pick<Scenario, 'stops' | 'command' | 'resend'> {
  /** A worker that is slow, not dead: others take every other job before it goes on. */
  readonly slow?: { readonly at: number; readonly done: boolean };
}

/** By what the run was asked, and by how many results have come. */
export function treeReply(messages: readonly Message[], base: Omit<ModelReply, 'calls'>, id: () => string): ModelReply {
  const [first] = messages;
  const asked = first?.role === 'user' && typeof first.content === 'string' ? first.content : '';
  const results = messages.filter((message) => message.role === 'tool').length;
  const call = (name: string, input: Readonly<Record<string, unknown>>) => ({ provider_id: id(), name, input, problem: null });
  const spawn = (input: string, more: object = {}) => call('spawn_agent', { agent: 'helper', input, ...more });
  if (asked !== 'go') return results === 0 ? { ...base, calls: [call('write', { what: asked })] } : { ...base, text: `${asked} is done`, calls: [], finish: 'stop' };
  if (results === 0) return { ...base, calls: [spawn('one'), spawn('two'), call('write', { what: 'first' })] };
  if (results === 3) return { ...base, calls: [spawn('three', { wait: false })] };
  return { ...base, text: 'done', calls: [], finish: 'stop' };
}

const mutations = { tree: true };

/** Violations in words; empty when all is well. */
export async function playTree(scenario: TreeScenario, switches: Switches = {}): Promise<string[]> {
  const world = new World(await (switches.stage ?? memoryStage)(switches.protections), { ...switches.mutations, ...mutations });
  await world.create();
  const workers: Worker[] = [];
  prepare(world, workers, scenario);
  if (scenario.slow !== undefined) await slowly(world, workers, scenario.slow);
  for (const stop of scenario.stops) {
    const worker = new Worker(world, stop);
    workers.push(worker);
    await untilStopped(worker);
  }
  for (const [index, stop] of scenario.stops.entries()) if (stop.as === 'zombie') await workers[workers.length - scenario.stops.length + index]!.resume().catch(() => undefined);
  const found = [...await finish(world), ...await treeProblems(world)];
  world.stage.close?.();
  return found;
}

/** One worker takes job after job, as long as it lives. */
async function untilStopped(worker: Worker): Promise<void> {
  for (let round = 0; round < 40; round++) {
    const outcome = await worker.deliver();
    if (outcome === 'stopped' || (outcome === 'no job' && !await goesOn(worker.world))) return;
  }
}

async function isStopped(worker: Worker): Promise<boolean> {
  return Promise.race([worker.stopped.then(() => true), Promise.resolve(false)]);
}

/** Its job stays its own while the others do all that can be done without it. */
async function slowly(world: World, workers: Worker[], { at, done }: { readonly at: number; readonly done: boolean }): Promise<void> {
  const slow = new Worker(world, { at, done, as: 'zombie' });
  workers.push(slow);
  for (let round = 0; round < 40 && !await isStopped(slow); round++) if (await slow.deliver() === 'no job') return;
  const quick = new Worker(world, null);
  workers.push(quick);
  for (let round = 0; round < 40; round++) if (await quick.deliver((key) => world.holders.get(key) === slow) === 'no job') break;
  await slow.resume().catch(() => undefined);
}

function prepare(world: World, workers: Worker[], { command, resend }: TreeScenario): void {
  let dueAt: number | null = null;
  world.onStep = async (step) => {
    if (command?.step === step) await world.send(command.command);
    const write = resend === undefined ? undefined : workers[0]?.sent[resend.write - 1];
    if (resend === undefined || write === undefined) return;
    dueAt ??= step + resend.later;
    if (step === dueAt) await write();
  };
}

async function finish(world: World): Promise<string[]> {
  const last = new Worker(world, null);
  for (let round = 0; round < 80; round++) {
    if (await last.deliver() !== 'no job' || await goesOn(world)) continue;
    const open = (await all(world)).filter((run) => !isEnded(run.status)).map((run) => `${run.run_id} is ${run.status} (${run.pause_reason})`);
    return open.map((each) => `no job is left, and ${each}`);
  }
  return ['the tree does not end'];
}

/** A person resumes what a person has paused: the top of the tree. */
async function goesOn(world: World): Promise<boolean> {
  const [top] = await all(world);
  return top?.status === 'paused' && top.pause_reason === 'requested' && world.send({ type: 'resume' });
}

interface Stored { readonly run_id: string; readonly status: ChildRun['status'] | 'running' | 'paused'; readonly pause_reason: string; readonly parent: string | null }

/** The top first. */
async function all(world: World): Promise<Stored[]> {
  const { run_ids } = await world.store.list({ tenant: 'default', status: null, agent: null, tag: null, session_id: null, before_id: null, limit: 100 });
  const runs = await Promise.all([runId, ...run_ids.filter((id) => id !== runId)].map(async (run_id): Promise<Stored[]> => {
    const snapshot = await world.store.read(run_id, 'messages');
    if (snapshot === null) return [];
    const field = (name: string): string | null => JSON.parse(snapshot.stored.fields[name] ?? 'null') as string | null;
    return [{ run_id, status: snapshot.status as Stored['status'], pause_reason: field('pause_reason') ?? '', parent: field('parent_run_id') }];
  }));
  return runs.flat();
}

async function treeProblems(world: World): Promise<string[]> {
  const runs = await all(world);
  const log = await logOf(world, runId);
  const found = (await Promise.all(runs.map((run) => runProblems(world, run.run_id)))).flat();
  found.push(...toolProblems(world, null), ...requestProblems(world), ...commandProblems(world, log));
  const planned = childEvents(log).filter((event) => event.status === 'queued').map((event) => event.child_run_id);
  const children = runs.filter((run) => run.parent === runId);
  for (const child of children) if (!planned.includes(child.run_id)) found.push(`${child.run_id} is in nobody's log`);
  if (runs.length !== children.length + 1) found.push('a run without a parent');
  const end = log.at(-1);
  if (end?.type === 'run_end' && end.status === 'completed') {
    if (children.length !== 3) found.push(`${children.length} children`);
    const answers = log.flatMap((event) => event.type === 'tool_result' && event.content.startsWith('[Answer') ? [event.content.split('\n')[1]] : []);
    if (answers.sort().join() !== 'one is done,two is done') found.push(`answers ${answers.join()}`);
    for (const child of children) if (child.status !== 'completed') found.push(`a child of a completed run is ${child.status}`);
  }
  const ends = childEvents(log).filter((event) => event.status !== 'queued').map((event) => event.child_run_id);
  if (new Set(ends).size !== ends.length) found.push('a child ended twice');
  return found;
}

function childEvents(log: readonly RunEvent[]): Extract<RunEvent, { type: 'child_run' }>[] {
  return log.filter((event): event is Extract<RunEvent, { type: 'child_run' }> => event.type === 'child_run');
}
