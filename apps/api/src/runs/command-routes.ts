/** Commands to live runs: cancel, pause, resume, steer, words on calls, update. */
import type { FastifyRequest } from 'fastify';
import type { Command } from '@treadle/core';
import { actorOf, tenantOf } from '../auth/authenticate.ts';
import type { ApiContext } from '../dependencies.ts';
import { fieldsNotSupported } from '../problem.ts';
import { json, problems, takesNoFields, type ApiInstance } from '../server/api-types.ts';
import { decideCall } from './approvals.ts';
import { approvalSchema, commandHeaders, namedLimits, outcomeSchema, resumeSchema, steerSchema, updateSchema, type UpdateBody } from './command-schema.ts';
import { commandRun } from './commands.ts';
import { laterFieldsOf } from './create-schema.ts';
import { callParams, runParams, runSchema } from './run-schema.ts';

const config = { scope: 'write' } as const;

function described(operationId: string, summary: string, accepted: string) {
  return {
    tags: ['runs'], operationId, summary, params: runParams, headers: commandHeaders,
    response: { 202: json(`Accepted: ${accepted}`, runSchema), ...problems(400, 404, 409, 410, 413, 415, 422, 429) },
  };
}

export function commandRoutes(app: ApiInstance, context: ApiContext): void {
  const send = (request: CommandRequest, command: Command) => commandRun(context, {
    tenant: tenantOf(request), run_id: request.params.run_id, command, idempotencyKey: request.headers['idempotency-key'],
  });

  app.post('/v1/runs/:run_id/cancel', { config, schema: described('cancelRun', 'Cancel a run', 'the run will end as cancelled'), preValidation: takesNoFields },
    async (request, reply) => reply.code(202).send(await send(request, { type: 'cancel' })));

  app.post('/v1/runs/:run_id/pause', { config, schema: described('pauseRun', 'Pause a run', 'the run will pause at its next safe point'), preValidation: takesNoFields },
    async (request, reply) => reply.code(202).send(await send(request, { type: 'pause' })));

  app.post('/v1/runs/:run_id/resume', { config, schema: { ...described('resumeRun', 'Resume a paused run', 'the run goes on, on any worker'), body: resumeSchema }, preValidation: refuseLater },
    async (request, reply) => {
      const input = request.body?.input;
      return reply.code(202).send(await send(request, { type: 'resume', ...(input === undefined ? {} : { input }) }));
    });

  app.post('/v1/runs/:run_id/steer', { config, schema: { ...described('steerRun', 'Tell a live run something', 'the model will see it in its next turn'), body: steerSchema } },
    async (request, reply) => reply.code(202).send(await send(request, { type: 'steer', text: request.body.text })));

  const word = described('resolveCall', 'Say how a call in doubt went', 'the model gets it as the result of the call');
  app.post('/v1/runs/:run_id/ledger/:tool_use_id', { config, schema: { ...word, params: callParams, body: outcomeSchema } },
    async (request, reply) => {
      const { outcome, content } = request.body;
      return reply.code(202).send(await send(request, {
        type: 'outcome', tool_use_id: request.params.tool_use_id, outcome, by: actorOf(request), ...(content === undefined ? {} : { content }),
      }));
    });

  const decision = described('decideCall', 'Approve of a call that waits, or deny it', 'the first decision counts; when each call of the reply that needs one has it, the run goes on');
  app.post('/v1/runs/:run_id/approvals/:tool_use_id', { config, schema: { ...decision, params: callParams, body: approvalSchema } },
    async (request, reply) => {
      const { params: { run_id, tool_use_id }, body } = request;
      return reply.code(202).send(await decideCall(context, { tenant: tenantOf(request), run_id, tool_use_id, body, by: actorOf(request), idempotencyKey: request.headers['idempotency-key'] }));
    });

  app.patch('/v1/runs/:run_id', { config, schema: { ...described('updateRun', 'Change a live run', 'the change holds from the next decision on'), body: updateSchema }, preValidation: refuseLater },
    async (request, reply) => reply.code(202).send(await send(request, updateOf(request.body, actorOf(request)))));
}

interface CommandRequest extends FastifyRequest {
  readonly params: { readonly run_id: string };
  readonly headers: FastifyRequest['headers'] & { readonly 'idempotency-key'?: string | undefined };
}

function updateOf({ metadata, tags, limits }: UpdateBody, by: string): Command {
  return {
    type: 'update', by, ...(metadata === undefined ? {} : { metadata }), ...(tags === undefined ? {} : { tags: [...new Set(tags)] }),
    ...(limits === undefined ? {} : { limits: namedLimits(limits) }),
  };
}

async function refuseLater(request: FastifyRequest): Promise<void> {
  const later = laterFieldsOf(request.body);
  if (later.length > 0) throw fieldsNotSupported(later);
}
