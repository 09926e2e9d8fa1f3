/** /v1/runs: accepting, listing, reading, waiting. */
import { readTraceparent } from '@treadle/core';
import { z } from 'zod';
import { tenantOf } from '../auth/authenticate.ts';
import type { ApiContext } from '../dependencies.ts';
import { fieldsNotSupported } from '../problem.ts';
import { json, pageOf, problems, queryInt, type ApiInstance } from '../server/api-types.ts';
import { acceptBatch, batchSchema, checkNumber, laterInBatch, maxBatchBytes } from './batch.ts';
import { cancelledSchema, cancelMany, cancelManySchema } from './cancel-many.ts';
import { acceptRun } from './create.ts';
import { createHeaders, createRunSchema, laterFieldsOf } from './create-schema.ts';
import { forkRoute } from './fork.ts';
import { findRun } from './find.ts';
import { listQuery, listRuns } from './list.ts';
import { runParams, runSchema } from './run-schema.ts';
import { treeRoute } from './tree.ts';
import { waitForRun } from './wait.ts';

const tags = ['runs'];

export function runRoutes(app: ApiInstance, context: ApiContext): void {
  createRoute(app, context);
  batchRoutes(app, context);
  forkRoute(app, context);
  listRoute(app, context);
  readRoutes(app, context);
  treeRoute(app, context);
}

function createRoute(app: ApiInstance, context: ApiContext): void {
  app.post('/v1/runs', {
    config: { scope: 'write' },
    schema: {
      tags, summary: 'Create a run', operationId: 'createRun', body: createRunSchema, headers: createHeaders,
      response: {
        200: json('The first run of this Idempotency-Key', runSchema), 202: json('Accepted: the run is durable and in the queue', runSchema),
        ...problems(400, 404, 409, 410, 413, 415, 422),
      },
    },
    preValidation: async (request) => {
      const later = laterFieldsOf(request.body);
      if (later.length > 0) throw fieldsNotSupported(later);
    },
  }, async (request, reply) => {
    const { view, isNew } = await acceptRun(context, {
      tenant: tenantOf(request), body: request.body, rawBody: request.rawBody, idempotencyKey: request.headers['idempotency-key'], traceparent: readTraceparent(request.headers.traceparent),
    });
    return reply.code(isNew ? 202 : 200).header('location', `/v1/runs/${view.id}`).send(view);
  });
}

function batchRoutes(app: ApiInstance, context: ApiContext): void {
  app.post('/v1/runs/batch', {
    config: { scope: 'write' },
    bodyLimit: Math.max(maxBatchBytes, context.settings.maxBodyBytes),
    schema: {
      tags, summary: 'Create many runs', operationId: 'createRuns', body: batchSchema, headers: createHeaders,
      response: { 200: json('The runs of the first request with this Idempotency-Key', batchedSchema), 202: json('Accepted: the runs, in their order', batchedSchema), ...problems(400, 404, 409, 410, 413, 415, 422) },
    },
    preValidation: async (request) => {
      checkNumber(request.body);
      const later = laterInBatch(request.body);
      if (later.length > 0) throw fieldsNotSupported(later);
    },
  }, async (request, reply) => {
    const { views, isNew } = await acceptBatch(context, {
      tenant: tenantOf(request), body: request.body, rawBody: request.rawBody, idempotencyKey: request.headers['idempotency-key'], traceparent: readTraceparent(request.headers.traceparent),
    });
    return reply.code(isNew ? 202 : 200).send({ data: views });
  });

  app.post('/v1/runs/cancel', {
    config: { scope: 'write' },
    schema: {
      tags, summary: 'Cancel the live runs that a filter names', operationId: 'cancelRuns', body: cancelManySchema,
      response: { 202: json('Accepted: up to a thousand', cancelledSchema), ...problems(400, 413, 415, 422) },
    },
  }, async (request, reply) => reply.code(202).send(await cancelMany(context, tenantOf(request), request.body)));
}

const batchedSchema = z.strictObject({ data: z.array(runSchema) });

function listRoute(app: ApiInstance, context: ApiContext): void {
  app.get('/v1/runs', {
    config: { scope: 'read' },
    schema: {
      tags, summary: 'List runs, newest first', operationId: 'listRuns', querystring: listQuery,
      response: { 200: json('A page of runs', pageOf(runSchema)), ...problems(422) },
    },
  }, async (request) => listRuns(context.store(), tenantOf(request), request.query));
}

function readRoutes(app: ApiInstance, context: ApiContext): void {
  app.get('/v1/runs/:run_id', {
    config: { scope: 'read' },
    schema: {
      tags, summary: 'Read a run', operationId: 'getRun', params: runParams, querystring: z.strictObject({}),
      response: { 200: json('The run', runSchema), ...problems(404, 410, 422) },
    },
  }, async (request) => {
    const found = await findRun({ store: context.store(), archive: context.log.archive }, tenantOf(request), request.params.run_id);
    return found.view;
  });

  app.get('/v1/runs/:run_id/wait', {
    config: { scope: 'read' },
    schema: {
      tags, summary: 'Wait until a run has ended', operationId: 'waitForRun', params: runParams,
      querystring: z.strictObject({ timeout_ms: queryInt(0, 300_000).default(30_000) }),
      response: { 200: json('The run, ended or as it is when the time is over', runSchema), ...problems(404, 410, 422) },
    },
  }, async (request) => waitForRun(context, {
    tenant: tenantOf(request), run_id: request.params.run_id, timeoutMs: request.query.timeout_ms, request,
  }));
}
