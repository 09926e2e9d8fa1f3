/**
 * GET /v1/breakers, POST /v1/breakers/{id}: what the fleet does not ask now, and a person's word on it.
 *
 * 1. Breakers and benches belong to the installation, not to a tenant: every key may look, `admin` changes.
 * 2. What is forced open stays open until it is reset; what is reset is asked again at once, and may open again by itself.
 */
import { errorTypes, type ErrorType } from '@treadle/core';
import type { Bench, OpenBreaker } from '@treadle/engine';
import { z } from 'zod';
import type { ApiContext } from '../dependencies.ts';
import { invalidRequest, outcomeUnknown, Problem } from '../problem.ts';
import { json, pageOf, problems, type ApiInstance } from '../server/api-types.ts';
import { guardedFleet } from '../store/guarded-store.ts';
import { StoreUnavailable } from '../store/unavailable.ts';

const tags = ['breakers'];
const querystring = z.strictObject({});
const idParams = z.object({ id: z.string().max(500) });

const kindSchema = z.enum(['breaker', 'bench']).describe('`bench`: not asked until `probe_at`, then as usual.');
const entrySchema = z.strictObject({
  id: z.string(), kind: kindSchema, breaker: z.string().describe('Whom it is about: `model:<name>`, `host:<host:port>`, `credential:<fingerprint>`.'),
  error_type: z.enum(errorTypes), state: z.enum(['closed', 'half_open', 'open']).describe('`half_open`: a probe may be sent.'), forced: z.boolean(),
  opened_at: z.string().nullable().describe('ISO 8601, UTC'), probe_at: z.string().nullable().describe('When it is asked again; null: when a person resets it.'),
  openings: z.int().describe('How often in a row a breaker has opened; 0 for a bench.'),
});
type Entry = z.output<typeof entrySchema>;

const changedSchema = z.strictObject({ id: z.string(), kind: kindSchema, state: z.enum(['closed', 'open']), forced: z.boolean() });
type Changed = z.output<typeof changedSchema>;

export function breakerRoutes(app: ApiInstance, context: ApiContext): void {
  const fleet = () => guardedFleet(context.deps.fleet, { callTimeoutMs: context.settings.callTimeoutMs, budgetMs: context.settings.requestBudgetMs });

  app.get('/v1/breakers', {
    config: { scope: 'read' },
    schema: { tags, summary: 'Open breakers and benches', operationId: 'listBreakers', querystring, response: { 200: json('All that are open or benched', pageOf(entrySchema)), ...problems(422) } },
  }, async () => {
    const { now_ms, breakers, benches } = await fleet().exchange([]);
    const data = [...breakers.map((each) => ofBreaker(each, now_ms)), ...benches.map(ofBench)];
    return { data: data.sort((one, other) => (one.id < other.id ? -1 : 1)), next_cursor: null };
  });

  app.post('/v1/breakers/:id', {
    config: { scope: 'admin' },
    schema: {
      tags, summary: 'Force a breaker open, or reset a breaker or a bench', operationId: 'changeBreaker', params: idParams,
      body: z.strictObject({ action: z.enum(['open', 'reset']) }), response: { 200: json('It is so for the whole fleet', changedSchema), ...problems(400, 404, 413, 415, 422) },
    },
  }, async (request) => {
    const { id } = request.params;
    const act = request.body.action === 'open' ? forceOpen : reset;
    return act(fleet(), id).catch((error: unknown) => { throw unclear(error); });
  });
}

type Fleet = ApiContext['deps']['fleet'];

async function forceOpen(fleet: Fleet, id: string): Promise<Changed> {
  const { target, error_type } = breakerOf(id);
  await fleet.open({ target, error_type, for_ms: 0, forced: true });
  return { id, kind: 'breaker', state: 'open', forced: true };
}

async function reset(fleet: Fleet, id: string): Promise<Changed> {
  const kind = await fleet.close(id) ? 'breaker' : await fleet.unbench(id) ? 'bench' : null;
  if (kind === null) throw new Problem({ status: 404, code: 'not_found', detail: 'No breaker or bench of this id is open.' });
  return { id, kind, state: 'closed', forced: false };
}

/** Throws the 422 `Problem` for what no breaker can be called. Letters beyond ASCII may stand in names. */
function breakerOf(id: string): { readonly target: string; readonly error_type: ErrorType } {
  const [, target, type] = /^((?:model|host):[^\s\p{Cc}]+):([a-z_]+)$/u.exec(id) ?? [];
  const error_type = errorTypes.find((each) => each === type);
  if (target === undefined || error_type === undefined) {
    throw invalidRequest([{ path: 'id', problem: `expected model:<name>:<error_type> or host:<host:port>:<error_type>, error_type being one of ${errorTypes.join(', ')}` }]);
  }
  return { target, error_type };
}

function ofBreaker({ id, target, error_type, opened_at_ms, probe_at_ms, openings, forced }: OpenBreaker, now_ms: number): Entry {
  return {
    id, kind: 'breaker', breaker: target, error_type, state: forced || now_ms < probe_at_ms ? 'open' : 'half_open', forced,
    opened_at: new Date(opened_at_ms).toISOString(), probe_at: forced ? null : new Date(probe_at_ms).toISOString(), openings,
  };
}

function ofBench({ target, reason, until_ms }: Bench): Entry {
  return { id: target, kind: 'bench', breaker: target, error_type: reason, state: 'open', forced: false, opened_at: null, probe_at: new Date(until_ms).toISOString(), openings: 0 };
}

function unclear(error: unknown): unknown {
  if (!(error instanceof StoreUnavailable) || !error.sent) return error;
  return outcomeUnknown('The store did not say whether this happened. Look at the breakers, or ask again: that is harmless.', error);
}
