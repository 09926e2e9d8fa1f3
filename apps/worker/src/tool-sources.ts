/** What a configuration says of tools, as the tool runner takes it: with the way out that its `egress` allows. */
import { functionTools, httpTools, mcpServers, toolPolicies, type LoadedConfig } from '@treadle/config';
import { createEgress } from '@treadle/egress';
import type { BlobSource, ToolSources } from '@treadle/tools';

export interface ToolSurroundings {
  /** Never shown to a model, whatever a tool says. */
  readonly secrets: readonly string[];
  /** Where runs keep what is too large for the conversation; without it there is no `read_blob`. */
  readonly blobs?: BlobSource;
}

export function toolSources(config: LoadedConfig, { secrets, blobs }: ToolSurroundings): ToolSources {
  return {
    functions: functionTools(config), mcpServers: mcpServers(config), httpTools: httpTools(config), policies: toolPolicies(config),
    fetch: createEgress({ allow: config.egress.allow }), secrets: [...new Set([...secrets, ...config.secrets])], ...(blobs === undefined ? {} : { blobs }),
  };
}
