/** The tool runner: all kinds of tools behind the engine's port. */
import type { ToolRunner } from '@treadle/engine';
import { asksFor } from './arguments/asks.ts';
import { checkArguments } from './arguments/check.ts';
import { createInTime } from './arguments/in-time.ts';
import { createSchemaStore } from './arguments/schema-store.ts';
import { outsideRoots } from './call/roots.ts';
import { runCall } from './call/run-call.ts';
import { createToolSlots } from './call/tool-slots.ts';
import { buildCatalogue } from './catalogue/build.ts';
import { toolChanges } from './catalogue/changes.ts';
import { policyFor } from './catalogue/policy.ts';
import { createMask } from './content/mask.ts';
import { createKinds } from './kinds/registry.ts';
import type { ServerProbe } from './kinds/mcp.ts';
import { completeOptions, type ToolRunnerOptions } from './options.ts';
import type { ToolSources } from './sources.ts';

export interface OpenToolRunner extends ToolRunner {
  /** Whether an MCP server of the configuration can be used; for `doctor`. Never rejects. */
  probe(server: string): Promise<ServerProbe>;
  /** Ends every server process; calls after it are not started. Does not wait for functions. */
  close(): Promise<void>;
}

/** Starts nothing: servers are started when an agent's tools are first asked for, or a call needs one. */
export function createToolRunner(sources: ToolSources, options: ToolRunnerOptions = {}): OpenToolRunner {
  const complete = completeOptions(options);
  const inTime = createInTime();
  const schemas = createSchemaStore(inTime);
  const slotsOf = createToolSlots(sources);
  const { policies } = sources;
  const mask = createMask(sources.secrets ?? []);
  const kinds = createKinds(sources, complete, mask);
  return {
    async catalogue(spec) {
      const offers = (await Promise.all(kinds.all.map((kind) => kind.offered(spec.tools, spec)))).flat();
      const { tools, problems, instructions } = buildCatalogue(offers, { patterns: spec.tools, policies, defaultTimeoutMs: complete.defaultTimeoutMs, schemas });
      return { tools, problems: problems.map(mask.text), ...(instructions === undefined ? {} : { instructions }) };
    },
    async changes(spec, pinned, known) {
      const { offers, heard } = await kinds.mcp.heard(spec.tools);
      if (heard.length === 0) return null;
      const first = new Set(pinned.map(({ name }) => name));
      const { tools, problems, instructions = {} } = buildCatalogue(offers, { patterns: spec.tools, policies, defaultTimeoutMs: complete.defaultTimeoutMs, schemas, first });
      return toolChanges({ pinned, known, heard, now: { tools, problems: problems.map(mask.text), instructions } });
    },
    check: (tool, input) => checkArguments({ schemas, inTime }, tool, input),
    asks: (tool, input) => asksFor(inTime, tool, input),
    run: async (run) => {
      const { path_args = [], roots } = policyFor(policies, run.tool.name);
      const outside = roots === undefined ? null : await outsideRoots({ path_args, roots }, run.input);
      if (outside !== null) return mask.result({ content: outside, is_error: true, settled: true });
      return mask.result(await runCall(kinds.all.find((kind) => kind.owns(run.tool.name)), run, { graceMs: complete.graceMs, slots: slotsOf(run.tool.name) }));
    },
    probe: async (server) => {
      const found = await kinds.mcp.probe(server);
      return found.type === 'ok' ? found : { ...found, problem: mask.text(found.problem) };
    },
    async close() {
      await Promise.all(kinds.all.map((kind) => kind.close()));
    },
  };
}
