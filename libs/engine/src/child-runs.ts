/**
 * Starting the runs that calls of another run ask for, each at most once.
 *
 * 1  The run that asks has the child's id in its log before the child exists; whoever carries the call out again finds that child.
 * 2  A child is created only under the claim that asks for it, and not for a run that is being cancelled: the store checks that in the
 *    same step. So a worker that has lost the run starts nothing that nobody knows of.
 * 3  A child that the store has lost and the archive has to its end is not run again.
 */
import { createHash } from 'node:crypto';
import {
  childOf, endOf, idIn, initialState, isEnded, limitsOfRun, restoreState, shardOf, type AgentSpec, type ChildEnded, type ChildRun, type OfferedChild, type OpenCall, type RunState,
} from '@treadle/core';
import { createRun, type CreateDeps } from './create-run.ts';
import type { Archive } from './ports/archive.ts';
import { StoreAway, type Claim, type RunDirectory } from './ports/run-store.ts';

export interface ChildDeps extends CreateDeps {
  readonly store: RunDirectory;
  readonly archive: Pick<Archive, 'getRun'>;
  /** The agents of this worker. */
  readonly agent: (name: string) => { readonly spec: AgentSpec; readonly version: string } | null;
}

export type ChildStart =
  | { readonly type: 'under_way' }
  | { readonly type: 'ended'; readonly end: ChildEnded }
  /** In words for the model. */
  | { readonly type: 'refused'; readonly why: string }
  /** The claim does not hold any more, or the run is being cancelled: nothing was started. */
  | { readonly type: 'fenced' };

export interface ChildRuns {
  /** The run that this call would start; null for an agent that is not known here. */
  offer(run_id: string, call: { readonly tool_use_id: string; readonly agent: unknown }): OfferedChild | null;
  /** Throws `StoreAway` where nobody knows whether it was started. */
  start(parent: RunState, claim: Claim, asked: AskedChild): Promise<ChildStart>;
}

/** `traceparent`: of the call, whose parts the started run's turns are; null where nobody traces it. */
export interface AskedChild { readonly call: OpenCall; readonly traceparent: string | null }

/** How long a start may be on its way, ms. */
const startMs = 10_000;

export function createChildRuns(deps: ChildDeps): ChildRuns {
  return {
    offer(run_id, { tool_use_id, agent }) {
      const offered = typeof agent === 'string' ? deps.agent(agent) : null;
      if (offered === null) return null;
      const limits = limitsOfRun(offered.spec.limits, {});
      return limits.type === 'ok' ? { child_run_id: childRunId(run_id, tool_use_id, deps.clock.nowMs()), limits: limits.limits } : null;
    },

    async start(parent, claim, { call, traceparent }) {
      const child = childOf(parent, call.tool_use_id);
      if (child === undefined) return { type: 'refused', why: 'It was not planned.' };
      const found = await lookUp(deps, parent, child);
      if (found !== null) return found;
      const offered = deps.agent(child.agent);
      if (offered === null) return { type: 'refused', why: `There is no agent named "${child.agent}" here.` };
      const limits = limitsOfRun(offered.spec.limits, {});
      if (limits.type !== 'ok') return { type: 'refused', why: `The limits of the agent "${child.agent}" contradict each other.` };
      const { reply } = await createRun(deps, {
        tenant: parent.tenant, spec: offered.spec, agent_version: offered.version, limits: { ...limits.limits, ...child.limits },
        input: String(call.tool_input.input), metadata: {}, tags: [], priority: parent.priority, run_at: null, parent: claim,
        traceparent: traceparent ?? parent.traceparent,
      }, { run_id: child.child_run_id, not_after_ms: Math.round(deps.clock.nowMs()) + startMs });
      switch (reply.type) {
        case 'created': return { type: 'under_way' };
        case 'fenced': return { type: 'fenced' };
        // What is there and cannot be read has been deleted.
        case 'exists': return await lookUp(deps, parent, child) ?? { type: 'refused', why: 'Its run was deleted.' };
        case 'too_late': throw new StoreAway(`${child.child_run_id} was not started in time`);
        case 'session_busy': case 'session_missing': throw new Error(`a sub-agent has a session of its own, and was answered ${reply.type}`);
      }
    },
  };
}

/** Where the child is already; null where it is not. */
async function lookUp({ store, archive }: ChildDeps, parent: RunState, { child_run_id }: ChildRun): Promise<ChildStart | null> {
  const snapshot = await store.read(child_run_id, 'messages');
  if (snapshot !== null) {
    const state = restoreState(initialState, snapshot.stored);
    if (state.parent_run_id !== parent.run_id) return { type: 'refused', why: 'Its id is taken by another run.' };
    return isEnded(state.status) ? { type: 'ended', end: endOf(state) } : { type: 'under_way' };
  }
  if (parent.attempt < 2) return null;
  const text = await archive.getRun(child_run_id).catch((error: unknown) => {
    throw new StoreAway(`the archive does not say whether ${child_run_id} has ended`, { cause: error });
  });
  return text === null ? null : { type: 'ended', end: endOfArchived(child_run_id, text) };
}

/** How a run has ended, by what the archive keeps of it. */
export function endOfArchived(run_id: string, document: string): ChildEnded {
  const { status, stop_reason, answer, partial, error, usage, tool_calls } = JSON.parse(document) as RunState;
  return endOf({ ...initialState, run_id, status, stop_reason, answer, partial, error, usage, tool_calls });
}

/** The same for the same call at the same time; sorts by time, and lies in the shard of the run that asks. */
export function childRunId(parent_run_id: string, tool_use_id: string, now_ms: number): string {
  const hash = createHash('sha256').update(`${parent_run_id}\n${tool_use_id}`).digest('hex');
  const variant = ((Number.parseInt(hash.charAt(3), 16) & 3) | 8).toString(16);
  const time = Math.floor(now_ms).toString(16).padStart(12, '0');
  return idIn('run', shardOf(parent_run_id), `${time}7${hash.slice(0, 3)}${variant}${hash.slice(4, 19)}`);
}
