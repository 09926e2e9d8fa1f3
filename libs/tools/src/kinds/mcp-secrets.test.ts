/** The host's secrets in what MCP servers say of themselves: in descriptions, in refusals, in their last words; whole, or cut in the middle. */
import { testSpec, testTool } from '@treadle/testkit';
import { afterEach, expect, test } from 'vitest';
import { callOf } from '../test-call.ts';
import { createToolRunner, type OpenToolRunner } from '../tool-runner.ts';
import type { McpServerSource } from '../sources.ts';

const secret = 'key-abcdefghijklmnopqrstuvwxyz';
/** The shortest piece of it that says anything. */
const piece = /abcdef|uvwxyz/;
let runner: OpenToolRunner | null = null;
afterEach(() => runner?.close());

function runnerWith(server: McpServerSource, fetch?: typeof globalThis.fetch): OpenToolRunner {
  runner = createToolRunner({ functions: [], mcpServers: { web: server }, policies: {}, secrets: [secret], ...(fetch === undefined ? {} : { fetch }) });
  return runner;
}

/** Has one tool, and refuses every call with these words. */
function saying(description: string, refusal: string): typeof globalThis.fetch {
  return async (_, init) => {
    if (typeof init?.body !== 'string') return new Response(null, { status: 405 });
    const { id, method } = JSON.parse(init.body) as { readonly id?: number; readonly method: string };
    if (id === undefined) return new Response(null, { status: 202 });
    if (method === 'tools/call') return new Response(refusal, { status: 400 });
    const inputSchema = { type: 'object', properties: { key: { type: 'string', default: secret } } };
    const result = method === 'tools/list' ? { tools: [{ name: 'go', description, inputSchema }] } : { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'web', version: '1' } };
    return Response.json({ jsonrpc: '2.0', id, result });
  };
}

test('what a server says of its tools is shown without them', async () => {
  const { tools } = await runnerWith({ url: 'http://web.example/mcp', headers: {}, trusted: false, concurrency: 1 }, saying(`Reads https://x.example/?key=${secret}.`, '')).catalogue(testSpec({ tools: ['web/*'] }));
  expect(tools).toMatchObject([{ description: 'Reads https://x.example/?key=[redacted].', input_schema: { properties: { key: { default: '[redacted]' } } } }]);
});

test.each(Array.from({ length: 8 }, (_, index) => 200 + index * 12))('a refusal is cut behind what is hidden of it: %i characters before', async (before) => {
  const { run } = runnerWith({ url: 'http://web.example/mcp', headers: {}, trusted: false, concurrency: 1 }, saying('', `${'.'.repeat(before)}${secret}${'.'.repeat(300)}`));
  const { content } = await run(callOf(testTool('web/go'), {}));
  expect(content).toContain('HTTP 400');
  expect(content).not.toMatch(piece);
});

test.each([[0, 280], [0, 290], [1700, 2000], [1000, 1975]])('the last words of a server are cut behind it: %i characters before, %i after', async (before, after) => {
  const script = `process.stderr.write('.'.repeat(${before}) + ' ' + process.env.KEY + ' '.padEnd(${after}, '-')); process.exitCode = 1;`;
  const { problems } = await runnerWith({ command: process.execPath, args: ['-e', script], env: { KEY: secret }, trusted: false, concurrency: 1 }).catalogue(testSpec({ tools: ['web/*'] }));
  expect(problems).toEqual([expect.stringContaining('its last words') as string]);
  expect(problems[0]).not.toMatch(piece);
});
