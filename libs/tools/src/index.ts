export type { ServerProbe } from './kinds/mcp.ts';
export type { ToolRunnerOptions } from './options.ts';
export type { BlobSource } from './builtin/read-blob.ts';
export type { FunctionToolContext, FunctionToolSource, HttpToolSource, McpHttpSource, McpServerSource, McpStdioSource, ToolPolicySource, ToolSources } from './sources.ts';
export { createToolRunner, type OpenToolRunner } from './tool-runner.ts';
