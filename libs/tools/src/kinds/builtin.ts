/**
 * Tools that come with the host: `http_get` and `read_blob`. An agent has them where its patterns name them; `*` alone does not,
 * since nobody who writes it for his own tools means to open the internet to a model.
 */
import type { ToolRun } from '@treadle/engine';
import { matches } from '../catalogue/patterns.ts';
import { errorText } from '../call/run-call.ts';
import { readBlobTool, type BlobSource } from '../builtin/read-blob.ts';
import { httpGetTool } from '../builtin/http-get.ts';
import type { CallEnd, CallWindow, OfferedTool, ToolKind } from '../kind.ts';
import type { CompleteOptions } from '../options.ts';

export interface BuiltinTool extends OfferedTool {
  readonly run: (run: ToolRun, window: CallWindow) => Promise<CallEnd>;
}

export interface BuiltinDeps {
  readonly fetch: typeof fetch;
  readonly blobs: BlobSource | null;
  readonly options: CompleteOptions;
}

export function createBuiltinKind(deps: BuiltinDeps): ToolKind {
  const tools: readonly BuiltinTool[] = [httpGetTool(deps), ...(deps.blobs === null ? [] : [readBlobTool(deps.blobs)])];
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  return {
    owns: (name) => byName.has(name),
    offered: async (patterns) => [{ tools: tools.filter(({ name }) => patterns.some((pattern) => pattern !== '*' && matches(pattern, name))), problems: [], missing: [] }],
    async call(run, window) {
      const tool = byName.get(run.tool.name);
      if (tool === undefined) return { type: 'not_started', why: `This worker has no tool named ${run.tool.name}.` };
      return tool.run(run, window).catch((error: unknown) => ({ type: 'answered', is_error: true, content: errorText(error) }));
    },
    close: async () => {},
  };
}
