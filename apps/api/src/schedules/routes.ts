/**
 * /v1/schedules: runs at times.
 *
 * 1. A schedule belongs to a tenant; absent, foreign, removed and malformed ids get the same 404 (but for the repeat of a removal, which is answered as the first).
 * 2. Nothing here makes a run: that is the workers' duty.
 */
import { isId } from '@treadle/core';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { tenantOf } from '../auth/authenticate.ts';
import type { ApiContext } from '../dependencies.ts';
import { fieldsNotSupported, invalidRequest } from '../problem.ts';
import { createHeaders, laterFieldsOf } from '../runs/create-schema.ts';
import { decodeCursor, encodeCursor, json, pageLimit, pageOf, problems, takesNoFields, type ApiInstance } from '../server/api-types.ts';
import { acceptSchedule, changeSchedule, findSchedule, removeSchedule } from './change.ts';
import { changeScheduleSchema, createScheduleSchema, scheduleParams as params, scheduleSchema, scheduleView, type ScheduleView } from './schedule-schema.ts';

const tags = ['schedules'];
const pageQuery = z.strictObject({ limit: pageLimit.default(50), cursor: z.string().max(200).optional() });
const headers = createHeaders.pick({ 'idempotency-key': true });
/** How many schedules of a page are read at once. */
const readsAtOnce = 16;
/** A page ends early when its rows have this much: an input can be large. */
const maxPageBytes = 8 * 1024 * 1024;

export function scheduleRoutes(app: ApiInstance, context: ApiContext): void {
  app.post('/v1/schedules', {
    config: { scope: 'write' },
    schema: {
      tags, summary: 'Create a schedule', operationId: 'createSchedule', body: createScheduleSchema, headers,
      response: { 200: json('The first schedule of this Idempotency-Key', scheduleSchema), 201: json('The schedule; it is durable', scheduleSchema), ...problems(400, 404, 409, 413, 415, 422, 429) },
    },
    preValidation: refuseLater,
  }, async (request, reply) => {
    const { schedule, isNew } = await acceptSchedule(context, { tenant: tenantOf(request), body: request.body, rawBody: request.rawBody, idempotencyKey: request.headers['idempotency-key'] });
    return reply.code(isNew ? 201 : 200).header('location', `/v1/schedules/${schedule.id}`).send(scheduleView(schedule));
  });

  app.get('/v1/schedules', {
    config: { scope: 'read' },
    schema: { tags, summary: 'Schedules, newest first', operationId: 'listSchedules', querystring: pageQuery, response: { 200: json('A page', pageOf(scheduleSchema)), ...problems(422) } },
  }, async (request) => listSchedules(context, tenantOf(request), request.query));

  app.get('/v1/schedules/:schedule_id', {
    config: { scope: 'read' },
    schema: { tags, summary: 'A schedule', operationId: 'getSchedule', params, response: { 200: json('The schedule', scheduleSchema), ...problems(404, 422) } },
  }, async (request) => scheduleView(await findSchedule(context, tenantOf(request), request.params.schedule_id)));

  app.patch('/v1/schedules/:schedule_id', {
    config: { scope: 'write' },
    schema: {
      tags, summary: 'Change a schedule, pause it, let it go on', operationId: 'changeSchedule', params, body: changeScheduleSchema,
      response: { 200: json('The schedule as it is now', scheduleSchema), ...problems(400, 404, 413, 415, 422) },
    },
    preValidation: refuseLater,
  }, async (request) => scheduleView(await changeSchedule(context, { tenant: tenantOf(request), id: request.params.schedule_id, body: request.body })));

  app.delete('/v1/schedules/:schedule_id', {
    config: { scope: 'write' },
    schema: {
      tags, summary: 'Delete a schedule', operationId: 'deleteSchedule', params,
      response: { 200: json('Deleted: it makes no more runs; those that it has made go on', z.strictObject({ id: z.string(), deleted_at: z.string() })), ...problems(400, 404, 413, 415, 422) },
    },
    preValidation: takesNoFields,
  }, async (request) => removeSchedule(context, tenantOf(request), request.params.schedule_id));
}

async function listSchedules(context: ApiContext, tenant: string, { limit, cursor }: z.output<typeof pageQuery>) {
  const before_id = cursor === undefined ? null : decodeCursor(cursor);
  if (cursor !== undefined && (before_id === null || !isId('sch', before_id))) throw invalidRequest([{ path: 'cursor', problem: 'not a cursor of this list' }]);
  const schedules = context.schedules();
  const { ids, next_before_id } = await schedules.list({ tenant, before_id, limit });
  const data: ScheduleView[] = [];
  let bytes = 0;
  for (let from = 0; from < ids.length; from += readsAtOnce) {
    const found = await Promise.all(ids.slice(from, from + readsAtOnce).map((id) => schedules.schedule(id)));
    for (const schedule of found) {
      if (schedule?.tenant !== tenant) continue;
      const view = scheduleView(schedule);
      data.push(view);
      bytes += Buffer.byteLength(JSON.stringify(view));
      if (bytes > maxPageBytes && view.id !== ids.at(-1)) return { data, next_cursor: encodeCursor(view.id) };
    }
  }
  return { data, next_cursor: next_before_id === null ? null : encodeCursor(next_before_id) };
}

async function refuseLater(request: FastifyRequest): Promise<void> {
  const run = (request.body as { run?: unknown } | null | undefined)?.run;
  const later = laterFieldsOf(run).map((path) => `run.${path}`);
  if (later.length > 0) throw fieldsNotSupported(later);
}
