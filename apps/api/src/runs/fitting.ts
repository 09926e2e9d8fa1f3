/** Whether what is asked for fits the agent that a run is made by. */
import { limitsOfRun, type AgentLimits, type AgentSpec, type ChainSpec, type Content, type Limits, type WebhookTarget } from '@treadle/core';
import type { ApiContext, ApiDeps } from '../dependencies.ts';
import { invalidRequest, Problem } from '../problem.ts';

/** The limits of a run that asks for these; the `Problem` 422 `limit_above_maximum` for one above the agent's maximum. */
export function limitsWithin(agent: AgentLimits, asked: Partial<Limits>): Limits {
  const outcome = limitsOfRun(agent, asked);
  if (outcome.type === 'ok') return outcome.limits;
  const { limit, max } = outcome;
  const errors = [{ path: `limits.${limit}`, problem: `at most ${max}` }];
  throw new Problem({ status: 422, code: 'limit_above_maximum', detail: `limits.${limit} may be at most ${max} for this agent.`, errors });
}

/** A chain of the configuration; 422 with those there are for one that is unknown. */
export function chainNamed({ chains, chainNames = [] }: Pick<ApiDeps, 'chains' | 'chainNames'>, name: string): ChainSpec {
  const chain = chains?.(name) ?? null;
  if (chain === null) throw invalidRequest([{ path: 'chain', problem: `unknown chain; there are: ${chainNames.join(', ')}` }]);
  return chain;
}

/** An image that no model of the chain can see would be dropped without a word: 422. */
export function checkImages(spec: AgentSpec, input: Content): void {
  if (typeof input === 'string' || spec.chain.models.some((model) => model.supports_images)) return;
  const errors = input.flatMap((part, index) => part.type === 'image' ? [{ path: `input.${index}`, problem: 'no model of this agent takes images' }] : []);
  if (errors.length > 0) throw invalidRequest(errors);
}

/** The receiver of a run's end; null where none is named. 422 for one that cannot be told, as far as that is known now. */
export function webhookOf({ deps }: Pick<ApiContext, 'deps'>, asked: string | WebhookTarget | undefined): WebhookTarget | null {
  if (asked === undefined) return null;
  const target = typeof asked === 'string' ? { url: asked } : asked;
  const refused = deps.webhookProblem === undefined ? { field: 'url', problem: 'nobody is told of ended runs here' } : deps.webhookProblem(target);
  if (refused === null) return target;
  throw invalidRequest([{ path: typeof asked === 'string' ? 'webhook' : `webhook.${refused.field}`, problem: refused.problem }]);
}
