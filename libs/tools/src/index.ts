export type { ServerProbe } from './kinds/mcp.ts';
export type { ToolRunnerOptions } from './options.ts';
export type { FunctionToolContext, FunctionToolSource, McpServerSource, ToolPolicySource, ToolSources } from './sources.ts';
export { createToolRunner, type OpenToolRunner } from './tool-runner.ts';
