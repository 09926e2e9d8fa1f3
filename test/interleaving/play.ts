/**
 * Plays one scenario to the end of its run and says what was violated.
 */
import type { Command, PendingCall } from '@treadle/core';
import { violations, type Loss } from './check.ts';
import { runId, Worker, World, type Mutations, type Stop } from './world.ts';
import type { Protections } from '@treadle/testkit';
import { memoryStage, type Stage } from './stage.ts';

export interface Scenario {
  /** Workers that take the run one after the other and stop; then one that does not. */
  readonly stops: readonly Stop[];
  /** Sent before this step, counted over all workers. */
  readonly command?: { readonly step: number; readonly command: Command };
  /** After the stopping workers: the store loses this many writes. */
  readonly rollBack?: { readonly afterWorker: number; readonly writes: number };
  /** The n-th write of the first worker is sent again after so many further steps. */
  readonly resend?: { readonly write: number; readonly later: number };
}

export interface Switches {
  readonly mutations?: Mutations;
  readonly protections?: Partial<Protections>;
  /** Default: the in-memory double. */
  readonly stage?: (protections?: Partial<Protections>) => Stage | Promise<Stage>;
}

export async function play(scenario: Scenario, switches: Switches = {}): Promise<string[]> {
  const world = new World(await (switches.stage ?? memoryStage)(switches.protections), switches.mutations);
  await world.create();
  const workers: Worker[] = [];
  prepare(world, workers, scenario);

  let loss: Loss | null = null;
  for (const [index, stop] of scenario.stops.entries()) {
    const worker = new Worker(world, stop);
    workers.push(worker);
    await untilStopped(worker);
    if (scenario.rollBack?.afterWorker === index) loss = await loseWrites(world, scenario.rollBack.writes);
  }
  // Zombies wake in the order in which they froze, and do what they still can.
  for (const [index, stop] of scenario.stops.entries()) if (stop.as === 'zombie') await settled(workers[index]!.resume());
  const lost = await finish(world, workers);
  const found = [...lost, ...await violations(world, loss)];
  world.stage.close?.();
  return found;
}

/** The run itself stays: a store that has forgotten a run altogether is another failure. */
async function loseWrites(world: World, writes: number): Promise<Loss> {
  const before = await startedIds(world);
  await world.stage.loseWrites(writes);
  const after = await startedIds(world);
  return { starts: world.starts.length, lostBegins: before.filter((id) => !after.includes(id)) };
}

async function startedIds(world: World): Promise<string[]> {
  return (await world.store.ledger(runId) ?? []).map((entry) => entry.tool_use_id);
}

/** Arms what happens between the steps. */
function prepare(world: World, workers: Worker[], { command, resend }: Scenario): void {
  let dueAt: number | null = null;
  world.onStep = async (step) => {
    if (command?.step === step) await world.send(command.command);
    const write = resend === undefined ? undefined : workers[0]?.sent[resend.write - 1];
    if (resend === undefined || write === undefined) return;
    dueAt ??= step + resend.later;
    if (step === dueAt) await write();
  };
}

/** One worker takes delivery after delivery, as long as it lives. */
async function untilStopped(worker: Worker): Promise<void> {
  for (let round = 0; round < 20; round++) {
    const outcome = await worker.deliver();
    if (outcome === 'stopped') return;
    if (outcome === 'no job' && !(await wakeUp(worker.world))) return;
  }
}

async function finish(world: World, workers: Worker[]): Promise<string[]> {
  const last = new Worker(world, null);
  workers.push(last);
  for (let round = 0; round < 30; round++) {
    const snapshot = await world.store.read(runId);
    if (snapshot === null) return ['the run is gone'];
    if (['completed', 'failed', 'expired', 'cancelled'].includes(snapshot.status)) return [];
    if (await last.deliver() === 'no job' && !(await wakeUp(world))) return [`no job for a run that is ${snapshot.status}`];
  }
  return ['the run does not end'];
}

/** Time passes, and a person resumes what is paused. False when nothing came of it: a wake-up is lost. */
async function wakeUp(world: World): Promise<boolean> {
  const snapshot = await world.store.read(runId);
  if (snapshot?.status === 'paused') return giveWord(world, JSON.parse(snapshot.stored.fields['pending'] ?? '[]') as PendingCall[]);
  world.stage.passTime(5000);
  return (await world.store.pump(0, { limit: 10, grace_ms: 10_000 })).woken > 0;
}

/** A person knows what the outside world says; the first of two words counts. */
async function giveWord(world: World, pending: readonly PendingCall[]): Promise<boolean> {
  if (pending.length === 0) return world.send({ type: 'resume' });
  const words = pending.flatMap(({ kind, tool_use_id, digest = '', tool_input }) => {
    if (kind === 'approval') return decisionsOn(tool_use_id, { digest, what: String(tool_input.what) }).map((command) => world.send(command));
    const outcome = world.starts.some((start) => start.tool_use_id === tool_use_id) ? 'happened' as const : 'did_not_happen' as const;
    return [outcome, 'happened' as const].map((each) => world.send({ type: 'outcome', tool_use_id, outcome: each, by: 'ann' }));
  });
  const taken = await Promise.all(words);
  return taken.filter(Boolean).length === pending.length;
}

/** The first of them counts: the first write is approved, the second denied. */
function decisionsOn(tool_use_id: string, { digest, what }: { readonly digest: string; readonly what: string }): Command[] {
  const decisions = what === 'first' ? ['approve', 'deny'] as const : ['deny', 'approve'] as const;
  return decisions.map((decision) => ({ type: 'approval', tool_use_id, digest, decision, by: 'ann', reason: null }));
}

async function settled(delivery: Promise<unknown>): Promise<void> {
  await delivery.catch(() => undefined);
}
