/**
 * A run as its owner may see it, wherever it is: in the store while its keys live, in the archive afterwards.
 *
 * 1. Absent, foreign and malformed ids get the same answer, and the first two the same look-ups, so that neither the body nor
 *    the time of an answer shows what exists.
 * 2. A deleted run answers 410 to its owner, whoever remembers it: the store, or the archive, which never forgets.
 */
import { defaultLimits, initialState, isId, restoreState, type RunState, type RunStatus } from '@treadle/core';
import { runView, type RunDirectory, type RunSnapshot, type RunView } from '@treadle/engine';
import { notFound, Problem } from '../problem.ts';
import type { ReadableArchive } from '../store/guarded-store.ts';

/** A run that another one has started, and the call by which it did. */
export interface StartedRun { readonly child_run_id: string; readonly tool_use_id: string; readonly agent: string }

export type FoundRun = { readonly view: RunView; readonly children: readonly StartedRun[] }
  & ({ readonly from: 'store'; readonly state: RunState } | { readonly from: 'archive' });

export interface FindDeps { readonly store: Pick<RunDirectory, 'read' | 'removed'>; readonly archive: Pick<ReadableArchive, 'getRun' | 'removal'> }

/** Throws the 404 `Problem` for what this tenant does not have, and `RunDeleted` for what it had. The state has its messages only where `whole` asks for them. */
export async function findRun(deps: FindDeps, tenant: string, run_id: string, whole?: 'whole'): Promise<FoundRun> {
  const found = isId('run', run_id) ? await lookUp(deps, tenant, run_id, whole) : null;
  if (found === null) throw notFound();
  return found;
}

/** Null where the tenant has no such run. Throws `RunDeleted`. */
export async function lookUp(deps: FindDeps, tenant: string, run_id: string, whole?: 'whole'): Promise<FoundRun | null> {
  const snapshot = await deps.store.read(run_id, whole === undefined ? 'messages' : undefined);
  if (snapshot?.tenant === tenant) return storedRun(snapshot);
  const removed = await deps.store.removed(run_id);
  if (removed?.tenant === tenant) throw new RunDeleted(run_id, new Date(removed.deleted_at_ms).toISOString());
  const [removal, text] = await Promise.all([deps.archive.removal(run_id), deps.archive.getRun(run_id)]);
  if (removal?.tenant === tenant) throw new RunDeleted(run_id, removal.deleted_at);
  if (snapshot !== null || text === null) return null;
  const { tenant: owner, children = [], webhook: _, ...view } = JSON.parse(text) as RunView & { readonly tenant: string; readonly children?: readonly StartedRun[]; readonly webhook?: unknown };
  return owner === tenant ? { from: 'archive', view: withEveryLimit(view as unknown as RunView), children } : null;
}

export class RunDeleted extends Problem {
  readonly run_id: string;
  readonly deleted_at: string;

  constructor(run_id: string, deleted_at: string) {
    super({ status: 410, code: 'run_deleted', detail: `The run was deleted at ${deleted_at}.` });
    this.run_id = run_id;
    this.deleted_at = deleted_at;
  }
}

export function storedRun(snapshot: RunSnapshot): FoundRun & { readonly from: 'store' } {
  const state = restoreState(initialState, snapshot.stored);
  return { from: 'store', state, view: withEveryLimit(runView(state, snapshot.archived_seq)), children: state.children };
}

/** A run of before a limit came has its default. */
function withEveryLimit(view: RunView): RunView {
  return { ...view, limits: { ...defaultLimits, ...view.limits as object } };
}

export function statusOf(found: FoundRun): RunStatus {
  return found.view.status;
}
