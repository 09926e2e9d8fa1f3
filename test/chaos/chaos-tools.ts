/**
 * An MCP server over stdio whose tools take a moment before their effect and a moment after it: `node chaos-tools.ts`. Records in
 * `LEDGER_FILE` when a call begins and when its effect has happened; the answer comes `AFTER_MS` later.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { writeLedger, type LedgerPhase } from '@treadle/testkit';

const file = process.env.LEDGER_FILE;
if (file === undefined) throw new Error('LEDGER_FILE names no file');
const beforeMs = Number(process.env.BEFORE_MS ?? 10);
const afterMs = Number(process.env.AFTER_MS ?? 10);

const inputSchema = { type: 'object' as const, properties: { v: { type: 'string' }, ms: { type: 'number' } }, required: ['v'], additionalProperties: false };
const names = ['row', 'keyed_row', 'look'];

const server = new Server({ name: 'chaos-tools', version: '0.1.0' }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: names.map((name) => ({ name, description: `Chaos tool ${name}.`, inputSchema, annotations: { readOnlyHint: name === 'look' } })),
}));

server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
  const { v, ms } = (params.arguments ?? {}) as { v?: string; ms?: number };
  const meta = params._meta ?? {};
  const text = (key: string): string | null => (typeof meta[key] === 'string' ? meta[key] : null);
  const key = text('treadle/idempotency_key');
  const write = (phase: LedgerPhase): void => {
    writeLedger(file, { ts: Date.now(), phase, tool: params.name, run_id: text('treadle/run_id'), tool_use_id: text('treadle/tool_use_id'), idempotency_key: key, epoch: Number(meta['treadle/epoch']), input: { v } });
  };
  write('start');
  try {
    await pause(beforeMs + (ms ?? 0), undefined, { signal });
  } catch {
    write('cancelled');
    return { content: [{ type: 'text', text: 'cancelled' }], isError: true };
  }
  // A tool that takes a key makes its effect once per key; that is what keys are for.
  const marker = `${file}.${String(key).replaceAll(/[^\w.-]/g, '_')}`;
  const isNew = params.name !== 'keyed_row' || !existsSync(marker);
  if (params.name === 'keyed_row') writeFileSync(marker, '');
  if (isNew) write('end');
  await pause(afterMs);
  return { content: [{ type: 'text', text: `did ${String(v)}` }] };
});

await server.connect(new StdioServerTransport());
