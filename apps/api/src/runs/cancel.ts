/** POST /v1/runs/{id}/cancel: accepted through the run's inbox; the worker that holds the run, or the next one, carries it out. */
import { isEnded, type RunStatus } from '@treadle/core';
import type { RunView } from '@treadle/engine';
import type { ApiContext } from '../dependencies.ts';
import { notFound, outcomeUnknown, Problem, unavailable } from '../problem.ts';
import { StoreUnavailable } from '../store/unavailable.ts';
import { findRun, lookUp } from './find.ts';

/** The run as it is once the command is durable. */
export async function cancelRun(context: ApiContext, tenant: string, run_id: string): Promise<RunView> {
  const store = context.store();
  const { archive } = context.log;
  const found = await findRun({ store, archive }, tenant, run_id);
  if (isEnded(found.view.status)) throw ended(found.view.status);
  const not_after_ms = await store.now() + context.settings.notAfterMs;
  const reply = await store.command({ run_id, command_id: context.deps.random.uuid(), command: { type: 'cancel' }, not_after_ms })
    .catch((error: unknown) => { throw unclear(error); });
  switch (reply.type) {
    case 'accepted': {
      // It has been accepted: a look that fails must not turn that into an error.
      const now = await lookUp({ store, archive }, tenant, run_id).catch(() => null);
      return now?.view ?? found.view;
    }
    case 'invalid_state': throw ended(reply.status);
    case 'missing': throw notFound();
    case 'inbox_full':
      throw new Problem({ status: 429, code: 'rate_limited', detail: 'Too many commands wait for this run.', headers: { 'retry-after': '1' } });
    case 'too_late': throw unavailable('The store took too long; the run was not cancelled and will not be by this request.');
  }
}

function ended(status: RunStatus): Problem {
  return new Problem({ status: 409, code: 'invalid_state', detail: isEnded(status) ? `The run has ended (${status}).` : `The run (${status}) cannot be cancelled.` });
}

function unclear(error: unknown): unknown {
  if (!(error instanceof StoreUnavailable) || !error.sent) return error;
  return outcomeUnknown('The store did not say whether the command was accepted. Look at the run, or ask again: cancelling twice is harmless.');
}
