/**
 * /v1/webhooks/deliveries: what was told of ended runs, and sending it again.
 *
 * 1. A delivery is its run's: the same owner, the same shard, found by the run's id in another dress.
 * 2. An address is shown without its query, which may hold a token; an endpoint's address is not shown at all.
 * 3. Sent again is what has ended, or waits for its next attempt; under the same `webhook-id`, so that a receiver that has it already can tell.
 */
import { isId, runOfWebhook, shownAddress, webhookId } from '@treadle/core';
import { deliveryStates, type StoredDelivery } from '@treadle/engine';
import { z } from 'zod';
import { tenantOf } from '../auth/authenticate.ts';
import type { ApiContext } from '../dependencies.ts';
import { invalidRequest, notFound, outcomeUnknown, Problem, unavailable } from '../problem.ts';
import { decodeCursor, encodeCursor, json, pageLimit, pageOf, problems, takesNoFields, type ApiInstance } from '../server/api-types.ts';
import { StoreUnavailable } from '../store/unavailable.ts';

const tags = ['webhooks'];
const time = z.string().nullable();

const deliverySchema = z.strictObject({
  id: z.string().describe('The `webhook-id` of every attempt.'), run_id: z.string(),
  url: z.string().nullable().describe('Without its query; null for an endpoint of the configuration.'), endpoint: z.string().nullable(),
  status: z.enum(deliveryStates).describe('`dead`: given up; it can be sent again.'), attempts: z.int().describe('Those whose outcome is known.'),
  last_attempt_at: time, last_status: z.int().nullable().describe('What the receiver answered.'), last_error: z.string().nullable(),
  next_attempt_at: time, created_at: z.string().describe('ISO 8601, UTC'),
});
type Delivery = z.output<typeof deliverySchema>;

const querystring = z.strictObject({
  status: z.enum(deliveryStates).optional(), run_id: z.string().max(64).optional(), limit: pageLimit.default(50), cursor: z.string().max(200).optional(),
});
type Query = z.output<typeof querystring>;

export function webhookRoutes(app: ApiInstance, context: ApiContext): void {
  app.get('/v1/webhooks/deliveries', {
    config: { scope: 'read' },
    schema: {
      tags, summary: 'What was told of ended runs, of the newest runs first', operationId: 'listDeliveries', querystring,
      response: { 200: json('A page of deliveries', pageOf(deliverySchema)), ...problems(422) },
    },
  }, async (request) => listDeliveries(context, tenantOf(request), request.query));

  app.post('/v1/webhooks/deliveries/:id/redeliver', {
    config: { scope: 'write' },
    schema: {
      tags, summary: 'Send a delivery again that has ended, or now where it waits for its next attempt', operationId: 'redeliver', params: z.object({ id: z.string().max(500) }),
      response: { 202: json('It is sent again, under the same id', deliverySchema), ...problems(400, 404, 409, 413, 415, 422) },
    },
    preValidation: takesNoFields,
  }, async (request, reply) => reply.code(202).send(await redeliver(context, tenantOf(request), request.params.id)));
}

async function listDeliveries(context: ApiContext, tenant: string, { status, run_id, limit, cursor }: Query): Promise<{ data: Delivery[]; next_cursor: string | null }> {
  const store = context.store();
  if (run_id !== undefined) {
    const found = isId('run', run_id) ? await store.delivery(run_id, tenant) : null;
    return { data: found !== null && (status === undefined || found.state === status) ? [viewOf(found)] : [], next_cursor: null };
  }
  const before_id = cursor === undefined ? null : decodeCursor(cursor);
  if (cursor !== undefined && (before_id === null || !isId('run', before_id))) throw invalidRequest([{ path: 'cursor', problem: 'not a cursor of this list' }]);
  const page = await store.deliveries({ tenant, state: status ?? null, before_id, limit });
  return { data: page.deliveries.map(viewOf), next_cursor: page.next_before_id === null ? null : encodeCursor(page.next_before_id) };
}

async function redeliver(context: ApiContext, tenant: string, id: string): Promise<Delivery> {
  const run_id = runOfWebhook(id);
  if (run_id === null) throw notFound();
  const store = context.store();
  const not_after_ms = await store.now() + context.settings.notAfterMs;
  const reply = await store.redeliver({ run_id, tenant, request_id: context.deps.random.uuid(), not_after_ms }).catch((error: unknown) => { throw unclear(error); });
  if (reply === 'missing') throw notFound();
  if (reply === 'too_late') throw unavailable('The store took too long; it is not sent again by this request.');
  if (reply === 'pending') throw new Problem({ status: 409, code: 'invalid_state', detail: 'It is being sent, or is about to be.' });
  const found = await store.delivery(run_id, tenant);
  if (found === null) throw notFound();
  return viewOf(found);
}

function viewOf({ run_id, target, state, attempts, last_attempt_ms, last_status, last_error, next_attempt_ms, created_ms }: StoredDelivery): Delivery {
  const iso = (ms: number | null): string | null => ms === null ? null : new Date(ms).toISOString();
  return {
    id: webhookId(run_id), run_id, url: 'url' in target ? shownAddress(target.url) : null, endpoint: 'endpoint' in target ? target.endpoint : null, status: state, attempts,
    last_attempt_at: iso(last_attempt_ms), last_status, last_error, next_attempt_at: iso(next_attempt_ms), created_at: new Date(created_ms).toISOString(),
  };
}

function unclear(error: unknown): unknown {
  if (!(error instanceof StoreUnavailable) || !error.sent) return error;
  return outcomeUnknown('The store did not say whether it is sent again. Look at the delivery, or ask again: a receiver tells repeats by their id.', error);
}
