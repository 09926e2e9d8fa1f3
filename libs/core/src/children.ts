/**
 * Sub-agents: runs that calls of a run have started. What each may use is reserved until it ends; then what it has used counts as the
 * run's own. So a limit that holds over the run and its descendants holds at any time, whatever runs beside one another.
 */
import type { ChildEnded, Command } from './command.ts';
import type { ChildLimits, EventBody, PendingCall } from './events.ts';
import type { Limits } from './limits.ts';
import { own } from './own.ts';
import type { ChildRun, OpenCall, RunState } from './state.ts';
import { isEnded } from './stop-reason.ts';
import type { OfferedChild, SettledCall } from './turn-input.ts';
import { addUsage } from './usage.ts';
import { capText } from './well-formed.ts';

export function isSpawn(state: RunState, call: Pick<OpenCall, 'tool_name' | 'invalid'>): boolean {
  return call.invalid === null && state.tools?.find((tool) => tool.name === call.tool_name)?.builtin === 'spawn_agent';
}

/** Whether the answer of the started run is the result of the call, and not its id. */
export function awaitsAnswer(call: Pick<OpenCall, 'tool_input'>): boolean {
  return call.tool_input.wait !== false;
}

export function childOf(state: RunState, tool_use_id: string): ChildRun | undefined {
  return state.children.find((child) => child.tool_use_id === tool_use_id);
}

function live(state: RunState): ChildRun[] {
  return state.children.filter((child) => child.status === 'queued');
}

/** What of the run's own limits is reserved for those under way. */
export function reserved(state: RunState): { readonly tool_calls: number; readonly tokens: number; readonly cost_usd: number } {
  return live(state).reduce((sum, { limits }) => ({
    tool_calls: sum.tool_calls + limits.tool_budget, tokens: sum.tokens + (limits.max_total_tokens ?? 0), cost_usd: sum.cost_usd + (limits.max_cost_usd ?? 0),
  }), { tool_calls: 0, tokens: 0, cost_usd: 0 });
}

/** Plans the starts that a reply asks for, in its order: each call's start, or the result that says why nothing was started. */
export function plannedChildren(state: RunState, offered: Readonly<Record<string, OfferedChild>>, append: (state: RunState, events: readonly EventBody[]) => RunState): EventBody[] {
  const spawns = state.calls.filter((call) => !call.settled && isSpawn(state, call));
  // While the run waits it uses nothing; one that goes on keeps a share for itself.
  const goesOn = spawns.some((call) => !awaitsAnswer(call)) ? 1 : 0;
  const events: EventBody[] = [];
  spawns.forEach((call, index) => {
    const child = own(offered, call.tool_use_id);
    const shares = spawns.length - index + goesOn;
    const empty = String(call.tool_input.input).trim() === '' ? 'The input is empty.' : null;
    const limits = empty ?? (child === undefined ? `There is no agent named "${nameOf(call)}" here.` : childLimits(append(state, events), child.limits, shares));
    events.push(typeof limits === 'string' || child === undefined
      ? { type: 'tool_result', tool_use_id: call.tool_use_id, tool_name: call.tool_name, content: `No sub-agent was started. ${String(limits)}`, is_error: true, duration: 0 }
      : { type: 'child_run', child_run_id: child.child_run_id, tool_use_id: call.tool_use_id, agent: nameOf(call), status: 'queued', limits });
  });
  return events;
}

function nameOf({ tool_input }: Pick<OpenCall, 'tool_input'>): string {
  return typeof tool_input.agent === 'string' ? tool_input.agent : '';
}

/** In words why there may be no such run. `shares`: among how many what is left is divided. */
function childLimits(state: RunState, own: Limits, shares: number): ChildLimits | string {
  const { limits } = state;
  if (limits.max_depth < 1) return 'Sub-agents may not be nested any deeper (max_depth).';
  if (state.children.length >= limits.max_children) return `This run may start ${limits.max_children} sub-agents, and has (max_children).`;
  const used = addUsage(state.usage, state.turn_usage);
  const held = reserved(state);
  const share = (limit: number | null, gone: number): number => limit === null ? Infinity : Math.max(0, (limit - gone) / shares);
  const tokens = Math.floor(share(limits.max_total_tokens, used.input_tokens + used.output_tokens + used.wasted_tokens + held.tokens));
  const cost = share(limits.max_cost_usd, used.cost_usd + held.cost_usd);
  if (tokens < 1) return 'No tokens are left for it (max_total_tokens).';
  if (cost <= 0) return 'No money is left for it (max_cost_usd).';
  const least = (mine: number | null, rest: number): number | null => rest === Infinity ? mine : Math.min(mine ?? Infinity, rest);
  return {
    tool_budget: Math.min(own.tool_budget, Math.floor(share(limits.tool_budget, state.tool_calls + held.tool_calls))),
    max_total_tokens: least(own.max_total_tokens, tokens), max_cost_usd: least(own.max_cost_usd, cost), max_depth: Math.min(own.max_depth, limits.max_depth - 1),
  };
}

/** Runs that have ended, as facts of this one: of each the first word, and the result of the call that waits for it. */
export function childEnds(state: RunState, told: readonly ChildEnded[]): EventBody[] {
  return told.filter((end, index) => told.findIndex((other) => other.child_run_id === end.child_run_id) === index).flatMap((end): EventBody[] => {
    const { child_run_id, status, usage, tool_calls } = end;
    const child = live(state).find((each) => each.child_run_id === child_run_id);
    if (child === undefined) return [];
    const { tool_use_id, agent } = child;
    const ended: EventBody = { type: 'child_run', child_run_id, tool_use_id, agent, status, usage, tool_calls };
    const call = state.calls.find((each) => each.tool_use_id === tool_use_id && !each.settled);
    if (call === undefined || !awaitsAnswer(call)) return [ended];
    const capped = capText(answerOfChild(child, end), state.limits.max_observation_bytes);
    return [ended, {
      type: 'tool_result', tool_use_id, tool_name: call.tool_name, content: capped.text, is_error: status !== 'completed', duration: 0,
      ...(capped.truncated_bytes > 0 ? { truncated_bytes: capped.truncated_bytes } : {}),
    }];
  });
}

/** It is a sub-agent that speaks here, not the user and not the host. */
function answerOfChild({ agent, child_run_id }: ChildRun, { status, stop_reason, text }: ChildEnded): string {
  if (status === 'completed') return `[Answer of the sub-agent ${agent}, run ${child_run_id}]\n${text}`;
  return `[The sub-agent ${agent}, run ${child_run_id}, has given no answer: ${status} (${stop_reason})]\n${text}`.trim();
}

/** Calls whose run is under way: the run waits for them. */
export function awaited(state: RunState, ids: readonly string[]): PendingCall[] {
  return state.calls.flatMap(({ settled, tool_use_id, tool_name, tool_input }): PendingCall[] => {
    const child = settled || !ids.includes(tool_use_id) ? undefined : childOf(state, tool_use_id);
    return child === undefined ? [] : [{ kind: 'child_run', tool_use_id, tool_name, tool_input, expires_at: null, child_run_id: child.child_run_id }];
  });
}

/** Starts that failed, where the run had counted on them: nothing is reserved for them any more. */
export function neverStarted(state: RunState, results: readonly SettledCall[]): EventBody[] {
  return results.flatMap(({ tool_use_id, is_error, outcome }): EventBody[] => {
    const child = is_error && outcome === undefined ? live(state).find((each) => each.tool_use_id === tool_use_id) : undefined;
    if (child === undefined) return [];
    const { child_run_id, agent } = child;
    return [{ type: 'child_run', child_run_id, tool_use_id, agent, status: 'failed' }];
  });
}

/** What another run is told. */
export interface Telling { readonly run_id: string; readonly command: Command }

/**
 * What other runs are told of a change, in the very write that makes it: its end to the run that started this one; a pause and its end to
 * those that this one has started, and a cancel. Whoever ends otherwise cancels only those whose answer it was waiting for.
 */
export function tellings(before: RunState, after: RunState): Telling[] {
  const children = live(after);
  const pausedThen = before.pause_reason === 'requested';
  const tell = (to: readonly ChildRun[], command: Command): Telling[] => to.map(({ child_run_id }) => ({ run_id: child_run_id, command }));
  if (isEnded(after.status) && !isEnded(before.status)) {
    const waitedFor = new Set(before.calls.filter((call) => !call.settled && awaitsAnswer(call)).map((call) => call.tool_use_id));
    const parent = after.parent_run_id === null ? [] : [{ run_id: after.parent_run_id, command: endOf(after) }];
    const ends = (child: ChildRun): boolean => after.status === 'cancelled' || waitedFor.has(child.tool_use_id);
    return [...parent, ...tell(children.filter(ends), { type: 'cancel' }),
      ...tell(pausedThen ? children.filter((child) => !ends(child)) : [], { type: 'resume' })];
  }
  const pausedNow = after.pause_reason === 'requested';
  if (pausedNow === pausedThen) return [];
  return tell(children, pausedNow ? { type: 'pause' } : { type: 'resume' });
}

/** How a run has ended, for the run that started it. Throws before the end. */
export function endOf(state: RunState): ChildEnded {
  const { run_id, status, stop_reason, usage, tool_calls } = state;
  if (!isEnded(status) || stop_reason === null) throw new TypeError(`${run_id} has not ended`);
  const text = state.answer ?? state.partial?.summary ?? [state.error?.message, state.error?.detail].filter(Boolean).join(' ');
  return { type: 'child_ended', child_run_id: run_id, status, stop_reason, text, usage, tool_calls };
}
