/** C83, generated from the OpenAPI file: a route that is added is tested without being named here. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { asked, begins, createdRun, createTestApi, ends, keysOf, type TestApi } from '../fixtures/test-api.ts';

let api: TestApi;
let foreign: { live: string; ended: string };
const absent = `run_${'0'.repeat(32)}`;
const malformed = ['run_x', '..', '%00', 'RUN_1', `ses_${'0'.repeat(32)}`, `run_${'A'.repeat(32)}`, 'x'.repeat(600)];

beforeAll(async () => {
  api = createTestApi();
  foreign = { live: await createdRun(api, { input: 'x' }, keysOf.beta), ended: await createdRun(api, { input: 'x' }, keysOf.beta) };
  await api.work(foreign.ended, [...begins, ...ends]);
  await api.archiveRun(foreign.ended);
});
afterAll(() => api.close());

/** A body that the route would take, so that only the id is in question. */
const bodies: Record<string, object> = {
  'POST /v1/runs/{run_id}/steer': { text: 'x' }, 'POST /v1/runs/{run_id}/fork': { after_seq: 5 }, 'POST /v1/runs/{run_id}/ledger/{tool_use_id}': { outcome: 'happened' },
  'POST /v1/runs/{run_id}/approvals/{tool_use_id}': { decision: 'approve' },
  'PATCH /v1/runs/{run_id}': { limits: { max_turns: 1_000_000 } },
};

interface Route { readonly method: 'GET'; readonly path: string }

async function documented(): Promise<Route[]> {
  const { paths } = (await api.app.inject('/openapi.json')).json<{ paths: Record<string, Record<string, unknown>> }>();
  return Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods).map((method) => ({ method: method.toUpperCase() as 'GET', path })));
}

test('every documented route answers a foreign run as an absent one: 404, same body, same headers', async () => {
  const routes = (await documented()).filter((route) => route.path.includes('{run_id}'));
  expect(routes.length).toBeGreaterThanOrEqual(7);
  for (const { method, path } of routes) {
    for (const accept of ['application/json', 'text/event-stream', 'application/x-ndjson']) {
      const ask = (run_id: string) => api.app.inject({ method, url: path.replace('{run_id}', run_id), ...asked(keysOf.alpha, bodies[`${method} ${path}`], { accept }) });
      const expected = await ask(absent);
      expect([path, expected.statusCode, expected.json().code]).toEqual([path, 404, 'not_found']);
      for (const run_id of [foreign.live, foreign.ended, ...malformed]) {
        const answer = await ask(run_id);
        expect([path, answer.statusCode, answer.body]).toEqual([path, 404, expected.body]);
      }
    }
  }
});

test('a foreign run is looked for in the same places as an absent one', async () => {
  const looks: string[] = [];
  const watched = createTestApi({
    store: (store) => ({ ...store, read: (run_id) => { looks.push('store'); return store.read(run_id); }, removed: (run_id) => { looks.push('deleted'); return store.removed(run_id); } }),
    archive: (archive) => ({
      ...archive, getRun: (run_id) => { looks.push('archive'); return archive.getRun(run_id); }, removal: (run_id) => { looks.push('archive: deleted'); return archive.removal(run_id); },
    }),
  });
  const id = await createdRun(watched, { input: 'x' }, keysOf.beta);
  for (const run_id of [id, absent]) {
    looks.length = 0;
    await watched.app.inject({ url: `/v1/runs/${run_id}`, ...asked(keysOf.alpha) });
    expect(looks).toEqual(['store', 'deleted', 'archive: deleted', 'archive']);
  }
  await watched.close();
});

test('a list shows nothing of another tenant, whatever the cursor', async () => {
  const cursor = Buffer.from(`run_${'f'.repeat(32)}`).toString('base64url');
  expect((await api.app.inject({ url: `/v1/runs?cursor=${cursor}`, ...asked(keysOf.alpha) })).json()).toEqual({ data: [], next_cursor: null });
});
