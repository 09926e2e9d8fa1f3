/** GET /v1/runs/{id}/events: one log in three forms, wherever it is kept. */
import type { FastifyRequest } from 'fastify';
import { readLog } from '@treadle/engine';
import { isEnded } from '@treadle/core';
import { z } from 'zod';
import { tenantOf } from '../auth/authenticate.ts';
import type { ApiContext } from '../dependencies.ts';
import { findRun } from '../runs/find.ts';
import { runParams } from '../runs/run-schema.ts';
import { preferredType } from '../server/accept.ts';
import { encodeCursor, pageOf, problems, type ApiInstance } from '../server/api-types.ts';
import { startOf, type Start } from './moved.ts';
import { beyondEnd, eventsHeaders, eventsQuery, positionOf } from './position.ts';
import { serveEventStream, serveJsonLines } from './serve-stream.ts';

const eventSchema = z.looseObject({
  type: z.string(), seq: z.int(), ts: z.number(), run_id: z.string(), turn_number: z.int(), epoch: z.int(),
});

const answers = {
  200: {
    description: 'The log. Server-Sent Events end after `run_end`; a browser that reconnects after that gets 204 and stops. An event `reset` with `{type, last_seq}` says that '
      + 'the store has lost its last writes: what was shown beyond `last_seq` is void, and the log goes on from there.',
    content: {
      'application/json': { schema: pageOf(eventSchema) },
      'text/event-stream': { schema: z.string() },
      'application/x-ndjson': { schema: z.string() },
    },
  },
  204: { description: 'Last-Event-ID is the end of a log that has ended: nothing will ever follow.', content: { 'text/event-stream': { schema: z.string() } } },
  ...problems(400, 404, 410, 422),
};

export function eventRoutes(app: ApiInstance, context: ApiContext): void {
  app.get('/v1/runs/:run_id/events', {
    config: { scope: 'read' },
    schema: {
      tags: ['runs'], summary: 'The events of a run', operationId: 'getEvents', params: runParams, querystring: eventsQuery, headers: eventsHeaders,
      response: answers,
    },
  }, async (request, reply) => {
    const { run_id } = request.params;
    const { after, cursor, types: asked, limit = 100 } = request.query;
    const { view } = await findRun({ store: context.store(), archive: context.log.archive }, tenantOf(request), run_id);
    const types = asked === undefined ? null : new Set(asked);
    const form = wantedForm(request);
    const lastEventId = form === 'sse' ? request.headers['last-event-id'] : undefined;
    const position = positionOf({ lastEventId, cursor, after });
    const start: Start = form === 'sse' ? await startOf(context, run_id, { after_seq: position.seq, last_seq: view.last_seq, ended: isEnded(view.status), epoch: epochIn(request.headers['treadle-last-epoch']) }) : position.seq > view.last_seq ? { type: 'beyond' } : { type: 'as_asked', after_seq: position.seq, seen_epoch: 0 };
    if (start.type === 'beyond') throw beyondEnd(position, view.last_seq);
    const { after_seq, seen_epoch } = start;
    const reset = start.type === 'reset';
    const atEnd = isEnded(view.status) && after_seq === view.last_seq;
    if (form === 'sse' && atEnd && !reset && lastEventId !== undefined) return reply.code(204).send();
    if (form !== 'json' && request.method === 'HEAD') return reply.header('content-type', mediaTypes[form]).send();
    const stream = { run_id, after_seq, seen_epoch, reset, atEnd, types, reply };
    switch (form) {
      case 'sse':
        await serveEventStream(context, stream);
        return reply;
      case 'ndjson':
        await serveJsonLines(context, stream);
        return reply;
      case 'json': {
        const page = await readLog(context.log, run_id, { after_seq, limit });
        const last_seq = page.at(-1)?.seq ?? after_seq;
        const data = page.filter((entry) => types === null || types.has(entry.type)).map((entry) => entry.event);
        return { data, next_cursor: last_seq < view.last_seq && page.length > 0 ? encodeCursor(String(last_seq)) : null };
      }
    }
  });
}

function epochIn(header: string | undefined): number | null {
  return header === undefined ? null : Number(header);
}

type Form = 'json' | 'ndjson' | 'sse';
const mediaTypes = { json: 'application/json', ndjson: 'application/x-ndjson', sse: 'text/event-stream' } as const;
const forms = Object.keys(mediaTypes) as Form[];

/** JSON is for everybody who asks for neither of the streams. */
function wantedForm(request: FastifyRequest): Form {
  const type = preferredType(request.headers.accept, forms.map((form) => mediaTypes[form]));
  return forms.find((form) => mediaTypes[form] === type) ?? 'json';
}
