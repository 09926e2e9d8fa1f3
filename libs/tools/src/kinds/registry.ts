/** Every kind of tool; a new one is a line here. */
import type { ToolKind } from '../kind.ts';
import type { CompleteOptions } from '../options.ts';
import type { ToolSources } from '../sources.ts';
import { createBuiltinKind } from './builtin.ts';
import { createFunctionKind } from './function.ts';
import { createMcpKind, type McpKind } from './mcp.ts';

export interface Kinds {
  readonly all: readonly ToolKind[];
  /** Apart, since only servers can be probed. */
  readonly mcp: McpKind;
}

export function createKinds(sources: ToolSources, options: CompleteOptions): Kinds {
  const mcp = createMcpKind(sources.mcpServers, options);
  return { mcp, all: [createFunctionKind(sources.functions), mcp, createBuiltinKind()] };
}
