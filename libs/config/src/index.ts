export { agentSpecOf, agentVersionOf, canaryDefinitions, chainSpecOf, configWarnings } from './agent-spec.ts';
export { builtinConfig, defaultAgentName, type BuiltinOptions } from './builtin.ts';
export {
  functionTools, hookFunctions, httpTools, mcpServers, modelConnections, modelPrices, toolPolicies, validatorFunctions, webhookEndpoints,
  type HttpTool, type McpServer, type ModelConnection, type ToolPolicy,
} from './connections.ts';
export type { AnswerView } from '@treadle/engine';
export { defineConfig } from './define-config.ts';
export { defineTool, type FunctionTool, type JsonToolOptions, type ToolContext, type ZodToolOptions } from './define-tool.ts';
export { environmentSecrets, readEnvironment, type EnvironmentOutcome, type EnvironmentProblem, type Settings } from './environment/read.ts';
export { environmentTable, type Variable } from './environment/table.ts';
export { lackingOf } from './lacking.ts';
export { checkConfig, loadConfig, type ConfigOutcome, type LoadedConfig, type LoadOptions } from './load.ts';
export type { ConfigProblem } from './problem.ts';
export type { CheckAnswer, CheckFunction, DecideFunction, HookAnswer } from './schema/answers.ts';
export { configJsonSchema, type TreadleConfig } from './schema/config.ts';
export { defaultBaseUrls } from './schema/model.ts';
export { limitRules, type LimitRule } from './schema/limits.ts';
