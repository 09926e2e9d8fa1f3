/**
 * GET /v1/runs/{id}/tree: the run and the runs that it and they have started, each as it is now.
 *
 * A run that was deleted, or that was to be started and never was, is left out with what it had started.
 */
import { z } from 'zod';
import { tenantOf } from '../auth/authenticate.ts';
import type { ApiContext } from '../dependencies.ts';
import { json, problems, type ApiInstance } from '../server/api-types.ts';
import { findRun, lookUp, RunDeleted, type FindDeps, type FoundRun } from './find.ts';
import { runParams, runSchema } from './run-schema.ts';

/** Runs that one answer shows. */
const mostRuns = 500;
/** Runs that are read at once. */
const readsAtOnce = 16;

const treeSchema = z.strictObject({
  run: runSchema,
  tool_use_id: z.string().nullable().describe('The call that has started it; null at the top.'),
  children: z.array(z.looseObject({})).describe('The same of each run that it has started, in that order.'),
  truncated: z.boolean().describe(`Whether some are left out: one answer shows ${mostRuns} runs.`),
});

interface Node { readonly run: FoundRun['view']; readonly tool_use_id: string | null; readonly children: Node[] }

export function treeRoute(app: ApiInstance, context: ApiContext): void {
  app.get('/v1/runs/:run_id/tree', {
    config: { scope: 'read' },
    schema: {
      tags: ['runs'], summary: 'A run and its descendants', operationId: 'getRunTree', params: runParams, querystring: z.strictObject({}),
      response: { 200: json('The tree', treeSchema), ...problems(404, 410, 422) },
    },
  }, async (request) => treeOf({ store: context.store(), archive: context.log.archive }, tenantOf(request), request.params.run_id));
}

async function treeOf(deps: FindDeps, tenant: string, run_id: string): Promise<Node & { readonly truncated: boolean }> {
  const found = await findRun(deps, tenant, run_id);
  const top: Node = { run: found.view, tool_use_id: null, children: [] };
  let level = [{ node: top, started: found.children }];
  let left = mostRuns - 1;
  let truncated = false;
  while (level.length > 0) {
    const all = level.flatMap(({ node, started }) => started.map((child) => ({ parent: node, child })));
    truncated ||= all.length > left;
    const next: typeof level = [];
    const shown = all.slice(0, left);
    left -= shown.length;
    for (let from = 0; from < shown.length; from += readsAtOnce) {
      const batch = shown.slice(from, from + readsAtOnce);
      const runs = await Promise.all(batch.map(({ child }) => unlessDeleted(lookUp(deps, tenant, child.child_run_id))));
      batch.forEach(({ parent, child }, index) => {
        const run = runs[index] ?? null;
        if (run === null || run.view.parent_run_id !== parent.run.id) return;
        const node: Node = { run: run.view, tool_use_id: child.tool_use_id, children: [] };
        parent.children.push(node);
        next.push({ node, started: run.children });
      });
    }
    level = next;
  }
  return { ...top, truncated };
}

async function unlessDeleted(found: Promise<FoundRun | null>): Promise<FoundRun | null> {
  return found.catch((error: unknown) => {
    if (error instanceof RunDeleted) return null;
    throw error;
  });
}
