/** GET /v1/agents, /v1/models: what new runs can be made by. Instructions and addresses are not shown. */
import type { AgentSpec } from '@treadle/core';
import { z } from 'zod';
import type { ApiContext, OfferedAgent } from '../dependencies.ts';
import { json, pageOf, problems, type ApiInstance } from '../server/api-types.ts';

/** Null: no limit. */
const rangeSchema = z.strictObject({
  default: z.union([z.number().nullable(), z.strictObject({ first: z.number(), default: z.number() })]), max: z.number().nullable(),
});
const agentSchema = z.strictObject({
  name: z.string(), agent_version: z.string(), chain: z.string(), tools: z.array(z.string()), limits: z.record(z.string(), rangeSchema),
});
const modelSchema = z.strictObject({
  name: z.string(), provider: z.string(), model: z.string(), context_window: z.int(), max_output_tokens: z.int(),
  supports_tools: z.boolean(), supports_images: z.boolean(),
});

const tags = ['agents'];
const querystring = z.strictObject({});

export function agentRoutes(app: ApiInstance, context: ApiContext): void {
  const specs = (): AgentSpec[] => context.deps.agents.list().map((agent) => agent.spec);
  const list = (description: string, item: z.ZodType) => ({ 200: json(description, pageOf(item)), ...problems(422) });

  app.get('/v1/agents', {
    config: { scope: 'read' }, schema: { tags, summary: 'The agents', operationId: 'listAgents', querystring, response: list('All agents', agentSchema) },
  }, async () => ({ data: context.deps.agents.list().map(shown), next_cursor: null }));

  app.get('/v1/models', {
    config: { scope: 'read' }, schema: { tags, summary: 'The models that agents use', operationId: 'listModels', querystring, response: list('All models', modelSchema) },
  }, async () => ({ data: byName(specs().flatMap((spec) => spec.chain.models)), next_cursor: null }));
}

function shown({ spec, version }: OfferedAgent): z.output<typeof agentSchema> {
  return { name: spec.name, agent_version: version, chain: spec.chain.name, tools: [...spec.tools], limits: { ...spec.limits } };
}

/** One of each name. */
function byName<T extends { readonly name: string }>(items: readonly T[]): T[] {
  return [...new Map(items.map((item) => [item.name, item])).values()];
}
