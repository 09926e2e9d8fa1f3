/**
 * POST /v1/runs: a run is accepted, once per idempotency key.
 *
 * 1. A key is reserved for a minted run id before the run is created; whoever holds the key completes that very id, so a
 *    request that died half-way is finished by its repeat and never doubled.
 * 2. A reserved id whose run has been archived and has left the store is answered from the archive, not created again.
 * 3. Nothing happens after `not_after`, by the store's clock. 503 `unavailable` is answered only where nothing was sent that
 *    could create the run; else `outcome_unknown`.
 */
import { createHash } from 'node:crypto';
import { canonicalJson } from '@treadle/core';
import { createRun, mintRunId, runView, type NewRun, type RunDirectory, type RunView } from '@treadle/engine';
import type { ApiContext } from '../dependencies.ts';
import { outcomeUnknown, Problem, unavailable } from '../problem.ts';
import { StoreUnavailable } from '../store/unavailable.ts';
import { namedLimits } from './command-schema.ts';
import type { CreateRunBody } from './create-schema.ts';
import { lookUp } from './find.ts';
import { checkImages, limitsWithin } from './fitting.ts';

export interface AskedRun {
  readonly tenant: string;
  readonly body: CreateRunBody;
  /** The body before defaults: a key is compared by what was sent, so that new defaults do not turn a repeat into a conflict. */
  readonly rawBody: unknown;
  readonly idempotencyKey: string | undefined;
}

export interface AcceptedRun { readonly view: RunView; readonly isNew: boolean }

export async function acceptRun(context: ApiContext, asked: AskedRun): Promise<AcceptedRun> {
  const run = newRun(context, asked);
  const store = context.store();
  const not_after_ms = await store.now() + context.settings.notAfterMs;
  const minted = mintRunId({ random: context.deps.random, shards: context.settings.shards });
  if (asked.idempotencyKey === undefined) return complete(context, { store, run, run_id: minted, not_after_ms });

  const body_hash = createHash('sha256').update(canonicalJson(asked.rawBody)).digest('hex');
  const key = await store.reserveKey({ tenant: asked.tenant, key: asked.idempotencyKey, run_id: minted, body_hash, not_after_ms });
  if (key.type === 'too_late') throw tooLate();
  if (key.type === 'held') {
    if (key.body_hash !== body_hash) {
      throw new Problem({ status: 409, code: 'idempotency_conflict', detail: 'This Idempotency-Key was used with another body.' });
    }
    const first = await lookUp({ store, archive: context.log.archive }, asked.tenant, key.run_id);
    if (first !== null) return { view: first.view, isNew: false };
  }
  return complete(context, { store, run, run_id: key.run_id, not_after_ms });
}

interface Creation { readonly store: RunDirectory; readonly run: NewRun; readonly run_id: string; readonly not_after_ms: number }

async function complete(context: ApiContext, creation: Creation): Promise<AcceptedRun> {
  const { store, run, run_id, not_after_ms } = creation;
  const { clock, random } = context.deps;
  const { reply, state } = await createRun({ store, clock, random, shards: context.settings.shards }, run, { run_id, not_after_ms })
    .catch((error: unknown) => { throw unclear(error); });
  switch (reply.type) {
    case 'created':
      context.deps.observe?.runCreated?.(run.spec.name);
      return { view: runView(state, 0), isNew: true };
    case 'exists': return { view: await existing(context, creation), isNew: false };
    case 'too_late': throw tooLate();
  }
}

/** Somebody with the same key was quicker. */
async function existing(context: ApiContext, { store, run, run_id }: Creation): Promise<RunView> {
  const found = await lookUp({ store, archive: context.log.archive }, run.tenant, run_id).catch((error: unknown) => { throw unclear(error); });
  if (found === null) throw new Problem({ status: 500, code: 'internal', detail: 'The run exists and cannot be found.' });
  return found.view;
}

function unclear(error: unknown): unknown {
  if (!(error instanceof StoreUnavailable) || !error.sent) return error;
  return outcomeUnknown('The store did not say whether the run was created. Ask again with the same Idempotency-Key.');
}

function tooLate(): Problem {
  return unavailable('The store took too long; the run was not created and will not be.');
}

/** Everything that can be refused is refused here, before anything is written. */
function newRun(context: ApiContext, { tenant, body }: AskedRun): NewRun {
  const offered = context.deps.agents.get(body.agent ?? context.settings.defaultAgent);
  if (offered === null) throw new Problem({ status: 404, code: 'agent_not_found', detail: 'No agent has this name.', errors: [{ path: 'agent', problem: 'unknown agent' }] });
  const limits = limitsWithin(offered.spec.limits, namedLimits(body.limits));
  checkImages(offered.spec, body.input);
  return {
    tenant, spec: offered.spec, agent_version: offered.version, limits, input: body.input, metadata: body.metadata,
    tags: [...new Set(body.tags)], priority: body.priority, run_at: body.run_at === undefined ? null : new Date(body.run_at).toISOString(),
  };
}
