/**
 * The HTTP API, wired from what it is given. Binds no port and reads no environment: the composition root does.
 *
 * Owns: the open streams. Everything else of a request lives and ends with it.
 * 1. Every answer that is an error is a problem of the contract (server/answer-errors.ts).
 * 2. Every lookup asks for the owner (runs/find.ts); the owner comes from the key (auth/authenticate.ts).
 * 3. Every call to the store is bounded (store/guarded-store.ts).
 * 4. `close()` takes no new requests, ends event streams cleanly and answers waits, then closes (server/close-connections.ts).
 */
import Fastify, { type FastifyReply } from 'fastify';
import { agentRoutes } from './agents/routes.ts';
import { authenticate } from './auth/authenticate.ts';
import { IssuedKeys } from './auth/issued-keys.ts';
import { breakerRoutes } from './breakers/routes.ts';
import { chainRoutes } from './chains/routes.ts';
import { settingsOf, type ApiContext, type ApiDeps, type ApiOptions } from './dependencies.ts';
import { createOpenStreams } from './events/open-streams.ts';
import { eventRoutes } from './events/routes.ts';
import { keyRoutes } from './keys/routes.ts';
import { homeRoute } from './operations/home.ts';
import { describeRoutes, openApiRoute } from './operations/openapi.ts';
import { operationRoutes } from './operations/routes.ts';
import { Problem } from './problem.ts';
import { commandRoutes } from './runs/command-routes.ts';
import { removeRoute } from './runs/remove.ts';
import { runRoutes } from './runs/routes.ts';
import { transcriptRoutes } from './runs/transcript-routes.ts';
import { answerClientError, answerErrors, answerExpectation, answerFrameworkError } from './server/answer-errors.ts';
import { refuseUnknownQueries, useZod, type ApiInstance, type ZodTypes } from './server/api-types.ts';
import { logRequests } from './server/log-requests.ts';
import { scheduleRoutes } from './schedules/routes.ts';
import { sessionRoutes } from './sessions/routes.ts';
import { closesConnections } from './server/close-connections.ts';
import { acceptJsonBodies } from './server/json-body.ts';
import { queueRoutes } from './queues/routes.ts';
import { usageRoutes } from './usage/routes.ts';
import { webhookRoutes } from './webhooks/routes.ts';
import { workerRoutes } from './workers/routes.ts';
import { guardedArchive, guardedKeys, guardedSchedules, guardedStore } from './store/guarded-store.ts';

/** A fastify instance to `listen` with, or to `inject` into. */
export function createApiServer(deps: ApiDeps, options: ApiOptions): ApiInstance {
  const context = contextOf(deps, options);
  const app = Fastify({
    logger: false,
    routerOptions: { maxParamLength: 500 },
    bodyLimit: context.settings.maxBodyBytes,
    exposeHeadRoutes: true,
    return503OnClosing: false,
    requestTimeout: context.settings.requestTimeoutMs,
    keepAliveTimeout: 72_000,
    // Node looks for late requests this often, by default only every 30 s. A missing Host is answered here, with a problem.
    http: { headersTimeout: context.settings.requestTimeoutMs, connectionsCheckingInterval: 1000, requireHostHeader: false },
    frameworkErrors: (error, _request, reply) => answerFrameworkError(error, reply as FastifyReply),
    clientErrorHandler: answerClientError,
  });
  app.server.on('checkExpectation', answerExpectation);
  answerErrors(app, deps.logger);
  logRequests(app, deps.logger);
  useZod(app);
  refuseUnknownQueries(app);
  checkFirst(app.withTypeProvider<ZodTypes>(), context);
  authenticate(app, context);
  acceptJsonBodies(app, context.settings.maxBodyBytes);
  describeRoutes(app, context.settings.version);
  void app.register(async (instance) => {
    const api = instance.withTypeProvider<ZodTypes>();
    operationRoutes(api, context);
    openApiRoute(api);
    homeRoute(api, context);
    agentRoutes(api, context);
    chainRoutes(api, context);
    runRoutes(api, context);
    commandRoutes(api, context);
    removeRoute(api, context);
    transcriptRoutes(api, context);
    eventRoutes(api, context);
    sessionRoutes(api, context);
    scheduleRoutes(api, context);
    breakerRoutes(api, context);
    workerRoutes(api, context);
    usageRoutes(api, context);
    webhookRoutes(api, context);
    queueRoutes(api, context);
    keyRoutes(api, context);
  });
  return app.withTypeProvider<ZodTypes>();
}

function contextOf(deps: ApiDeps, options: ApiOptions): ApiContext {
  const settings = settingsOf(options);
  const { callTimeoutMs, requestBudgetMs } = settings;
  const streams = createOpenStreams();
  return {
    deps, settings, streams,
    store: () => guardedStore(deps.store, { callTimeoutMs, budgetMs: requestBudgetMs }),
    schedules: () => guardedSchedules(deps.schedules, { callTimeoutMs, budgetMs: requestBudgetMs }),
    keys: () => guardedKeys(deps.issued, { callTimeoutMs, budgetMs: requestBudgetMs }),
    issuedKeys: new IssuedKeys(guardedKeys(deps.issued, { callTimeoutMs })),
    log: { store: guardedStore(deps.store, { callTimeoutMs }), archive: guardedArchive(deps.archive, requestBudgetMs) },
  };
}

function checkFirst(app: ApiInstance, { streams, settings }: ApiContext): void {
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-content-type-options', 'nosniff');
    if (request.raw.httpVersion === '1.1' && request.headers.host === undefined) {
      throw new Problem({ status: 400, code: 'invalid_request', detail: 'The Host header is missing.', headers: { connection: 'close' } });
    }
    const { scope = 'public' } = request.routeOptions.config;
    if (scope === 'public') return;
    reply.header('cache-control', 'no-store');
    if (!streams.closing) return;
    throw new Problem({ status: 503, code: 'unavailable', detail: 'This process is closing; please try again.', headers: { 'retry-after': '1', connection: 'close' } });
  });
  // What is under way is answered within its budget; a body that is still coming then is not waited for.
  const closeConnections = closesConnections(app.server, settings.requestBudgetMs + 1000);
  app.addHook('preClose', async () => {
    await streams.close();
    closeConnections();
  });
}
