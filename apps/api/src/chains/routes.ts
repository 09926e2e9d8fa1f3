/**
 * /v1/chains and the trials of new models in them.
 *
 * 1. A trial belongs to the configuration, not to a tenant: who may read may see it, only an admin moves it.
 * 2. A person's move is recorded like the judge's, with the numbers of the moment.
 * 3. 503 `unavailable` is answered only where nothing was moved; else `outcome_unknown`.
 */
import type { ChainSpec } from '@treadle/core';
import { mostDecisions, orderCanary } from '@treadle/engine';
import { z } from 'zod';
import { actorOf } from '../auth/authenticate.ts';
import type { ApiContext, Trials } from '../dependencies.ts';
import { invalidRequest, notFound, outcomeUnknown, unavailable } from '../problem.ts';
import { json, pageOf, problems, type ApiInstance } from '../server/api-types.ts';
import { guardedCanaries } from '../store/guarded-canaries.ts';
import { StoreUnavailable } from '../store/unavailable.ts';
import { canaryLine, canarySchema, canaryView } from './canary-view.ts';

const tags = ['chains'];
const querystring = z.strictObject({});
const params = z.object({ name: z.string().max(128) });
const chainSchema = z.strictObject({ name: z.string(), models: z.array(z.string()).describe('In order; a model on trial is last.'), canary: canaryLine });

const orderSchema = z.strictObject({
  action: z.enum(['set', 'pause', 'promote', 'rollback']).describe('`set`: to a stage; `pause`: no promotion but by hand; `promote`: to the next stage; `rollback`: to stage 0, until somebody moves it.'),
  stage: z.int().optional().describe('Of `set`: one of the canary\'s stages, in percent.'),
}).superRefine(({ action, stage }, context) => {
  if (action === 'set' && stage === undefined) context.addIssue({ code: 'custom', path: ['stage'], message: 'is missing; set needs the stage to go to' });
  if (action !== 'set' && stage !== undefined) context.addIssue({ code: 'custom', path: ['stage'], message: `goes with set alone, not with ${action}` });
});

export function chainRoutes(app: ApiInstance, context: ApiContext): void {
  app.get('/v1/chains', {
    config: { scope: 'read' }, schema: { tags, summary: 'The chains that agents use', operationId: 'listChains', querystring, response: { 200: json('All chains', pageOf(chainSchema)), ...problems(422) } },
  }, async () => {
    const chains = new Map(context.deps.agents.list().map(({ spec: { chain } }) => [chain.name, chain]));
    return { data: await Promise.all([...chains.values()].map((chain) => line(context, chain))), next_cursor: null };
  });

  app.get('/v1/chains/:name/canary', {
    config: { scope: 'read' },
    schema: { tags, summary: 'The trial of a new model', operationId: 'getCanary', params, querystring, response: { 200: json('Where it has got to, what the judge says, what was decided', canarySchema), ...problems(404, 422) } },
  }, async (request) => show(trialsOf(context, request.params.name), request.params.name));

  app.put('/v1/chains/:name/canary', {
    config: { scope: 'admin' },
    schema: {
      tags, summary: 'Move the trial of a new model', operationId: 'moveCanary', params, body: orderSchema,
      response: { 200: json('The trial as it is now', canarySchema), ...problems(400, 404, 413, 415, 422) },
    },
  }, async (request) => {
    const { name } = request.params;
    const trials = trialsOf(context, name);
    const { action, stage } = request.body;
    const outcome = await orderCanary(trials, name, { action, ...(stage === undefined ? {} : { stage }), by: actorOf(request) }).catch((error: unknown) => {
      if (!(error instanceof StoreUnavailable) || !error.sent) throw error;
      throw outcomeUnknown('The store did not say whether the canary was moved. Look at it before you ask again.', error);
    });
    switch (outcome.type) {
      case 'decided': return show(trials, name);
      case 'missing': throw notFound();
      case 'no_stage': throw invalidRequest([action === 'set' ? { path: 'stage', problem: 'no stage of this canary' } : { path: 'action', problem: 'it is at its last stage' }]);
      case 'conflict': throw unavailable('Others are moving this canary; nothing was changed by this request.');
    }
  });
}

/** Throws the 404 `Problem` for a chain without a trial. */
function trialsOf({ deps, settings }: ApiContext, chain: string): Trials {
  const { trials } = deps;
  if (trials === undefined || !trials.chains.includes(chain)) throw notFound();
  return { ...trials, canaries: guardedCanaries(trials.canaries, settings.callTimeoutMs) };
}

async function show({ canaries, judge }: Trials, chain: string) {
  const reading = await canaries.read(chain, { decisions: mostDecisions, runs: true });
  if (reading === null) throw notFound();
  return canaryView(reading, judge(reading));
}

async function line(context: ApiContext, { name, models, canary }: ChainSpec): Promise<z.output<typeof chainSchema>> {
  const reading = canary === undefined ? null : await trialsOf(context, name).canaries.read(name, { decisions: 0, runs: false });
  const trial = reading === null ? null : { model: reading.state.definition.model, stage: reading.state.stage, status: reading.state.status };
  return { name, models: models.map((model) => model.name), canary: trial };
}
