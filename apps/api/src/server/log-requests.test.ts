/** What the API's log says of requests: one line each, by which it is found, and nothing of what was said. */
import { afterEach, expect, test } from 'vitest';
import { asked, createTestApi, keysOf, type TestApi } from '../fixtures/test-api.ts';

interface Line { readonly level: string; readonly message: string; readonly fields: Readonly<Record<string, unknown>> }

let api: TestApi | null = null;
afterEach(async () => { await api?.close(); api = null; });

function listening(): { readonly api: TestApi; readonly lines: Line[] } {
  const lines: Line[] = [];
  const at = (level: string) => (fields: Readonly<Record<string, unknown>>, message: string): void => { lines.push({ level, message, fields }); };
  api = createTestApi({ deps: { logger: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } } });
  return { api, lines };
}

const trace = '4bf92f3577b34da6a3ce929d0e0e4736';

test('a run is accepted: the lines carry tenant, run and trace, and nothing that was said', async () => {
  const { api, lines } = listening();
  const answer = await api.app.inject({
    method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, { input: 'said-in-the-body', metadata: { note: 'said-in-metadata' } }, { traceparent: `00-${trace}-00f067aa0ba902b7-01`, 'x-note': 'said-in-a-header' }),
  });
  const { id } = answer.json<{ id: string }>();
  expect(lines).toEqual([
    { level: 'info', message: 'run accepted', fields: { run_id: id, tenant: 'alpha', agent: 'assistant', trace_id: trace } },
    { level: 'info', message: 'request', fields: { request_id: expect.any(String) as string, method: 'POST', route: '/v1/runs', status: 202, ms: expect.any(Number) as number, tenant: 'alpha', trace_id: trace } },
  ]);
  expect(JSON.stringify(lines)).not.toContain('said-');
});

test('the run of a route is named where it is an id, and what is no traceparent is passed over', async () => {
  const { api, lines } = listening();
  const run_id = `run_${'0'.repeat(32)}`;
  for (const name of [run_id, 'said-in-the-path']) await api.app.inject({ url: `/v1/runs/${name}`, ...asked(keysOf.beta, undefined, { traceparent: '00-said-01' }) });
  await api.app.inject({ url: '/v1/runs?note=said-in-the-query', headers: { authorization: 'Bearer said-as-a-key' } });
  await api.app.inject({ method: 'POST', url: '/v1/runs?note=said-in-the-query', ...asked(keysOf.alpha, { input: 'x' }) });
  await api.app.inject({ url: '/said-in-a-path' });
  expect(lines.map(({ level, fields: { route, status, tenant, run_id: named, trace_id } }) => [level, route, status, tenant, named, trace_id])).toEqual([
    ['info', '/v1/runs/:run_id', 404, 'beta', run_id, undefined], ['info', '/v1/runs/:run_id', expect.any(Number), 'beta', undefined, undefined],
    ['info', '/v1/runs', 401, undefined, undefined, undefined], ['info', '/v1/runs', 422, 'alpha', undefined, undefined], ['info', 'none', 404, undefined, undefined, undefined],
  ]);
  expect(JSON.stringify(lines)).not.toContain('said-');
});

test('probes are a matter of debugging', async () => {
  const { api, lines } = listening();
  for (const url of ['/healthz', '/readyz']) await api.app.inject({ url });
  expect(lines.map(({ level }) => level)).toEqual(['debug', 'debug']);
});
