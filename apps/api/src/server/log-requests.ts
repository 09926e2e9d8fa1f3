/** One line for each request that was answered: which route, how, for whom. Never an address as it was sent, a header or a body. */
import { isId, readTraceparent, traceIdOf, type RunState } from '@treadle/core';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ApiLogger } from '../dependencies.ts';

export function logRequests(app: FastifyInstance, logger: ApiLogger | undefined): void {
  if (logger === undefined) return;
  app.addHook('onResponse', async (request, reply) => {
    const fields = { request_id: request.id, method: request.method, route: request.routeOptions.url ?? 'none', status: reply.statusCode, ms: Math.round(reply.elapsedTime), ...asker(request) };
    // Probes and scrapes come every few seconds.
    if (request.principal === null && reply.statusCode < 400) logger.debug(fields, 'request');
    else logger.info(fields, 'request');
  });
}

/** Of a run that was accepted: from here on its id finds its trace. */
export function logAccepted(logger: ApiLogger | undefined, { run_id, tenant, agent, traceparent }: RunState): void {
  logger?.info({ run_id, tenant, agent, ...(traceparent === null ? {} : { trace_id: traceIdOf(traceparent) }) }, 'run accepted');
}

function asker(request: FastifyRequest): Record<string, string> {
  const { run_id } = (request.params ?? {}) as { readonly run_id?: unknown };
  const traceparent = readTraceparent(request.headers.traceparent);
  return {
    ...(request.principal === null ? {} : { tenant: request.principal.tenant }), ...(traceparent === null ? {} : { trace_id: traceIdOf(traceparent) }),
    ...(typeof run_id === 'string' && isId('run', run_id) ? { run_id } : {}),
  };
}
