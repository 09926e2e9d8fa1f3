/**
 * What must hold when a run is over, whatever happened on the way.
 */
import { evolve, initialState, type Message, type RunEvent } from '@treadle/core';
import { replayRun } from '@treadle/engine';
import { runId, type World } from './world.ts';

/** What a store that lost writes has made forgivable. */
export interface Loss {
  /** How many starts there were by then. */
  readonly starts: number;
  /** Calls whose begin had been acknowledged and was lost: the worker that holds the answer may still start them. */
  readonly lostBegins: readonly string[];
}

/** Violations in words; empty when all is well. */
export async function violations(world: World, loss: Loss | null): Promise<string[]> {
  const log = await logOf(world, runId);
  const found = await runProblems(world, runId);
  found.push(...toolProblems(world, loss), ...requestProblems(world), ...approvalProblems(world, log, loss));
  if (loss === null) found.push(...commandProblems(world, log));
  return found;
}

export async function logOf(world: World, run_id: string): Promise<RunEvent[]> {
  const range = await world.store.events(run_id, 0, 10_000);
  return (range?.events ?? []).map((text) => JSON.parse(text) as RunEvent);
}

/** Of one run, whatever was to become of it. */
export async function runProblems(world: World, run_id: string): Promise<string[]> {
  const found = logProblems(await logOf(world, run_id), run_id);
  return found.length > 0 ? found : replayProblems(world, run_id);
}

function logProblems(log: readonly RunEvent[], run_id: string): string[] {
  const found: string[] = [];
  if (log.at(-1)?.type !== 'run_end') found.push(`the log ends with ${log.at(-1)?.type ?? 'nothing'}`);
  try {
    let state = { ...initialState, run_id };
    for (const event of log) state = evolve(state, event);
    if (state.calls.length > 0) found.push('calls are open at the end');
  } catch (error) {
    found.push(`the log does not fold: ${String(error)}`);
  }
  const uses = log.flatMap((event) => event.type === 'tool_use' ? [event.tool_use_id] : []);
  const results = log.flatMap((event) => event.type === 'tool_result' ? [event.tool_use_id] : []);
  if (uses.toSorted().join() !== results.toSorted().join()) found.push(`calls ${uses.join()} have results ${results.join()}`);
  return found;
}

async function replayProblems(world: World, run_id: string): Promise<string[]> {
  const report = await replayRun({ store: world.store, archive: { events: () => Promise.resolve([]) } }, run_id);
  return report?.identical === true ? [] : [`replay differs in ${report?.differences.map((each) => each.field).join() ?? 'everything'}`];
}

/** What the store forgot may be done again; but after that no call twice. */
export function toolProblems(world: World, loss: Loss | null): string[] {
  const writes = world.starts.slice(loss?.starts ?? 0).filter((start) => start.tool.startsWith('write'));
  const counted = writes.map((start) => loss === null ? start.tool : start.tool_use_id);
  for (const id of loss?.lostBegins ?? []) {
    const forgiven = counted.indexOf(id);
    if (forgiven >= 0) counted.splice(forgiven, 1);
  }
  return new Set(counted).size === counted.length ? [] : [`started twice: ${counted.join()}`];
}

/** Nothing of a batch begins before the words on it, and what was denied never does: as the tools saw it. */
function approvalProblems(world: World, log: readonly RunEvent[], loss: Loss | null): string[] {
  if (world.mutations.approves !== true) return [];
  const words = log.flatMap((event) => event.type === 'approval_resolved' ? [event] : []);
  const denied = words.filter(({ decision }) => decision === 'deny').map(({ tool_use_id }) => tool_use_id);
  const begun = world.starts.map(({ tool_use_id }) => tool_use_id);
  const early = world.early.map(({ tool, tool_use_id }) => `${tool} ${tool_use_id} began while a word was waited for`);
  const again = loss === null ? words.map(({ tool_use_id }) => tool_use_id).filter((id, index, all) => all.indexOf(id) !== index) : [];
  return [...early, ...denied.filter((id) => begun.includes(id)).map((id) => `${id} was denied and began`), ...again.map((id) => `two words on ${id}`)];
}

/** Calls paired with their results at once and in order, and a user message first. */
export function requestProblems(world: World): string[] {
  const found: string[] = [];
  for (const request of world.requests as Message[][]) {
    if (request[0]?.role !== 'user') found.push('a request without a user message first');
    request.forEach((message, index) => {
      if (message.role !== 'assistant') return;
      const ids = request.slice(index + 1, index + 1 + message.calls.length).map((each) => each.role === 'tool' ? each.tool_use_id : '');
      if (ids.join() !== message.calls.map((call) => call.tool_use_id).join()) found.push(`calls ${message.calls.map((call) => call.tool_use_id).join()} are followed by ${ids.join()}`);
    });
  }
  return found;
}

/** What was accepted has happened, once. */
export function commandProblems(world: World, log: readonly RunEvent[]): string[] {
  const found: string[] = [];
  const end = log.at(-1);
  const cancelled = world.accepted.some((command) => command.type === 'cancel');
  const status = end?.type === 'run_end' ? end.status : 'none';
  if (status !== (cancelled ? 'cancelled' : 'completed')) found.push(`ended ${status}`);
  const steers = log.flatMap((event) => event.type === 'steer' ? [event.content] : []);
  const wanted = world.accepted.flatMap((command) => command.type === 'steer' ? [command.text] : []);
  if (steers.join() !== wanted.join()) found.push(`steers ${wanted.join()} became ${steers.join()}`);
  const pauses = log.filter((event) => event.type === 'state_change' && event.new === 'paused' && event.reason === 'requested').length;
  const asked = world.accepted.filter((command) => command.type === 'pause').length;
  if (pauses !== asked) found.push(`${asked} pauses became ${pauses}`);
  return found;
}
