/** /healthz, /readyz, /metrics: for whoever runs this process. No key is asked for; nothing of a tenant is shown. */
import { z } from 'zod';
import type { ApiContext, Health } from '../dependencies.ts';
import { Problem } from '../problem.ts';
import { json, type ApiInstance } from '../server/api-types.ts';
import { within } from '../store/guarded-store.ts';

const okSchema = z.strictObject({ status: z.literal('ok') });
const readySchema = z.strictObject({ status: z.literal('ok'), warnings: z.array(z.string()).optional().describe('What is wrong and keeps no request from being served.') });
const tags = ['operations'];
const healthTimeoutMs = 3000;

export function operationRoutes(app: ApiInstance, context: ApiContext): void {
  const { metrics } = context.deps;

  app.get('/healthz', {
    config: { scope: 'public' },
    schema: { tags, summary: 'Whether this process lives', operationId: 'healthz', security: [], response: { 200: json('It does', okSchema) } },
  }, async () => ({ status: 'ok' }));

  app.get('/readyz', {
    config: { scope: 'public' },
    schema: { tags, summary: 'Whether requests can be served', operationId: 'readyz', security: [], response: { 200: json('They can', readySchema) } },
  }, async () => {
    const { ok, problems, warnings = [] }: Health = context.streams.closing ? { ok: false, problems: ['this process is closing'] } : await health(context);
    if (ok) return { status: 'ok', ...(warnings.length === 0 ? {} : { warnings }) };
    const errors = problems.map((problem) => ({ path: '', problem }));
    throw new Problem({ status: 503, code: 'unavailable', detail: 'Not ready.', errors, headers: { 'retry-after': '2' } });
  });

  if (metrics === undefined) return;
  app.get('/metrics', { config: { scope: 'public' }, schema: { tags, summary: 'Metrics', operationId: 'metrics', security: [] } },
    async (_request, reply) => reply.header('content-type', 'text/plain; version=0.0.4; charset=utf-8').send(await metrics()));
}

async function health(context: ApiContext): Promise<Health> {
  try {
    return await within(context.deps.health(), healthTimeoutMs, () => new Error('no answer in time'));
  } catch {
    return { ok: false, problems: ['the health check failed or did not answer in time'] };
  }
}
