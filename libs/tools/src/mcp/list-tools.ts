/**
 * Reads a server's whole tool list. Not by the SDK's `listTools`: that refuses the whole list for one broken tool, and keeps
 * output schemas by which later calls would fail although the tool ran.
 */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { z } from 'zod';

const maxPages = 100;
const pageSchema = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });

/** @throws where the server does not come to the end of its list in time. */
export async function readTools(client: Client, timeoutMs: number): Promise<readonly unknown[]> {
  const tools: unknown[] = [];
  let cursor: string | undefined;
  const untilMs = performance.now() + timeoutMs;
  for (let page = 0; page < maxPages; page++) {
    const params = cursor === undefined ? {} : { cursor };
    const answer = await client.request({ method: 'tools/list', params }, pageSchema, { timeout: Math.max(1, untilMs - performance.now()) });
    tools.push(...answer.tools);
    cursor = answer.nextCursor;
    if (cursor === undefined) return tools;
  }
  throw new Error(`more than ${maxPages} pages`);
}
