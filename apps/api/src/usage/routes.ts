/**
 * GET /v1/usage: what the tenant's runs have used.
 *
 * 1. Of runs that have ended, under the UTC day of their end. Each run's own part: sub-agents are runs of their own.
 * 2. Days are whole: a time within one stands for it. The answer says which days it covers.
 */
import { addUsage, noUsage, type Usage } from '@treadle/core';
import type { UsageRow } from '@treadle/engine';
import { z } from 'zod';
import { tenantOf } from '../auth/authenticate.ts';
import type { ApiContext } from '../dependencies.ts';
import { invalidRequest } from '../problem.ts';
import { json, problems, type ApiInstance } from '../server/api-types.ts';

/** Days that one answer covers at most, and where nothing is said. */
const mostDays = 366;
const usualDays = 30;
const dayMs = 24 * 3_600_000;

const form = /^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d))?$/;
const when = z.string().refine((text) => form.test(text) && !Number.isNaN(Date.parse(text)) && (text.length > 10 || dayOf(Date.parse(text)) === text),
  'expected an ISO 8601 date or time such as 2026-11-30 or 2026-11-30T12:00:00Z');
const groups = ['model', 'agent', 'day'] as const;
type Group = (typeof groups)[number];

const querystring = z.strictObject({
  group_by: z.enum(groups, `expected ${groups.join(', ')}`).default('model'),
  from: when.optional().describe(`The first UTC day. Default: ${usualDays - 1} days before the last.`),
  to: when.optional().describe(`The last UTC day; at most ${mostDays} days in all. Default: today.`),
});

const count = z.int().min(0);
const cost = z.number().min(0);
const sums = {
  runs: count.describe('Ended runs; by model, those that have asked it.'), input_tokens: count, output_tokens: count, cached_tokens: count.describe('Part of input_tokens.'),
  wasted_tokens: count.describe('Of attempts whose reply was not used; in no other count.'), cost_usd: cost, wasted_cost_usd: cost.describe('Part of cost_usd.'),
};
const groupSchema = z.strictObject({ model: z.string().optional(), agent: z.string().optional(), day: z.string().optional(), ...sums });
const answer = z.strictObject({
  from: z.string(), to: z.string(), group_by: z.enum(groups), data: z.array(groupSchema.describe('With the one of model, agent and day that was asked for.')), total: z.strictObject(sums),
});
type Sums = z.output<typeof answer>['total'];

export function usageRoutes(app: ApiInstance, { deps, store }: ApiContext): void {
  app.get('/v1/usage', {
    config: { scope: 'read' },
    schema: { tags: ['usage'], summary: 'Tokens and cost of ended runs', operationId: 'getUsage', querystring, response: { 200: json('Sums by group, sorted by its name, and over all', answer), ...problems(422) } },
  }, async (request) => {
    const { group_by, ...asked } = request.query;
    const { from, to } = rangeOf(asked, deps.clock.nowMs());
    const rows = await store().usage({ tenant: tenantOf(request), from_day: from, to_day: to });
    return { from, to, group_by, data: grouped(rows, group_by), total: summed(rows, (row) => row.model === null) };
  });
}

/** Throws the 422 `Problem` for a range that is empty or too long. */
function rangeOf({ from, to }: { readonly from?: string | undefined; readonly to?: string | undefined }, now_ms: number): { readonly from: string; readonly to: string } {
  const last = dayOf(to === undefined ? now_ms : Date.parse(to));
  const first = from === undefined ? dayOf(Date.parse(last) - (usualDays - 1) * dayMs) : dayOf(Date.parse(from));
  if (first > last) throw invalidRequest([{ path: 'from', problem: `expected a day up to ${last}, which is where the range ends` }]);
  if (Date.parse(last) - Date.parse(first) >= mostDays * dayMs) throw invalidRequest([{ path: 'from', problem: `expected at most ${mostDays} days up to ${last}` }]);
  return { from: first, to: last };
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

function grouped(rows: readonly UsageRow[], by: Group) {
  const groups = Map.groupBy(rows.filter((row) => row[by] !== null), (row) => row[by]!);
  return [...groups].sort(([one], [other]) => (one < other ? -1 : 1)).map(([name, of]) => ({ [by]: name, ...summed(of, (row) => by === 'model' || row.model === null) }));
}

/** Money is a sum of fractions: beyond a billionth of a cent it says nothing. */
const money = (usd: number): number => Number(usd.toFixed(12));

function summed(rows: readonly UsageRow[], countsRuns: (row: UsageRow) => boolean): Sums {
  const { input_tokens, output_tokens, cached_tokens, wasted_tokens, cost_usd, wasted_cost_usd = 0 } = rows.reduce<Usage>((sum, { usage }) => addUsage(sum, usage), noUsage);
  const runs = rows.filter((row) => countsRuns(row)).reduce((sum, row) => sum + row.runs, 0);
  return { runs, input_tokens, output_tokens, cached_tokens, wasted_tokens, cost_usd: money(cost_usd), wasted_cost_usd: money(wasted_cost_usd) };
}
