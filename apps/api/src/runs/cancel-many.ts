/**
 * POST /v1/runs/cancel: every live run that a filter names.
 *
 * 1. Nothing is cancelled that the filter does not name, by the run as it is shown; nothing at all without a filter, unless `all` says so.
 * 2. One request cancels so many at most and takes so long at most; `next_cursor` says where to go on. A run that has ended meanwhile is passed over.
 */
import { isEnded, runStatuses } from '@treadle/core';
import { z } from 'zod';
import type { ApiContext } from '../dependencies.ts';
import { outcomeUnknown, Problem } from '../problem.ts';
import { commandRun } from './commands.ts';
import { eachOf } from './each-of.ts';
import { listQuery, listRuns, textOf, type ListQuery } from './list.ts';

const mostRuns = 1000;
const pageRuns = 200;
const longestMs = 15_000;
/** Fields of metadata in one filter. */
const mostMetadata = 50;

const { agent, model, tag, session_id, created_after, created_before, cursor } = listQuery.shape;
const live = runStatuses.filter((status) => !isEnded(status));

export const cancelManySchema = z.strictObject({
  all: z.literal(true).optional().describe('Every live run; instead of a filter.'),
  status: z.enum(live, { error: `expected one of ${live.join(', ')}` }).optional(), agent, model, tag, session_id,
  metadata: z.record(z.string().min(1).max(256), z.union([z.string(), z.number(), z.boolean(), z.null()])).refine((metadata) => Object.keys(metadata).length <= mostMetadata, `expected at most ${mostMetadata}`).optional().describe('Each of these, as it is in the run.'), created_after, created_before, cursor,
}).superRefine(({ all, cursor: _, ...filters }, context) => {
  const named = Object.values(filters).filter((value) => value !== undefined && (typeof value !== 'object' || Object.keys(value).length > 0)).length;
  if (all === undefined && named === 0) context.addIssue({ code: 'custom', path: [], message: 'expected a filter, or "all": true to cancel every live run' });
  if (all === true && named > 0) context.addIssue({ code: 'custom', path: ['all'], message: 'goes without filters' });
});

export type CancelManyBody = z.output<typeof cancelManySchema>;

export const cancelledSchema = z.strictObject({
  cancelled: z.int().min(0), run_ids: z.array(z.string()).describe('They will end as cancelled.'), next_cursor: z.string().nullable().describe('There may be more: ask again with the same filter and this.'),
});

/** `next_cursor` is null where the filter names no further run. Throws `outcome_unknown` where some are cancelled and the store then does not answer. */
export async function cancelMany(context: ApiContext, tenant: string, body: CancelManyBody): Promise<z.output<typeof cancelledSchema>> {
  const endMs = performance.now() + longestMs;
  const run_ids: string[] = [];
  let next_cursor = body.cursor ?? null;
  try {
    do {
      const page = await listRuns(context.store(), tenant, queryOf(body, next_cursor, Math.min(pageRuns, mostRuns - run_ids.length)), { live: true });
      const found = page.data.filter(({ status }) => !isEnded(status)).map(({ id }) => id as string);
      await eachOf(found, async (id) => { if (await cancel(context, tenant, id)) run_ids.push(id); });
      ({ next_cursor } = page);
    } while (next_cursor !== null && run_ids.length < mostRuns && performance.now() < endMs);
  } catch (error) {
    if (!(error instanceof Error) || run_ids.length === 0) throw error;
    throw outcomeUnknown(`${run_ids.length} runs are being cancelled; then the store did not answer. Asking again is harmless.`, error);
  }
  return { cancelled: run_ids.length, run_ids, next_cursor };
}

/** False where there is nothing left to cancel. */
async function cancel(context: ApiContext, tenant: string, run_id: string): Promise<boolean> {
  try {
    await commandRun(context, { tenant, run_id, command: { type: 'cancel' }, idempotencyKey: undefined });
    return true;
  } catch (error) {
    if (error instanceof Problem && ['invalid_state', 'not_found', 'run_deleted'].includes(error.code)) return false;
    throw error;
  }
}

function queryOf({ all: _all, cursor: _cursor, metadata = {}, ...filters }: CancelManyBody, cursor: string | null, limit: number): ListQuery {
  const named = Object.fromEntries(Object.entries(metadata).map(([key, value]) => [`metadata[${key}]`, textOf(value)]));
  return { ...named, ...filters, limit, ...(cursor === null ? {} : { cursor }) } as ListQuery;
}
