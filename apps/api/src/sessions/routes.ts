/**
 * /v1/sessions: conversations that successive runs share.
 *
 * 1. A session belongs to a tenant; absent, foreign and malformed ids get the same 404.
 * 2. A session's log is that of its runs, one after the other, oldest first; `seq` counts within each run.
 */
import { idIn, isId, shardOf } from '@treadle/core';
import { mintRunId, type StoredSession } from '@treadle/engine';
import { z } from 'zod';
import { tenantOf } from '../auth/authenticate.ts';
import type { ApiContext } from '../dependencies.ts';
import { logLines } from '../events/pager.ts';
import { serveLines } from '../events/serve-stream.ts';
import { invalidRequest, notFound, unavailable } from '../problem.ts';
import { decodeCursor, encodeCursor, json, pageLimit, pageOf, problems, takesNoFields, type ApiInstance } from '../server/api-types.ts';

const tags = ['sessions'];
const sessionParams = z.object({ session_id: z.string().max(200) });
const pageQuery = z.strictObject({ limit: pageLimit.default(50), cursor: z.string().max(200).optional() });

const sessionSchema = z.strictObject({
  id: z.string(), current_run_id: z.string().nullable().describe('The run under way.'), last_run_id: z.string().nullable().describe('The run that ended last.'),
});

/** Runs of one session that its log is made of at most; the newest count. */
const mostRuns = 200;

function viewOf(id: string, session: StoredSession | null) {
  return { id, current_run_id: session?.current ?? null, last_run_id: session?.last ?? null };
}

/** Throws the 404 `Problem` for what this tenant does not have. */
async function findSession(context: ApiContext, tenant: string, id: string): Promise<StoredSession> {
  const found = isId('ses', id) ? await context.store().session(id) : null;
  if (found?.tenant !== tenant) throw notFound();
  return found;
}

export function sessionRoutes(app: ApiInstance, context: ApiContext): void {
  app.post('/v1/sessions', {
    config: { scope: 'write' },
    schema: { tags, summary: 'Begin a session without a run', operationId: 'createSession', response: { 201: json('The session', sessionSchema), ...problems(400, 413, 415, 422) } },
    preValidation: takesNoFields,
  }, async (request, reply) => {
    const store = context.store();
    const { random } = context.deps;
    const shard = shardOf(mintRunId({ random, shards: context.settings.shards }));
    const id = idIn('ses', shard, random.uuid());
    const outcome = await store.createSession({ id, tenant: tenantOf(request), not_after_ms: await store.now() + context.settings.notAfterMs });
    if (outcome === 'too_late') throw unavailable('The store took too long; the session was not created and will not be.');
    return reply.code(201).header('location', `/v1/sessions/${id}`).send(viewOf(id, null));
  });

  app.get('/v1/sessions', {
    config: { scope: 'read' },
    schema: { tags, summary: 'Sessions, newest first', operationId: 'listSessions', querystring: pageQuery, response: { 200: json('A page', pageOf(sessionSchema)), ...problems(422) } },
  }, async (request) => {
    const { limit, cursor } = request.query;
    const before_id = cursor === undefined ? null : decodeCursor(cursor);
    if (cursor !== undefined && (before_id === null || !isId('ses', before_id))) throw invalidRequest([{ path: 'cursor', problem: 'not a cursor of this list' }]);
    const store = context.store();
    const tenant = tenantOf(request);
    const page = await store.listSessions({ tenant, before_id, limit });
    const found = await Promise.all(page.session_ids.map(async (id) => [id, await store.session(id)] as const));
    const data = found.flatMap(([id, session]) => session?.tenant === tenant ? [viewOf(id, session)] : []);
    return { data, next_cursor: page.next_before_id === null ? null : encodeCursor(page.next_before_id) };
  });

  app.get('/v1/sessions/:session_id', {
    config: { scope: 'read' },
    schema: { tags, summary: 'A session', operationId: 'getSession', params: sessionParams, response: { 200: json('The session', sessionSchema), ...problems(404) } },
  }, async (request) => viewOf(request.params.session_id, await findSession(context, tenantOf(request), request.params.session_id)));

  app.get('/v1/sessions/:session_id/events', {
    config: { scope: 'read' },
    schema: {
      tags, summary: 'The logs of its runs, one after the other', operationId: 'getSessionEvents', params: sessionParams,
      response: { 200: { description: 'One event per line', content: { 'application/x-ndjson': { schema: z.string() } } }, ...problems(404) },
    },
  }, async (request, reply) => {
    const { session_id } = request.params;
    const tenant = tenantOf(request);
    await findSession(context, tenant, session_id);
    const { run_ids } = await context.store().list({ tenant, status: null, agent: null, tag: null, session_id, before_id: null, limit: mostRuns });
    if (request.method === 'HEAD') return reply.type('application/x-ndjson').send();
    await serveLines(context, { reply }, lines(context, run_ids.toReversed()));
    return reply;
  });
}

async function* lines(context: ApiContext, run_ids: readonly string[]): AsyncGenerator<string> {
  for (const run_id of run_ids) yield* logLines(context.log, { run_id, after_seq: 0, types: null });
}
