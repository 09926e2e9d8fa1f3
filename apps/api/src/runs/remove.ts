/**
 * DELETE /v1/runs/{id}: an ended run is removed everywhere.
 *
 * 1. Once it is answered, every request for the run is answered 410, whatever becomes of this process: the store has noted it.
 * 2. Nothing is removed from the archive here: that is the workers' duty, found again until it is done.
 * 3. Asked again, it answers as the first time.
 */
import { isEnded } from '@treadle/core';
import { z } from 'zod';
import { tenantOf } from '../auth/authenticate.ts';
import type { ApiContext } from '../dependencies.ts';
import { notFound, outcomeUnknown, Problem, unavailable } from '../problem.ts';
import { json, problems, takesNoFields, type ApiInstance } from '../server/api-types.ts';
import { StoreUnavailable } from '../store/unavailable.ts';
import { findRun, RunDeleted } from './find.ts';
import { runParams } from './run-schema.ts';

const deletedSchema = z.strictObject({ id: z.string(), deleted_at: z.string().describe('ISO 8601, UTC') });
type Deleted = z.output<typeof deletedSchema>;

export function removeRoute(app: ApiInstance, context: ApiContext): void {
  app.delete('/v1/runs/:run_id', {
    config: { scope: 'write' },
    schema: {
      tags: ['runs'], summary: 'Delete an ended run', operationId: 'deleteRun', params: runParams,
      response: { 202: json('Deleted: nobody can read it any more; its objects in the archive are being removed', deletedSchema), ...problems(400, 404, 409, 413, 415, 422) },
    },
    preValidation: takesNoFields,
  }, async (request, reply) => reply.code(202).send(await removeRun(context, tenantOf(request), request.params.run_id)));
}

async function removeRun(context: ApiContext, tenant: string, run_id: string): Promise<Deleted> {
  const store = context.store();
  try {
    const { view } = await findRun({ store, archive: context.log.archive }, tenant, run_id);
    if (!isEnded(view.status)) throw notEnded(view.status);
  } catch (error) {
    if (error instanceof RunDeleted) return { id: error.run_id, deleted_at: error.deleted_at };
    throw error;
  }
  const not_after_ms = await store.now() + context.settings.notAfterMs;
  const reply = await store.remove({ run_id, tenant, not_after_ms }).catch((error: unknown) => { throw unclear(error); });
  switch (reply.type) {
    case 'removed': return { id: run_id, deleted_at: new Date(reply.deleted_at_ms).toISOString() };
    case 'not_ended': throw notEnded(reply.status);
    case 'missing': throw notFound();
    case 'too_late': throw unavailable('The store took too long; the run was not deleted and will not be by this request.');
  }
}

function notEnded(status: string): Problem {
  return new Problem({ status: 409, code: 'invalid_state', detail: `The run has not ended (${status}). Cancel it first.` });
}

function unclear(error: unknown): unknown {
  if (!(error instanceof StoreUnavailable) || !error.sent) return error;
  return outcomeUnknown('The store did not say whether the run was deleted. Asking again is harmless.', error);
}
