/**
 * POST /v1/runs/{id}/fork: a new run from a point of an old one's log, live, ended or archived.
 *
 * 1. The fork holds what was said up to there in its own log, so it outlives the old run, and no tool before that point is run again.
 * 2. It is made by the old run's agent as that was pinned; only chain, limits and input may be others.
 * 3. The same Idempotency-Key is the same fork, as for a new run.
 */
import { agentVersionOf } from '@treadle/config';
import { forAnotherRun, idIn, readTraceparent, shardOf, specOf, type AgentSpec, type RunState } from '@treadle/core';
import { createRun, forkPoint, runView, type NewRun, type RunView } from '@treadle/engine';
import { z } from 'zod';
import { tenantOf } from '../auth/authenticate.ts';
import type { ApiContext } from '../dependencies.ts';
import type { Problem } from '../problem.ts';
import { fieldsNotSupported, invalidRequest, notFound, outcomeUnknown, unavailable } from '../problem.ts';
import { json, problems, type ApiInstance } from '../server/api-types.ts';
import { bodyHashOf, usedWithAnotherBody } from '../server/idempotency.ts';
import { logAccepted } from '../server/log-requests.ts';
import { StoreUnavailable } from '../store/unavailable.ts';
import { namedLimits } from './command-schema.ts';
import { createDepsOf, refuseWhereFull } from './create.ts';
import { createHeaders, inputSchema, laterFieldsOf, limitsSchema, webhookSchema } from './create-schema.ts';
import { findRun, lookUp } from './find.ts';
import { chainNamed, checkImages, limitsWithin, webhookOf } from './fitting.ts';
import { runParams, runSchema } from './run-schema.ts';

const forkSchema = z.strictObject({
  after_seq: z.int().min(1).describe('The last event that counts. Inside a turn: the end of the turn before.'),
  input: inputSchema.optional().describe('What is said next; without it the model is asked again what it was asked last.'),
  chain: z.string().min(1).max(128).optional().describe('Another chain of the configuration.'),
  limits: limitsSchema.default({}).describe('Those named; the others are the old run\'s.'),
  webhook: webhookSchema,
});

interface AskedFork {
  readonly tenant: string;
  readonly run_id: string;
  readonly body: z.output<typeof forkSchema>;
  readonly rawBody: unknown;
  readonly idempotencyKey: string | undefined;
  readonly traceparent: string | null;
}

export function forkRoute(app: ApiInstance, context: ApiContext): void {
  app.post('/v1/runs/:run_id/fork', {
    config: { scope: 'write' },
    schema: {
      tags: ['runs'], summary: 'Go on from a point of a run, as a new run', operationId: 'forkRun', params: runParams, body: forkSchema, headers: createHeaders,
      response: { 200: json('The first fork of this Idempotency-Key', runSchema), 202: json('Accepted: the new run', runSchema), ...problems(400, 404, 409, 413, 415, 422) },
    },
    preValidation: async (request) => {
      const later = laterFieldsOf(request.body);
      if (later.length > 0) throw fieldsNotSupported(later);
    },
  }, async (request, reply) => {
    const { view, isNew } = await forkRun(context, {
      tenant: tenantOf(request), run_id: request.params.run_id, body: request.body, rawBody: request.rawBody, idempotencyKey: request.headers['idempotency-key'], traceparent: readTraceparent(request.headers.traceparent),
    });
    return reply.code(isNew ? 202 : 200).header('location', `/v1/runs/${view.id}`).send(view);
  });
}

async function forkRun(context: ApiContext, asked: AskedFork): Promise<{ view: RunView; isNew: boolean }> {
  const store = context.store();
  const { archive } = context.log;
  await findRun({ store, archive }, asked.tenant, asked.run_id);
  const run = await newRun(context, asked);
  const not_after_ms = await store.now() + context.settings.notAfterMs;
  const minted = idIn('run', shardOf(asked.run_id), context.deps.random.uuid());
  const run_id = await reservedId(store, asked, { minted, not_after_ms });
  const first = run_id === minted ? null : await lookUp({ store, archive }, asked.tenant, run_id);
  if (first !== null) return { view: first.view, isNew: false };
  refuseWhereFull(context);
  const { reply, state } = await createRun(createDepsOf(context, store), run, { run_id, not_after_ms }).catch((error: unknown) => {
    if (!(error instanceof StoreUnavailable) || !error.sent) throw error;
    throw outcomeUnknown('The store did not say whether the run was forked. Ask again with the same Idempotency-Key.', error);
  });
  if (reply.type === 'too_late') throw tooLate();
  if (reply.type === 'created') {
    context.deps.observe?.runCreated?.(run.spec.name);
    logAccepted(context.deps.logger, state);
  }
  return { view: runView(state, 0), isNew: reply.type === 'created' };
}

/** Everything that can be refused is refused here, before anything is written. */
async function newRun(context: ApiContext, { tenant, run_id, body, traceparent }: AskedFork): Promise<NewRun> {
  const { after_seq, input = null } = body;
  const { state, read_to } = await forkPoint(context.log, run_id, { after_seq, speaks: input !== null });
  if (read_to === 0) throw notFound();
  if (read_to < after_seq) throw invalidRequest([{ path: 'after_seq', problem: `beyond the end of the log, which is ${read_to}` }]);
  if (state === null) throw invalidRequest([{ path: 'after_seq', problem: 'nothing had been said by then; give an input, or a later point' }]);
  const spec = specFor(context, state, body.chain);
  if (input !== null) checkImages(spec, input);
  return {
    tenant, spec, agent_version: body.chain === undefined ? state.agent_version : agentVersionOf(spec),
    limits: limitsWithin(spec.limits, { ...state.limits, ...namedLimits(body.limits) }), input, metadata: state.metadata, tags: state.tags, priority: state.priority,
    run_at: null, traceparent, webhook: webhookOf(context, body.webhook), fork: { from_run_id: run_id, traceparent: state.traceparent, messages: state.transcript.messages.map(({ seq: _, ...message }) => forAnotherRun(message)) },
  };
}

function specFor(context: ApiContext, state: RunState, name: string | undefined): AgentSpec {
  if (name === undefined) return specOf(state);
  return { ...specOf(state), chain: chainNamed(context.deps, name) };
}

/** The key stands for this fork of this run. */
async function reservedId(store: ReturnType<ApiContext['store']>, asked: AskedFork, { minted, not_after_ms }: { readonly minted: string; readonly not_after_ms: number }): Promise<string> {
  if (asked.idempotencyKey === undefined) return minted;
  const body_hash = bodyHashOf(asked.rawBody);
  // A line break keeps it apart from keys of new runs, which hold printable characters alone.
  const reply = await store.reserveKey({ tenant: asked.tenant, key: `fork\n${asked.run_id}\n${asked.idempotencyKey}`, run_id: minted, body_hash, not_after_ms });
  if (reply.type === 'too_late') throw tooLate();
  if (reply.body_hash !== body_hash) throw usedWithAnotherBody();
  return reply.run_id;
}

function tooLate(): Problem {
  return unavailable('The store took too long; the run was not forked and will not be.');
}
