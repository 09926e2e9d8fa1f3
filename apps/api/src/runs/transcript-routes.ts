/** /v1/runs/{id}/messages, /ledger, /replay. */
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { tenantOf } from '../auth/authenticate.ts';
import type { ApiContext } from '../dependencies.ts';
import { json, pageOf, problems, takesNoFields, type ApiInstance } from '../server/api-types.ts';
import { findRun, type FoundRun } from './find.ts';
import { runParams } from './run-schema.ts';
import { ledgerOf, replay, transcriptOf } from './transcript.ts';

const tags = ['runs'];
const noQuery = z.strictObject({});

const messagesSchema = z.strictObject({
  model: z.string(), system: z.string(), data: z.array(z.looseObject({ role: z.enum(['user', 'assistant', 'tool']) })), next_cursor: z.null(),
});

const ledgerEntrySchema = z.strictObject({
  tool_use_id: z.string(), tool_name: z.string(), status: z.enum(['started', 'settled', 'in_doubt']), effect: z.enum(['read', 'idempotent', 'once']),
  started_epoch: z.int(), settled_epoch: z.int().nullable(), idempotency_key: z.string(), outcome: z.string().nullable(),
});

const replaySchema = z.strictObject({
  identical: z.boolean(), events: z.int(),
  differences: z.array(z.strictObject({ field: z.string(), stored: z.unknown(), replayed: z.unknown() })),
});

export function transcriptRoutes(app: ApiInstance, context: ApiContext): void {
  const find = (request: FastifyRequest, run_id: string, whole?: 'whole'): Promise<FoundRun> =>
    findRun({ store: context.store(), archive: context.log.archive }, tenantOf(request), run_id, whole);

  app.get('/v1/runs/:run_id/messages', {
    config: { scope: 'read' },
    schema: {
      tags, summary: 'The transcript as the model would next see it', operationId: 'getMessages', params: runParams, querystring: noQuery,
      response: { 200: json('The transcript', messagesSchema), ...problems(404, 410, 422) },
    },
  }, async (request) => transcriptOf(context.log, await find(request, request.params.run_id, 'whole')));

  app.get('/v1/runs/:run_id/ledger', {
    config: { scope: 'read' },
    schema: {
      tags, summary: 'Every tool call that was begun, and what became of it', operationId: 'getLedger', params: runParams, querystring: noQuery,
      response: { 200: json('The ledger', pageOf(ledgerEntrySchema)), ...problems(404, 410, 422) },
    },
  }, async (request) => ({ data: await ledgerOf(context, await find(request, request.params.run_id)), next_cursor: null }));

  app.post('/v1/runs/:run_id/replay', {
    config: { scope: 'read' },
    schema: {
      tags, summary: 'Fold the log again and compare', operationId: 'replayRun', params: runParams,
      response: { 200: json('How the two compare', replaySchema), ...problems(400, 404, 410, 413, 415, 422) },
    },
    preValidation: takesNoFields,
  }, async (request) => replay(context.log, await find(request, request.params.run_id)));
}
