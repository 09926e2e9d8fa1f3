/**
 * Reads a server's whole tool list. Not by the SDK's `listTools`: that refuses the whole list for one broken tool, and keeps
 * output schemas by which later calls would fail although the tool ran.
 */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { z } from 'zod';

const maxPages = 100;
/** Characters and values of the whole list: far more than any run can use, and little enough to be held. */
const mostOfList = 16 * 1024 * 1024;
/** Some servers write null or an empty text for what is not there. */
const pageSchema = z.looseObject({ tools: z.array(z.unknown()).nullish(), nextCursor: z.string().nullish() });

/** @throws where the server does not come to the end of its list in time, or the list is too long to be kept. */
export async function readTools(client: Client, timeoutMs: number): Promise<readonly unknown[]> {
  const tools: unknown[] = [];
  let cursor: string | undefined;
  let room = mostOfList;
  const untilMs = performance.now() + timeoutMs;
  for (let pages = 0; pages < maxPages; pages++) {
    const params = cursor === undefined ? {} : { cursor };
    const answer: z.output<typeof pageSchema> = await client.request({ method: 'tools/list', params }, pageSchema, { timeout: Math.max(1, untilMs - performance.now()) });
    const page = answer.tools ?? [];
    room -= weightOf(page, room);
    if (room < 0) throw new Error('its list is too long');
    for (const tool of page) tools.push(tool);
    if (typeof answer.nextCursor !== 'string' || answer.nextCursor === '') return tools;
    if (answer.nextCursor === cursor) throw new Error('its list comes to no end');
    cursor = answer.nextCursor;
  }
  throw new Error(`more than ${maxPages} pages`);
}

/** Values, and characters of texts and names; counting ends beyond `enough`. Without recursion: it may be nested as deep as it likes. */
function weightOf(root: unknown, enough: number): number {
  const open: unknown[] = [root];
  let weight = 0;
  while (open.length > 0 && weight <= enough) {
    const value = open.pop();
    weight += typeof value === 'string' ? value.length + 1 : 1;
    if (typeof value !== 'object' || value === null) continue;
    for (const [key, each] of Object.entries(value)) {
      weight += key.length;
      open.push(each);
    }
  }
  return weight;
}
