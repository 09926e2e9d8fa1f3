/** GET /v1/runs: newest first. */
import { isId, runStatuses, stopReasons } from '@treadle/core';
import type { RunDirectory, RunView } from '@treadle/engine';
import { z } from 'zod';
import { invalidRequest } from '../problem.ts';
import { decodeCursor, encodeCursor, pageLimit } from '../server/api-types.ts';
import { storedRun } from './find.ts';

const metadataFilter = /^metadata\[(.{1,256})\]$/s;
const time = z.iso.datetime({ offset: true, error: 'expected ISO 8601 with a zone, e.g. 2030-01-01T00:00:00Z' });

export const listQuery = z.object({
  status: z.enum(runStatuses).optional(),
  stop_reason: z.enum(stopReasons as [string, ...string[]]).optional(),
  agent: z.string().min(1).max(128).optional(),
  model: z.string().min(1).max(128).optional().describe('The model that served it last.'),
  tag: z.string().min(1).max(64).optional(),
  session_id: z.string().min(1).max(64).optional(),
  created_after: time.optional(),
  created_before: time.optional(),
  limit: pageLimit.default(50),
  cursor: z.string().max(200).optional(),
}).catchall(z.string()).superRefine((query, context) => {
  for (const name of Object.keys(query)) {
    if (!metadataFilter.test(name) && !known.has(name)) context.addIssue({ code: 'custom', path: [name], message: 'unknown field' });
  }
});

const known = new Set(Object.keys(listQuery.shape));

export type ListQuery = z.output<typeof listQuery>;

/** How many runs of a page are read at once. */
const readsAtOnce = 16;
/** How many runs one request reads at most, so that no filter makes it dearer; the page may then be short, or empty, and its cursor goes on. */
const maxLooked = 200;
/** How far a run's id may be from the time of its creation: clocks that mint ids differ from the store's, and a schedule's run may be made an hour late. */
const clockSlackMs = 3_660_000;

/** A page ends early when its rows have this much: an answer can be large, and so can 200 of them. */
const maxPageBytes = 8 * 1024 * 1024;

interface Page { readonly data: readonly RunView[]; readonly next_cursor: string | null }

/** `live`: none that has ended. */
export async function listRuns(store: RunDirectory, tenant: string, query: ListQuery, { live = false }: { readonly live?: boolean } = {}): Promise<Page> {
  const { status = null, agent = null, tag = null, session_id = null, limit } = query;
  const wanted = filterOf(query);
  const limitAtOnce = isIndexed(query) ? limit : Math.max(limit, readsAtOnce);
  const oldest = query.created_after === undefined ? '' : idAt(Date.parse(query.created_after) - clockSlackMs);
  const data: RunView[] = [];
  let bytes = 0;
  let before_id = startOf(query);
  for (let looked = 0; looked < maxLooked;) {
    const page = await store.list({ tenant, status, live, agent, tag, session_id, before_id, limit: limitAtOnce });
    for await (const view of viewsOf(store, tenant, page.run_ids)) {
      if (!wanted(view)) continue;
      data.push(view);
      bytes += Buffer.byteLength(JSON.stringify(view));
      if (data.length === limit || bytes > maxPageBytes) return { data, next_cursor: view.id === page.run_ids.at(-1) ? cursorAt(page.next_before_id) : encodeCursor(view.id) };
    }
    before_id = page.next_before_id;
    // A page without a run still costs a look at the index.
    looked += Math.max(page.run_ids.length, readsAtOnce);
    if (before_id === null || before_id < oldest) break;
  }
  return { data, next_cursor: before_id === null || before_id < oldest ? null : encodeCursor(before_id) };
}

/** A run may have left the store since the list was read, and its owner is checked wherever a run is shown. */
async function* viewsOf(store: RunDirectory, tenant: string, run_ids: readonly string[]): AsyncGenerator<RunView> {
  for (let from = 0; from < run_ids.length; from += readsAtOnce) {
    const snapshots = await Promise.all(run_ids.slice(from, from + readsAtOnce).map((run_id) => store.read(run_id, 'messages')));
    for (const snapshot of snapshots) if (snapshot?.tenant === tenant) yield storedRun(snapshot).view;
  }
}

/** Whether the index alone says which runs are meant. */
function isIndexed(query: ListQuery): boolean {
  const { stop_reason, model, created_after, created_before } = query;
  return [stop_reason, model, created_after, created_before].every((value) => value === undefined) && metadataOf(query).length === 0;
}

function metadataOf(query: ListQuery): [string, unknown][] {
  return Object.entries(query).flatMap(([name, value]): [string, unknown][] => {
    const key = metadataFilter.exec(name)?.[1];
    return key === undefined ? [] : [[key, value]];
  });
}

/** Everything that was asked for, by the run as it is shown: it may have moved on since the index was read. */
function filterOf(query: ListQuery): (view: RunView) => boolean {
  const { status, agent, tag, stop_reason, model, created_after, created_before } = query;
  const metadata = metadataOf(query);
  const after = created_after === undefined ? -Infinity : Date.parse(created_after);
  const before = created_before === undefined ? Infinity : Date.parse(created_before);
  return (view) => {
    const created = Date.parse(view.created_at as string);
    const own = view.metadata as Readonly<Record<string, unknown>>;
    return (status === undefined || view.status === status) && (agent === undefined || view.agent === agent) && (tag === undefined || (view.tags as readonly string[]).includes(tag))
      && created > after && created < before && (stop_reason === undefined || view.stop_reason === stop_reason) && (model === undefined || view.model === model)
      && metadata.every(([key, value]) => Object.hasOwn(own, key) && textOf(own[key]) === value);
  };
}

/** As it would stand in a query. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The id before which the list begins; ids begin with their time. */
function startOf({ cursor, created_before }: ListQuery): string | null {
  const position = cursor === undefined ? null : decodeCursor(cursor);
  if (cursor !== undefined && (position === null || !isId('run', position))) throw invalidRequest([{ path: 'cursor', problem: 'not a cursor of this list' }]);
  return position ?? (created_before === undefined ? null : idAt(Date.parse(created_before) + clockSlackMs));
}

function idAt(ms: number): string {
  return `run_${Math.max(0, ms).toString(16).padStart(12, '0')}${'0'.repeat(20)}`;
}

function cursorAt(before_id: string | null): string | null {
  return before_id === null ? null : encodeCursor(before_id);
}
