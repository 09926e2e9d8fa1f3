/** The whole file. Strict everywhere: a key that nobody reads is a mistake of somebody. */
import { z } from 'zod';
import { agentSchema } from './agent.ts';
import { httpOrigin } from './addresses.ts';
import { later } from './later.ts';
import { chainSchema, modelSchema } from './model.ts';
import { plainName, serverName, toolName } from './names.ts';
import { functionToolSchema, httpToolSchema, mcpServerSchema, toolPolicySchema } from './tools.ts';
import { webhookEndpointSchema } from './webhooks.ts';

const tenantSchema = z.strictObject({
  max_concurrent_runs: later(null), max_queued_runs: later(null), requests_per_second: later(null), weight: later(1),
});

export const configSchema = z.strictObject({
  /** For editors. */
  $schema: z.string().optional(),
  models: z.record(plainName, modelSchema),
  chains: z.record(plainName, chainSchema),
  mcp_servers: z.record(serverName, mcpServerSchema).default({}),
  http_tools: z.record(toolName, httpToolSchema).default({}),
  /** By name or pattern of the tool. */
  tools: z.record(z.string().min(1), toolPolicySchema).default({}),
  /** Origins inside that tools, MCP servers by url, and webhooks may reach; everything else of them must be public. */
  egress: z.strictObject({ allow: z.array(httpOrigin).default([]) }).prefault({}),
  /** Receivers of what is told of ended runs, by name. */
  webhooks: z.record(plainName, webhookEndpointSchema).default({}),
  tenants: z.record(plainName, tenantSchema).default({}),
  agents: z.record(plainName, agentSchema),
  /** Only in `treadle.config.ts`: what `defineTool` returns. */
  functions: z.array(functionToolSchema).default([]),
});

/** What a user writes. */
export type TreadleConfig = z.input<typeof configSchema>;
/** The same with every default filled in. */
export type CheckedConfig = z.output<typeof configSchema>;
export type ModelConfig = CheckedConfig['models'][string];
export type AgentConfig = CheckedConfig['agents'][string];

/** JSON Schema (draft 2020-12) of `treadle.config.json`, for editors. */
export function configJsonSchema(): Record<string, unknown> {
  const schema: Record<string, unknown> = z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' });
  const properties = { ...(schema.properties as Record<string, unknown>) };
  delete properties.functions;
  return { ...schema, title: 'Treadle configuration', properties };
}
