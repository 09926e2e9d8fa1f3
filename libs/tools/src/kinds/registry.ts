/** Every kind of tool; a new one is a line here. */
import type { Mask } from '../content/mask.ts';
import type { ToolKind } from '../kind.ts';
import type { CompleteOptions } from '../options.ts';
import type { ToolSources } from '../sources.ts';
import { createBuiltinKind } from './builtin.ts';
import { createHostedKind } from './hosted.ts';
import { createFunctionKind } from './function.ts';
import { createHttpKind } from './http.ts';
import { createMcpKind, type McpKind } from './mcp.ts';

export interface Kinds {
  readonly all: readonly ToolKind[];
  /** Apart, since only servers can be probed. */
  readonly mcp: McpKind;
}

export function createKinds(sources: ToolSources, options: CompleteOptions, mask: Mask): Kinds {
  const fetch = sources.fetch ?? noWayOut;
  const mcp = createMcpKind(sources.mcpServers, { ...options, fetch, mask });
  const all = [
    createFunctionKind(sources.functions), createHttpKind(sources.httpTools ?? {}, fetch, options), mcp,
    createBuiltinKind({ fetch, blobs: sources.blobs ?? null, options }), createHostedKind(),
  ];
  return { mcp, all };
}

const noWayOut: typeof globalThis.fetch = async () => {
  throw Object.assign(new TypeError('this process has no way out'), { sent: false });
};
