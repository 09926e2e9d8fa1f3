/**
 * POST /v1/runs: a run is accepted, once per idempotency key.
 *
 * 1. A key is reserved for a minted run id before the run is created; whoever holds the key completes that very id, so a
 *    request that died half-way is finished by its repeat and never doubled.
 * 2. A reserved id whose run has been archived and has left the store is answered from the archive, not created again.
 * 3. Nothing happens after `not_after`, by the store's clock. 503 `unavailable` is answered only where nothing was sent that
 *    could create the run; else `outcome_unknown`.
 */
import { agentVersionOf } from '@treadle/config';
import { idIn, isEnded, shardOf, type Content } from '@treadle/core';
import { createRun, mintRunId, runView, type CreateDeps, type NewRun, type RunDirectory, type RunView } from '@treadle/engine';
import type { ApiContext } from '../dependencies.ts';
import { invalidRequest, outcomeUnknown, Problem, unavailable } from '../problem.ts';
import { bodyHashOf, usedWithAnotherBody } from '../server/idempotency.ts';
import { logAccepted } from '../server/log-requests.ts';
import { StoreUnavailable } from '../store/unavailable.ts';
import { namedLimits } from './command-schema.ts';
import type { CreateRunBody } from './create-schema.ts';
import { commandRun } from './commands.ts';
import { lookUp, RunDeleted } from './find.ts';
import { chainNamed, checkImages, limitsWithin, webhookOf } from './fitting.ts';

export interface AskedRun {
  readonly tenant: string;
  readonly body: CreateRunBody;
  /** The body before defaults: a key is compared by what was sent, so that new defaults do not turn a repeat into a conflict. */
  readonly rawBody: unknown;
  readonly idempotencyKey: string | undefined;
  /** The trace of whoever asks; null where it is not said, or not validly. */
  readonly traceparent: string | null;
}

export interface AcceptedRun { readonly view: RunView; readonly isNew: boolean }

export async function acceptRun(context: ApiContext, asked: AskedRun): Promise<AcceptedRun> {
  const run = newRun(context, asked);
  const store = context.store();
  const not_after_ms = await store.now() + context.settings.notAfterMs;
  const minted = mintId(context, asked.body.session_id);
  const { on_busy } = asked.body;
  if (asked.idempotencyKey === undefined) return complete(context, { store, run, run_id: minted, not_after_ms, on_busy });

  const body_hash = bodyHashOf(asked.rawBody);
  const key = await store.reserveKey({ tenant: asked.tenant, key: asked.idempotencyKey, run_id: minted, body_hash, not_after_ms });
  if (key.type === 'too_late') throw tooLate();
  if (key.type === 'held') {
    if (key.body_hash !== body_hash) {
      throw usedWithAnotherBody();
    }
    const first = await lookUp({ store, archive: context.log.archive }, asked.tenant, key.run_id);
    if (first !== null) return { view: first.view, isNew: false };
    const steered = on_busy === 'steer' ? await steeredBefore(context, { store, run, run_id: key.run_id, not_after_ms, on_busy }) : null;
    if (steered !== null) return { view: steered, isNew: false };
  }
  return complete(context, { store, run, run_id: key.run_id, not_after_ms, on_busy });
}

/** A session's runs lie in its shard, so that one script can see them all. */
function mintId({ deps: { random }, settings: { shards } }: ApiContext, session_id: string | undefined): string {
  return session_id === undefined ? mintRunId({ random, shards }) : idIn('run', shardOf(session_id), random.uuid());
}

interface Creation { readonly store: RunDirectory; readonly run: NewRun; readonly run_id: string; readonly not_after_ms: number; readonly on_busy: CreateRunBody['on_busy'] }

async function complete(context: ApiContext, creation: Creation): Promise<AcceptedRun> {
  const { store, run, run_id, not_after_ms } = creation;
  refuseWhereFull(context);
  const { reply, state } = await createRun(createDepsOf(context, store), run, { run_id, not_after_ms })
    .catch((error: unknown) => { throw unclear(error); });
  switch (reply.type) {
    case 'created':
      context.deps.observe?.runCreated?.(run.spec.name);
      logAccepted(context.deps.logger, state);
      if (reply.behind !== null && creation.on_busy === 'interrupt') await interrupt(context, run.tenant, reply.behind);
      return { view: runView(state, 0), isNew: true };
    case 'session_missing': throw new Problem({ status: 404, code: 'not_found', detail: 'There is no such session, or it is not yours.', errors: [{ path: 'session_id', problem: 'unknown session' }] });
    case 'session_busy':
      if (creation.on_busy === 'steer') return steerInstead(context, creation, reply.run_id);
      throw new Problem({ status: 409, code: 'session_busy', detail: `The session is busy with ${reply.run_id}. Wait for it, or say in on_busy what shall happen.` });
    case 'exists': return { view: await existing(context, creation), isNew: false };
    case 'too_late': throw tooLate();
    case 'fenced': throw new Error('a run without a parent was refused for its parent');
  }
}

/** Throws the 503 `Problem` where no new run is taken. */
export function refuseWhereFull({ deps }: ApiContext): void {
  const why = deps.full?.() ?? null;
  if (why !== null) throw unavailable(why);
}

export function createDepsOf({ deps: { clock, random, arms, tracer }, settings: { shards } }: ApiContext, store: RunDirectory): CreateDeps {
  return { store, clock, random, shards, ...(arms === undefined ? {} : { arms }), ...(tracer === undefined ? {} : { tracer }) };
}

/** The run in front is cancelled; one that has ended meanwhile was in nobody's way. */
async function interrupt(context: ApiContext, tenant: string, run_id: string): Promise<void> {
  await commandRun(context, { tenant, run_id, command: { type: 'cancel' }, idempotencyKey: undefined }).catch((error: unknown) => {
    if (!(error instanceof Problem && error.code === 'invalid_state')) throw error;
  });
}

/** Of a session: how far back a repeat is looked for. */
const mostBefore = 50;

/**
 * The run that took the text when this request came first, and has ended since: without it the repeat would begin a run of its own with a
 * text that was heard already. A command is remembered by its id, and for an ended run only that can come of asking again.
 */
async function steeredBefore(context: ApiContext, { store, run, run_id: minted, not_after_ms }: Creation): Promise<RunView | null> {
  const { session_id = null, tenant, input } = run;
  if (session_id === null) return null;
  const { run_ids } = await store.list({ tenant, session_id, status: null, agent: null, tag: null, before_id: null, limit: mostBefore });
  for (const run_id of run_ids) {
    const found = await lookUp({ store, archive: context.log.archive }, tenant, run_id).catch(unlessDeleted);
    if (found === null || found.from !== 'store' || !isEnded(found.view.status)) continue;
    const reply = await store.command({ run_id, command_id: steeringId(minted), command: { type: 'steer', text: textOf(input ?? '') }, not_after_ms });
    if (reply.type === 'accepted') return found.view;
  }
  return null;
}

function unlessDeleted(error: unknown): null {
  if (error instanceof RunDeleted) return null;
  throw error;
}

function steeringId(minted: string): string {
  return `steer-${minted}`;
}

/** The text reaches the run under way; the same request sent again is the same command. */
async function steerInstead(context: ApiContext, { run, run_id: minted }: Creation, current: string): Promise<AcceptedRun> {
  const view = await commandRun(context, {
    tenant: run.tenant, run_id: current, command: { type: 'steer', text: textOf(run.input ?? '') }, idempotencyKey: undefined, commandId: steeringId(minted),
  });
  return { view, isNew: true };
}

function textOf(input: Content): string {
  if (typeof input === 'string') return input;
  if (input.some((part) => part.type === 'image')) throw invalidRequest([{ path: 'input', problem: 'a steering text has no images' }]);
  return input.map((part) => part.type === 'text' ? part.text : '').join('\n');
}

/** Somebody with the same key was quicker. */
async function existing(context: ApiContext, { store, run, run_id }: Creation): Promise<RunView> {
  const found = await lookUp({ store, archive: context.log.archive }, run.tenant, run_id).catch((error: unknown) => { throw unclear(error); });
  if (found === null) throw new Problem({ status: 500, code: 'internal', detail: 'The run exists and cannot be found.' });
  return found.view;
}

function unclear(error: unknown): unknown {
  if (!(error instanceof StoreUnavailable) || !error.sent) return error;
  return outcomeUnknown('The store did not say whether the run was created. Ask again with the same Idempotency-Key.', error);
}

function tooLate(): Problem {
  return unavailable('The store took too long; the run was not created and will not be.');
}

/** Everything that can be refused is refused here, before anything is written. */
export function newRun(context: ApiContext, { tenant, body, traceparent }: Pick<AskedRun, 'tenant' | 'body' | 'traceparent'>): NewRun {
  const { defaultAgent } = context.settings;
  const offered = context.deps.agents.get(body.agent ?? defaultAgent);
  if (offered === null && body.agent === undefined) throw invalidRequest([{ path: 'agent', problem: `is missing, and there is no agent "${defaultAgent}" to take its place; GET /v1/agents lists those there are` }]);
  if (offered === null) throw new Problem({ status: 404, code: 'agent_not_found', detail: 'No agent has this name.', errors: [{ path: 'agent', problem: 'unknown agent' }] });
  const limits = limitsWithin(offered.spec.limits, namedLimits(body.limits));
  const spec = body.chain === undefined ? offered.spec : { ...offered.spec, chain: chainNamed(context.deps, body.chain) };
  checkImages(spec, body.input);
  return {
    tenant, spec, agent_version: body.chain === undefined ? offered.version : agentVersionOf(spec), limits, input: body.input, metadata: body.metadata,
    tags: [...new Set(body.tags)], priority: body.priority, run_at: body.run_at === undefined ? null : new Date(body.run_at).toISOString(),
    session_id: body.session_id ?? null, when_busy: body.on_busy === 'queue' || body.on_busy === 'interrupt' ? 'queue' : 'reject', traceparent, webhook: webhookOf(context, body.webhook),
  };
}
