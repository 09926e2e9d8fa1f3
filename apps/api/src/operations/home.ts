/** GET /: says what this is, to whoever opens the address in a browser. Nothing of a tenant is shown. */
import type { ApiContext } from '../dependencies.ts';
import type { ApiInstance } from '../server/api-types.ts';

const policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export function homeRoute(app: ApiInstance, context: ApiContext): void {
  const page = pageOf(context.settings.version, context.deps.metrics !== undefined);
  app.get('/', { config: { scope: 'public' }, schema: { hide: true } },
    async (_request, reply) => reply.header('content-security-policy', policy).type('text/html; charset=utf-8').send(page));
}

function pageOf(version: string, hasMetrics: boolean): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Treadle</title>
<style>body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem }</style>
<h1>Treadle</h1>
<p>This is the HTTP API of Treadle ${version}, which runs AI agents as durable state machines.</p>
<ul>
<li><a href="/docs">/docs</a>: the API, to read and to try</li>
<li><a href="/openapi.json">/openapi.json</a>: its description for tools</li>
${hasMetrics ? '<li><a href="/metrics">/metrics</a>: numbers for Prometheus</li>\n' : ''}</ul>
</html>
`;
}
