export { agentSpecOf, agentVersionOf, configWarnings } from './agent-spec.ts';
export { builtinConfig, defaultAgentName, type BuiltinOptions } from './builtin.ts';
export {
  functionTools, mcpServers, modelConnections, toolPolicies, type McpServer, type ModelConnection, type ToolPolicy,
} from './connections.ts';
export { defineConfig } from './define-config.ts';
export { defineTool, type FunctionTool, type JsonToolOptions, type ToolContext, type ZodToolOptions } from './define-tool.ts';
export { environmentSecrets, readEnvironment, type EnvironmentOutcome, type EnvironmentProblem, type Settings } from './environment/read.ts';
export { environmentTable, passedOnPrefix, type Variable } from './environment/table.ts';
export { checkConfig, loadConfig, type ConfigOutcome, type LoadedConfig, type LoadOptions } from './load.ts';
export type { ConfigProblem } from './problem.ts';
export { configJsonSchema, type TreadleConfig } from './schema/config.ts';
