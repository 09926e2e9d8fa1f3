/**
 * What runs have used, in Redis: one hash per shard, UTC day and tenant; a field per agent and model. A run is counted in the slot of its own
 * keys, by the script that also notes there that it was counted: however often it is finished, and whatever of the store is lost, the note
 * and the sums agree.
 */
import { noUsage, shardOf, type Usage } from '@treadle/core';
import type { RunDirectory, RunUse, UsageRow } from '@treadle/engine';
import { asReply } from './replies.ts';
import type { StoreParts } from './store-parts.ts';

const dayMs = 24 * 3_600_000;

/** For the script `finished`: where to count, until when to keep it, and what each field is raised by. */
export function countedUse({ keys, options }: StoreParts, run_id: string, { tenant, agent, day, models }: RunUse): string {
  return JSON.stringify({
    key: keys.usage(shardOf(run_id), day, tenant), expires_at: Date.parse(day) + (options.keepUsageDays + 1) * dayMs,
    fields: [[JSON.stringify([agent]), amounts(noUsage)], ...Object.entries(models).map(([model, usage]) => [JSON.stringify([agent, model]), amounts(usage)])],
  });
}

/** Of one run. */
function amounts({ input_tokens, output_tokens, cached_tokens, wasted_tokens, cost_usd, wasted_cost_usd = 0 }: Usage): number[] {
  return [1, input_tokens, output_tokens, cached_tokens, wasted_tokens, cost_usd, wasted_cost_usd];
}

export function createUsageSums({ run, keys, options }: StoreParts): Pick<RunDirectory, 'usage'> {
  return {
    usage: async ({ tenant, from_day, to_day }) => {
      const days = daysBetween(from_day, to_day);
      const shards = await Promise.all(Array.from({ length: options.shards }, async (_, shard) => {
        const [, ...sums] = asReply(await run('usage', { keys: days.map((day) => keys.usage(shard, day, tenant)), args: [] }));
        return days.flatMap((day, index) => rowsOf(day, sums[index] as string[]));
      }));
      return shards.flat();
    },
  };
}

function daysBetween(from_day: string, to_day: string): string[] {
  const count = Math.round((Date.parse(to_day) - Date.parse(from_day)) / dayMs) + 1;
  return Array.from({ length: Math.max(0, count) }, (_, index) => new Date(Date.parse(from_day) + index * dayMs).toISOString().slice(0, 10));
}

function rowsOf(day: string, flat: readonly string[]): UsageRow[] {
  return Array.from({ length: flat.length / 2 }, (_, index): UsageRow => {
    const [agent, model = null] = JSON.parse(flat[index * 2]!) as [string, string?];
    const [runs = 0, input_tokens = 0, output_tokens = 0, cached_tokens = 0, wasted_tokens = 0, cost_usd = 0, wasted_cost_usd = 0] = flat[index * 2 + 1]!.split(' ').map(Number);
    return { day, agent, model, runs, usage: { input_tokens, output_tokens, cached_tokens, wasted_tokens, cost_usd, ...(wasted_cost_usd > 0 ? { wasted_cost_usd } : {}) } };
  });
}
