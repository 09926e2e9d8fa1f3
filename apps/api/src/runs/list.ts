/** GET /v1/runs: newest first. */
import { isId, runStatuses } from '@treadle/core';
import type { RunDirectory, RunView } from '@treadle/engine';
import { z } from 'zod';
import { invalidRequest } from '../problem.ts';
import { decodeCursor, encodeCursor, pageLimit } from '../server/api-types.ts';
import { storedRun } from './find.ts';

export const listQuery = z.strictObject({
  status: z.enum(runStatuses).optional(),
  agent: z.string().min(1).max(128).optional(),
  tag: z.string().min(1).max(64).optional(),
  limit: pageLimit.default(50),
  cursor: z.string().max(200).optional(),
});

/** Filters of a later release. */
export function laterFilters(query: unknown): string[] {
  const later = /^(stop_reason|model|session_id|metadata\[.*\]|created_after|created_before)$/;
  return Object.keys(query ?? {}).filter((name) => later.test(name));
}

/** How many runs of a page are read at once. */
const readsAtOnce = 16;

export async function listRuns(store: RunDirectory, tenant: string, query: z.output<typeof listQuery>):
Promise<{ readonly data: readonly RunView[]; readonly next_cursor: string | null }> {
  const { status = null, agent = null, tag = null, limit } = query;
  const page = await store.list({ tenant, status, agent, tag, limit, before_id: positionOf(query.cursor) });
  const data: RunView[] = [];
  for (let from = 0; from < page.run_ids.length; from += readsAtOnce) {
    const snapshots = await Promise.all(page.run_ids.slice(from, from + readsAtOnce).map((run_id) => store.read(run_id, 'messages')));
    // A run may have left the store since the list was read, and its owner is checked wherever a run is shown.
    for (const snapshot of snapshots) if (snapshot?.tenant === tenant) data.push(storedRun(snapshot).view);
  }
  return { data, next_cursor: page.next_before_id === null ? null : encodeCursor(page.next_before_id) };
}

function positionOf(cursor: string | undefined): string | null {
  if (cursor === undefined) return null;
  const position = decodeCursor(cursor);
  if (position === null || !isId('run', position)) throw invalidRequest([{ path: 'cursor', problem: 'not a cursor of this list' }]);
  return position;
}
