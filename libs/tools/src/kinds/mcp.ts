/** Tools of MCP servers, over stdio and over streamable HTTP: `server/tool`. */
import { McpError, ErrorCode } from '@modelcontextprotocol/sdk/types.js';
import type { ToolRun } from '@treadle/engine';
import { errorText } from '../call/run-call.ts';
import type { Mask } from '../content/mask.ts';
import type { CallEnd, Offer, OfferedTool, ToolKind } from '../kind.ts';
import { createMcpConnection, ServerUnreachable, type ConnectionOptions, type CallParams, type McpConnection } from '../mcp/connection.ts';
import { offeredTool } from '../mcp/offered-tool.ts';
import { observationOf, saysError } from '../mcp/observation.ts';
import { textHash } from '../catalogue/hash.ts';
import { mayMatchBeginning } from '../catalogue/patterns.ts';
import type { McpServerSource } from '../sources.ts';

export type ServerProbe = { readonly type: 'ok'; readonly tools: number } | { readonly type: 'unusable'; readonly problem: string };

export interface McpKind extends ToolKind {
  /** What those servers offer that are connected now, and `server/` of each; one that does not answer soon is left out. */
  heard(patterns: readonly string[]): Promise<{ readonly offers: readonly Offer[]; readonly heard: readonly string[] }>;
  /** Starts the server where it is not running, and asks for its tools. */
  probe(server: string): Promise<ServerProbe>;
}

interface Server { readonly source: McpServerSource; readonly connection: McpConnection; readonly mask: Mask }

export function createMcpKind(sources: Readonly<Record<string, McpServerSource>>, options: ConnectionOptions): McpKind {
  const servers = new Map<string, Server>(Object.entries(sources).map(([name, source]) => (
    [name, { source, connection: createMcpConnection(name, source, options), mask: options.mask }])));
  const killAll = (): void => servers.forEach(({ connection }) => connection.killNow());
  if (servers.size > 0) process.once('exit', killAll);
  return {
    owns: (name) => name.includes('/') && servers.has(serverOf(name)),
    async offered(patterns) {
      const asked = [...servers].filter(([name]) => patterns.some((pattern) => mayMatchBeginning(pattern, `${name}/`)));
      return Promise.all(asked.map(([name, server]) => offerOf(name, server)));
    },
    async heard(patterns) {
      const asked = [...servers].filter(([name, { connection }]) => connection.connected && patterns.some((pattern) => mayMatchBeginning(pattern, `${name}/`)));
      const answers = await Promise.all(asked.map(async ([name, server]) => ({ name, offer: await soon(offerOf(name, server), options.changesWaitMs) })));
      const there = answers.flatMap(({ name, offer }) => offer === null || offer.missing.length > 0 ? [] : [{ name, offer }]);
      return { offers: there.map(({ offer }) => offer), heard: there.map(({ name }) => `${name}/`) };
    },
    async call(run, window) {
      const server = servers.get(serverOf(run.tool.name));
      if (server === undefined) return { type: 'not_started', why: `This worker has no MCP server for ${run.tool.name}.` };
      let begun = false;
      const begin = async (): Promise<void> => {
        await window.confirm();
        begun = true;
        window.begin();
      };
      try {
        const { signal, progress } = window;
        run.onCarried?.({ protocol: 'mcp', transport: 'url' in server.source ? 'tcp' : 'pipe' });
        const result = await server.connection.call(paramsOf(run), { signal, begin, progress, repeatable: run.tool.effect !== 'once' });
        const { content, attachments } = observationOf(result);
        return { type: 'answered', content, is_error: saysError(result), ...(attachments.length === 0 ? {} : { attachments }) };
      } catch (error) {
        return failedCall(error, begun, run.tool.name);
      }
    },
    async probe(name) {
      const server = servers.get(name);
      if (server === undefined) return { type: 'unusable', problem: `no MCP server is named ${name}` };
      return server.connection.listTools().then(
        (tools) => ({ type: 'ok', tools: tools.length }), (error: unknown) => ({ type: 'unusable', problem: errorText(error) }));
    },
    async close() {
      await Promise.all([...servers.values()].map(({ connection }) => connection.close()));
      process.off('exit', killAll);
    },
  };
}

/** A list is read once; each turn looks at it. */
const offersOfLists = new WeakMap<readonly unknown[], Offer>();

async function offerOf(name: string, { source, connection, mask }: Server): Promise<Offer> {
  try {
    const listed = await connection.listTools();
    const known = offersOfLists.get(listed);
    if (known !== undefined) return known;
    // What a server says of its tools is sent to models and stands in the log, like what they answer.
    const entries = listed.map((entry) => mask.json(offeredTool(name, entry, source.trusted)));
    const isTool = (entry: OfferedTool | string): entry is OfferedTool => typeof entry !== 'string';
    const offer = { tools: entries.filter(isTool), problems: entries.filter((entry) => typeof entry === 'string'), missing: [], ...instructionsOf(name, connection) };
    offersOfLists.set(listed, offer);
    return offer;
  } catch (error) {
    return { tools: [], problems: [errorText(error)], missing: [`${name}/`] };
  }
}

function instructionsOf(name: string, { instructions }: McpConnection): Pick<Offer, 'instructions'> {
  return instructions === null || instructions === '' ? {} : { instructions: { [name]: textHash(instructions) } };
}

/** Null where it takes longer. The list is asked for once, and goes on coming for whoever looks next. */
async function soon(offer: Promise<Offer>, waitMs: number): Promise<Offer | null> {
  const { promise: late, resolve } = Promise.withResolvers<null>();
  const timer = setTimeout(() => { resolve(null); }, waitMs);
  return Promise.race([offer, late]).finally(() => { clearTimeout(timer); });
}

function serverOf(name: string): string {
  return name.slice(0, name.indexOf('/'));
}

function paramsOf(run: ToolRun): CallParams {
  return {
    name: run.tool.name.slice(run.tool.name.indexOf('/') + 1),
    arguments: run.input,
    _meta: {
      'treadle/idempotency_key': run.idempotency_key, 'treadle/run_id': run.run_id, 'treadle/epoch': run.epoch, 'treadle/tool_use_id': run.tool_use_id,
    },
  };
}

/** JSON-RPC errors that say that the server did not take the call. Any other may come from the middle of it. */
const refusals: readonly number[] = [ErrorCode.ParseError, ErrorCode.InvalidRequest, ErrorCode.MethodNotFound, ErrorCode.InvalidParams];

function failedCall(error: unknown, begun: boolean, tool: string): CallEnd {
  if (!begun) return { type: 'not_started', why: error instanceof ServerUnreachable ? error.message : `The call was not started: ${errorText(error)}` };
  if (error instanceof McpError && refusals.includes(error.code)) return { type: 'answered', content: error.message, is_error: true };
  // Of a server elsewhere: it was not reached, or refused the request itself.
  if ((error as { readonly sent?: boolean } | null)?.sent === false) return { type: 'not_started', why: `The server of ${tool} did not take the call: ${errorText(error)}` };
  // The SDK's word for a connection that was gone before anything was written.
  if (error instanceof Error && error.message === 'Not connected') return { type: 'not_started', why: `The server of ${tool} had just ended; nothing was sent.` };
  return { type: 'lost', why: `The server of ${tool} did not answer: ${errorText(error)}. Whether the call had an effect is not known.` };
}
