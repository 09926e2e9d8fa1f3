/** `mcp_servers`, `tools` and `functions`: where tools come from, and the host's own word on them. */
import { z } from 'zod';
import { isFunctionTool, type FunctionTool } from '../define-tool.ts';
import { later, notSupportedYet } from './later.ts';
import { timeoutMs } from './names.ts';

export const mcpServerSchema = z.strictObject({
  command: z.string({ error: `expected the program to start; servers by url are ${notSupportedYet}` }).min(1, 'expected the program to start'),
  url: later(),
  args: z.array(z.string()).default([]),
  /** Added to a short safe list of the worker's own variables; nothing else of them reaches the server. */
  env: z.record(z.string(), z.string()).default({}),
  /** Whether the server's hints about its tools count. */
  trusted: z.boolean().default(false),
  /** Calls at once per worker. */
  concurrency: z.int().min(1).max(1000).default(8),
  headers: later({}),
});

export const toolPolicySchema = z.strictObject({
  parallel: z.enum(['parallel', 'path', 'serial']).optional(),
  effect: z.enum(['read', 'idempotent', 'once']).optional(),
  timeout_ms: timeoutMs.optional(),
  path_args: later([]),
  roots: later([]),
  /** Who speaks when nobody knows whether a `once` call happened: the model is told so, or the run waits for a person. */
  on_unknown: z.enum(['report', 'ask']).optional(),
  approval: later('never'),
  approval_timeout_s: later(null),
  on_approval_timeout: later('deny'),
  max_total_ms: later(null),
  /** Asked again and again on purpose: identical calls are no loop. */
  polling: z.boolean().optional(),
});

export const functionToolSchema = z.custom<FunctionTool>(isFunctionTool, 'expected what defineTool() returns');
