/**
 * /v1/keys: API keys for tenants.
 *
 * 1. A key is answered once, when it is made; the store has its hash alone, and no list shows either.
 * 2. An admin manages the keys of his tenant; one of the tenant `default` those of all. Other tenants' keys are not there (404).
 */
import { randomBytes } from 'node:crypto';
import type { IssuedKey } from '@treadle/engine';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { actorOf, tenantOf } from '../auth/authenticate.ts';
import { hashOf } from '../auth/issued-keys.ts';
import { scopes } from '../auth/keys.ts';
import type { ApiContext } from '../dependencies.ts';
import { invalidRequest, notFound, outcomeUnknown, Problem, unavailable } from '../problem.ts';
import { decodeCursor, encodeCursor, json, pageLimit, pageOf, problems, takesNoFields, type ApiInstance } from '../server/api-types.ts';
import { StoreUnavailable } from '../store/unavailable.ts';

const tags = ['keys'];
/** Whose admins manage everybody's keys. */
const ruling = 'default';
/** Of one tenant. */
const mostKeys = 1000;
const idForm = /^key_[0-9a-f]{32}$/;

const tenantName = z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/, 'expected 1 to 64 letters, digits, "_", "-" or "."');
const params = z.object({ key_id: z.string().max(500) });
const listQuery = z.strictObject({ tenant: tenantName.optional(), limit: pageLimit.default(50), cursor: z.string().max(200).optional() });

const createKeySchema = z.strictObject({
  tenant: tenantName.optional().describe('Whose key it is. Default: the tenant of the key that asks.'),
  scopes: z.array(z.enum(scopes)).min(1).max(scopes.length).default(['read', 'write']).describe('`admin` implies the others; `write` does not imply `read`.'),
  name: z.string().min(1).max(200).nullish().describe('For people: what it is for.'),
  expires_at: z.iso.datetime({ offset: true }).nullish().describe('Null: never.'),
});

const keySchema = z.strictObject({
  id: z.string(), tenant: z.string(), scopes: z.array(z.enum(scopes)), name: z.string().nullable(), created_at: z.string().describe('ISO 8601, UTC'), expires_at: z.string().nullable(),
});
const newKeySchema = keySchema.extend({ key: z.string().describe('The key itself: shown this once.') });

type CreateKeyBody = z.output<typeof createKeySchema>;
type KeyView = z.output<typeof keySchema>;

export function keyRoutes(app: ApiInstance, context: ApiContext): void {
  app.post('/v1/keys', {
    config: { scope: 'admin' },
    schema: {
      tags, summary: 'Issue an API key', operationId: 'createKey', body: createKeySchema,
      response: { 201: json('The key; it is durable, and shown this once', newKeySchema), ...problems(400, 413, 415, 422, 429) },
    },
  }, async (request, reply) => reply.code(201).send(await issue(context, request, request.body)));

  app.get('/v1/keys', {
    config: { scope: 'admin' },
    schema: { tags, summary: 'API keys that were issued here, newest first', operationId: 'listKeys', querystring: listQuery, response: { 200: json('A page', pageOf(keySchema)), ...problems(422) } },
  }, async (request) => {
    const { tenant, limit, cursor } = request.query;
    const before_id = cursor === undefined ? null : decodeCursor(cursor);
    if (cursor !== undefined && (before_id === null || !idForm.test(before_id))) throw invalidRequest([{ path: 'cursor', problem: 'not a cursor of this list' }]);
    const { keys, next_before_id } = await context.keys().list({ tenant: tenant === undefined && rules(request) ? null : managed(request, tenant), before_id, limit });
    return { data: keys.map(viewOf), next_cursor: next_before_id === null ? null : encodeCursor(next_before_id) };
  });

  app.delete('/v1/keys/:key_id', {
    config: { scope: 'admin' },
    schema: {
      tags, summary: 'Revoke an API key', operationId: 'deleteKey', params,
      response: { 200: json('Revoked: within two seconds no process takes it any more', z.strictObject({ id: z.string(), revoked: z.literal(true) })), ...problems(400, 404, 413, 415, 422) },
    },
    preValidation: takesNoFields,
  }, async (request) => revoke(context, request, request.params.key_id));
}

async function issue(context: ApiContext, request: FastifyRequest, body: CreateKeyBody): Promise<z.output<typeof newKeySchema>> {
  const { deps: { random, clock, logger }, settings } = context;
  const tenant = managed(request, body.tenant);
  const expires_at_ms = body.expires_at === null || body.expires_at === undefined ? null : Date.parse(body.expires_at);
  if (expires_at_ms !== null && expires_at_ms <= clock.nowMs()) throw invalidRequest([{ path: 'expires_at', problem: 'expected a time to come' }]);
  const token = newToken();
  const key = { id: `key_${random.uuid().replaceAll('-', '')}`, key_sha256: hashOf(token), tenant, scopes: [...new Set(body.scopes)], name: body.name ?? null, expires_at_ms };
  const not_after_ms = await context.store().now() + settings.notAfterMs;
  const reply = await context.keys().issue({ ...key, not_after_ms, most: mostKeys }).catch((error: unknown) => {
    throw error instanceof StoreUnavailable && error.sent ? outcomeUnknown('The store did not say whether the key was made. Nobody has it: look for it in the list by its name, revoke it, and ask again.', error) : error;
  });
  switch (reply.type) {
    case 'issued':
      logger?.info({ key_id: key.id, tenant, scopes: key.scopes, by: actorOf(request) }, 'API key issued');
      return { ...viewOf({ ...key, created_at_ms: reply.created_at_ms }), key: token };
    case 'too_many': throw new Problem({ status: 429, code: 'quota_exceeded', detail: `There are ${mostKeys} keys; revoke one that is not needed any more.` });
    case 'too_late': throw unavailable('The store took too long; no key was made and none will be.');
    case 'taken': throw new TypeError('two keys of 256 random bits have one hash');
  }
}

async function revoke(context: ApiContext, request: FastifyRequest, id: string) {
  const { deps: { logger }, issuedKeys, settings } = context;
  const directory = context.keys();
  const key = idForm.test(id) ? await directory.get(id) : null;
  if (key === null || (key.tenant !== tenantOf(request) && !rules(request))) throw notFound();
  const not_after_ms = await context.store().now() + settings.notAfterMs;
  const reply = await directory.revoke({ id, tenant: key.tenant, not_after_ms }).catch((error: unknown) => {
    throw error instanceof StoreUnavailable && error.sent ? outcomeUnknown('The store did not say whether the key was revoked. Ask again: 404 means that it is.', error) : error;
  });
  issuedKeys.forget(key.key_sha256);
  if (reply === 'missing') throw notFound();
  if (reply === 'too_late') throw unavailable('The store took too long; the key was not revoked by this request.');
  logger?.info({ key_id: id, tenant: key.tenant, by: actorOf(request) }, 'API key revoked');
  return { id, revoked: true as const };
}

function rules(request: FastifyRequest): boolean {
  return tenantOf(request) === ruling;
}

/** The tenant whose keys are meant. Throws the 403 `Problem` where they are not the asker's to manage. */
function managed(request: FastifyRequest, tenant: string | undefined): string {
  const own = tenantOf(request);
  if (tenant !== undefined && tenant !== own && !rules(request)) {
    throw new Problem({ status: 403, code: 'forbidden', detail: `Only an admin of the tenant "${ruling}" manages the keys of other tenants.` });
  }
  return tenant ?? own;
}

/** 256 random bits. */
function newToken(): string {
  return `tk_${randomBytes(32).toString('base64url')}`;
}

function viewOf({ id, tenant, scopes: held, name, created_at_ms, expires_at_ms }: IssuedKey): KeyView {
  return { id, tenant, scopes: [...held], name, created_at: new Date(created_at_ms).toISOString(), expires_at: expires_at_ms === null ? null : new Date(expires_at_ms).toISOString() };
}
