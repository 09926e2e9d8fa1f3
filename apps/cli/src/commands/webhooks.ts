/** `treadle webhooks …`: what was told of ended runs, and sending it again. */
import { parseArgs } from 'node:util';
import { ApiError, type Delivery, type DeliveryStatus, type Client } from '@treadle/client';
import { clientFromEnvironment } from '../server.ts';
import { CommandFailed, exitCodes } from '../setup.ts';

export const webhooksUsage = 'treadle webhooks ls [--status pending|delivered|dead] [--run ID] [--limit N] [--cursor C] | redeliver ID | redeliver --status dead|pending   [--json]';
const statuses: readonly DeliveryStatus[] = ['pending', 'delivered', 'dead'];

export async function webhooksCommand(args: string[]): Promise<number> {
  const { values: { json, status, run, limit, cursor }, positionals: [verb, id, ...more] } = parseArgs({
    args, allowPositionals: true,
    options: { json: { type: 'boolean', default: false }, status: { type: 'string' }, run: { type: 'string' }, limit: { type: 'string' }, cursor: { type: 'string' } },
  });
  const client = clientFromEnvironment(process.env);
  const write = (text: string): void => { process.stdout.write(text); };
  const wanted = statuses.find((each) => each === status);
  const filtered = status !== undefined || run !== undefined || limit !== undefined || cursor !== undefined;
  if (verb === 'ls' && id === undefined && (status === undefined) === (wanted === undefined) && /^\d{1,3}$/.test(limit ?? '50')) {
    const page = await client.deliveries({ ...(wanted === undefined ? {} : { status: wanted }), ...(run === undefined ? {} : { run_id: run }), ...(cursor === undefined ? {} : { cursor }), limit: Number(limit ?? 50) });
    write(json ? `${JSON.stringify(page)}\n` : page.data.map((each) => `${line(each)}\n`).join(''));
    if (!json && page.next_cursor !== null) write(`more: --cursor ${page.next_cursor}\n`);
    return exitCodes.done;
  }
  if (verb === 'redeliver' && id === undefined && (wanted === 'dead' || wanted === 'pending') && run === undefined && limit === undefined && cursor === undefined) {
    const ids = await redeliverAll(client, wanted);
    write(json ? `${JSON.stringify({ redelivered: ids.length, ids })}\n` : `${ids.length} are sent again\n`);
    return exitCodes.done;
  }
  if (verb !== 'redeliver' || id === undefined || more.length > 0 || filtered) throw new CommandFailed(exitCodes.badUsage, [`usage: ${webhooksUsage}`]);
  const sent = await client.redeliver(id);
  write(json ? `${JSON.stringify(sent)}\n` : `${sent.id} is sent again\n`);
  return exitCodes.done;
}

/** Every one that is in that state now, each once: one that comes into it again meanwhile lies behind the cursor. One that is under way, that somebody else has sent again, or deleted, is left out. */
async function redeliverAll(client: Client, status: DeliveryStatus): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<Client['deliveries']>> = await client.deliveries({ status, limit: 100, ...(cursor === null ? {} : { cursor }) });
    for (const { id } of page.data) {
      try {
        await client.redeliver(id);
        ids.push(id);
      } catch (error) {
        if (!(error instanceof ApiError && (error.status === 404 || error.status === 409))) throw error;
      }
    }
    cursor = page.next_cursor;
  } while (cursor !== null);
  return ids;
}

function line({ id, status, attempts, endpoint, url, last_error, next_attempt_at }: Delivery): string {
  const what = status === 'pending' ? `next ${next_attempt_at ?? ''}` : '';
  return [id, status.padEnd(9), `${attempts} attempts`, endpoint ?? url ?? '', what, last_error ?? ''].filter((part) => part !== '').join('  ');
}
