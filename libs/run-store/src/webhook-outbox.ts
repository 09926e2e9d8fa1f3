/**
 * What is to be told of ended runs, in Redis: a hash for each delivery, a list by time for each lane of a tenant, his lanes and the tenants by when to look
 * at them, all in the run's own slot. A delivery is due by Redis' clock, hidden for its lease in the script that hands it out, and settled by the number of that taking.
 */
import { shardOf, type WebhookTarget } from '@treadle/core';
import type { DeliveryDirectory, DeliveryState, DeliveryUpkeep, ListDeliveries, NewDelivery, StoredDelivery, TakenDelivery } from '@treadle/engine';
import { asReply, unknownReply } from './replies.ts';
import { mergePages } from './run-list.ts';
import type { StoreParts } from './store-parts.ts';

const hourMs = 3_600_000;
/** How long one that has ended is kept, to be looked at and to be sent again. */
const keepMs = { delivered: 24 * hourMs, dead: 7 * 24 * hourMs } as const;
/** Of a tenant and shard: beyond that the oldest of those that have ended go. */
const mostEnded = 1000;
/** What was kept long enough is dropped at most so fast, so that no script takes long. */
const drops = 20;
/** Deliveries that one shard looks at for one page. */
const scanLimit = 1000;
/** Fields of a row in a page (webhooks_list.lua). */
const rowLength = 9;
/** Of a delivery that was handed out (webhooks_take.lua). */
const takenLength = 7;

/** For the script `finished`: two arguments. */
export function writtenDelivery({ keys }: StoreParts, run_id: string, delivery: NewDelivery | null): [string, string] {
  if (delivery === null) return ['', ''];
  const { tenant, target, lane, body } = delivery;
  return [JSON.stringify({ keys: keys.webhooks(shardOf(run_id)), run_id, tenant, target: JSON.stringify(target), lane }), body];
}

export function createWebhookOutbox(parts: StoreParts): DeliveryDirectory & DeliveryUpkeep {
  const { run, keys, options } = parts;

  async function asked(script: 'webhook_settle' | 'webhook_again', run_id: string, body: object): Promise<string> {
    const webhooks = keys.webhooks(shardOf(run_id));
    return asReply(await run(script, { keys: [webhooks.tenants], args: [JSON.stringify({ keys: webhooks, run_id, ...body })] }))[0];
  }

  async function page(shard: number, tenant: string, query: object): Promise<{ scanned_to: string | null; rows: StoredDelivery[] }> {
    const { list, delivery } = keys.webhooks(shard);
    const args = [JSON.stringify({ tenant, limit: 1, scan: scanLimit, ...query }), delivery];
    const [, scanned_to, ...flat] = asReply(await run('webhooks_list', { keys: [list.replace('*', () => tenant)], args }));
    const rows = Array.from({ length: flat.length / rowLength }, (_, index) => rowOf(flat.slice(index * rowLength, (index + 1) * rowLength) as string[]));
    return { scanned_to: scanned_to === '' ? null : scanned_to as string, rows };
  }

  return {
    takeDeliveries: async (shard, take) => {
      const webhooks = keys.webhooks(shard);
      const [, ...flat] = asReply(await run('webhooks_take', { keys: [webhooks.tenants], args: [JSON.stringify({ keys: webhooks, drops, ...take })] }));
      return Array.from({ length: flat.length / takenLength }, (_, index) => takenOf(flat.slice(index * takenLength, (index + 1) * takenLength)));
    },
    settleDelivery: async ({ run_id, taken }, how) => {
      const reply = await asked('webhook_settle', run_id, {
        taken, most_ended: mostEnded, ...how, ...('status' in how && how.status === null ? { status: undefined } : {}),
        ...(how.type === 'delivered' || how.type === 'dead' ? { keep_ms: keepMs[how.type] } : {}),
      });
      if (reply !== 'settled' && reply !== 'stale') throw unknownReply('webhook_settle', [reply]);
      return reply;
    },
    redeliver: async ({ run_id, tenant, request_id, not_after_ms }) => {
      const reply = await asked('webhook_again', run_id, { tenant, request_id, not_after_ms });
      if (reply !== 'due' && reply !== 'pending' && reply !== 'missing' && reply !== 'too_late') throw unknownReply('webhook_again', [reply]);
      return reply;
    },
    restoreDelivery: async (run_id, delivery) => {
      const { tenants } = keys.webhooks(shardOf(run_id));
      const [header, body] = writtenDelivery(parts, run_id, delivery);
      const reply = asReply(await run('webhook_restore', { keys: [tenants], args: [header, body] }));
      if (reply[0] !== 'restored' && reply[0] !== 'exists') throw unknownReply('webhook_restore', reply);
      return reply[0];
    },
    delivery: async (run_id, tenant) => (await page(shardOf(run_id), tenant, { run_id })).rows[0] ?? null,
    deliveries: async ({ tenant, state, before_id, limit }: ListDeliveries) => {
      const pages = await Promise.all(Array.from({ length: options.shards }, (_, shard) => page(shard, tenant, { limit, state: state ?? undefined, before: before_id ?? undefined })));
      const known = new Map(pages.flatMap(({ rows }) => rows.map((row) => [row.run_id, row] as const)));
      const { run_ids, next_before_id } = mergePages(pages.map(({ scanned_to, rows }) => ({ scanned_to, run_ids: rows.map(({ run_id }) => run_id) })), limit);
      return { deliveries: run_ids.map((id) => known.get(id)!), next_before_id };
    },
  };
}

function takenOf([run_id, taken, tries, tenant, target, lane, body]: readonly unknown[]): TakenDelivery {
  return { run_id: run_id as string, taken: Number(taken), tries: Number(tries), tenant: tenant as string, target: JSON.parse(target as string) as WebhookTarget, lane: lane as string, body: body as string };
}

function rowOf([run_id, target, state, attempts, last_at, last_status, last_error, due, created]: readonly string[]): StoredDelivery {
  const number = (text = ''): number | null => text === '' ? null : Number(text);
  return {
    run_id: run_id!, target: JSON.parse(target!) as WebhookTarget, state: state as DeliveryState, attempts: Number(attempts), last_attempt_ms: number(last_at),
    last_status: number(last_status), last_error: last_error === '' ? null : last_error!, next_attempt_ms: number(due), created_ms: Number(created),
  };
}
