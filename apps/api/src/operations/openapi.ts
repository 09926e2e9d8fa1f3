/** /openapi.json, made from the schemas that check the requests, and /docs, served from this process alone. */
import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { createJsonSchemaTransform } from 'fastify-type-provider-zod';
import type { ApiInstance } from '../server/api-types.ts';

/** To be called before any route is added. */
export function describeRoutes(app: FastifyInstance, version: string): void {
  void app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Treadle', version, description: 'Runs of AI agents: create, follow, cancel, inspect. Errors are RFC 9457 problems with a stable `code`.' },
      components: { securitySchemes: { key: { type: 'http', scheme: 'bearer', description: 'An API key, tk_…' } } },
      security: [{ key: [] }],
    },
    transform: createJsonSchemaTransform({ zodToJsonConfig: { unrepresentable: 'any' } }),
  });
  void app.register(swaggerUi, {
    routePrefix: '/docs', uiConfig: { deepLinking: true }, staticCSP: true,
    // It would send a browser that came by http to an https that is not there.
    transformStaticCSP: (policy) => policy.replace(/;?\s*upgrade-insecure-requests/, ''),
  });
}

export function openApiRoute(app: ApiInstance): void {
  app.get('/openapi.json', { config: { scope: 'public' }, schema: { hide: true } }, async () => app.swagger());
}
