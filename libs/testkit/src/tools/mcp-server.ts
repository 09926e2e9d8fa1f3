/**
 * A runnable MCP server over stdio with the test tools: `node mcp-server.ts`. Records every call in the file that
 * `LEDGER_FILE` names. Further switches, each standing for a server as they are found outside:
 *
 * - `MCP_PAGE_SIZE`: lists its tools in pages of that size.
 * - `MCP_BROKEN_TOOL=1`: offers two tools more, whose schemas are useless.
 * - `MCP_START_FAILS=1`: writes a line to stderr and exits before it answers anything.
 * - `MCP_IGNORE_CANCEL=1`: its tools never hear of a cancellation.
 */
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ErrorCode, ListToolsRequestSchema, McpError } from '@modelcontextprotocol/sdk/types.js';
import { runRecorded, type CallIdentity } from './ledger-tools.ts';
import { testTools } from './tool-table.ts';

const ledger = process.env.LEDGER_FILE;
if (ledger === undefined) throw new Error('LEDGER_FILE names no file');
if (process.env.MCP_START_FAILS === '1') {
  process.stderr.write('cannot find my settings\n');
  process.exit(3);
}

const good = testTools.map(({ name, description, input_schema, effect }) => (
  { name, description, inputSchema: input_schema, annotations: { readOnlyHint: effect === 'read' } }));
const broken = [
  { name: 'no_object', description: 'Its schema is no object schema.', inputSchema: { type: 'string' } },
  { name: 'nonsense', description: 'Its schema cannot be compiled.', inputSchema: { type: 'object', properties: { a: { type: 'nothing' } } } },
];
const offered: { name: string }[] = process.env.MCP_BROKEN_TOOL === '1' ? [...good, ...broken] : good;
const pageSize = Number(process.env.MCP_PAGE_SIZE ?? offered.length);

const server = new Server({ name: 'treadle-test-tools', version: '0.1.0' }, { capabilities: { tools: {} } });

server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
  const from = Number(params?.cursor ?? 0);
  const next = from + pageSize;
  const page = { tools: offered.slice(from, next), ...(next < offered.length ? { nextCursor: String(next) } : {}) };
  return page as never; // the broken tools are no tools by the SDK's types, which is their point
});

server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
  const tool = testTools.find((each) => each.name === params.name);
  if (tool === undefined) throw new McpError(ErrorCode.InvalidParams, `Unknown tool: ${params.name}`);
  const heard = process.env.MCP_IGNORE_CANCEL === '1' ? new AbortController().signal : signal;
  try {
    const text = await runRecorded(tool, params.arguments ?? {}, { file: ledger, signal: heard, identity: identityOf(params._meta) });
    return { content: [{ type: 'text', text }] };
  } catch (error) {
    return { content: [{ type: 'text', text: error instanceof Error ? error.message : String(error) }], isError: true };
  }
});

function identityOf(meta: Readonly<Record<string, unknown>> | undefined): CallIdentity {
  const text = (key: string): string | null => (typeof meta?.[key] === 'string' ? meta[key] : null);
  const epoch = meta?.['treadle/epoch'];
  return {
    run_id: text('treadle/run_id'), tool_use_id: text('treadle/tool_use_id'), idempotency_key: text('treadle/idempotency_key'),
    epoch: typeof epoch === 'number' ? epoch : null,
  };
}

await server.connect(new StdioServerTransport());
