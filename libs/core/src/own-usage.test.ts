/** Whose tokens and whose money: each model's part, the sub-agents' left out, the wasted ones apart. */
import { expect, test } from 'vitest';
import { lookAhead } from './codec.ts';
import type { EventBody } from './events.ts';
import { fixture } from './fixture.ts';
import { ownUsage } from './own-usage.ts';
import { addUsage, asWaste, costOf, noUsage, withoutUsage, type Usage } from './usage.ts';

const used = (input_tokens: number, cost_usd = 0): Usage => ({ ...noUsage, input_tokens, cost_usd });
const asked = (model: string, position: number): EventBody => (
  { type: 'model_request', model, provider: 'p', chain: 'c', position, canary: false, skipped: [], estimated_tokens: 0, message_count: 1 });
const said = (usage: Usage): EventBody => ({ type: 'assistant_text', content: 'x', is_final: true, attempt: 1, usage });
const failed = (model: string, usage: Usage): EventBody => (
  { type: 'error', error_type: 'overloaded', action: 'fallback', site: 'fallback_model', model, from_model: model, to_model: 'm2', detail: '', retry_in: 0, consecutive_errors: 0, usage });
const compacted = (model: string, usage: Usage): EventBody => (
  { type: 'compaction', level: 'summary', site: 'proactive_compaction', tokens_before: 2, tokens_after: 1, generation: 2, removed: [], replaced: [], usage, model });
const limit = (model: string, usage: Usage): EventBody => ({ type: 'max_iterations', limit: 'max_turns', iterations: 1, last_action_summary: '', state: {}, summary: '', usage, model });
const child = (usage: Usage): EventBody[] => [
  { type: 'child_run', child_run_id: 'run_y', tool_use_id: 'u', agent: 'b', status: 'queued', limits: { tool_budget: 1, max_total_tokens: null, max_cost_usd: null, max_depth: 0 } },
  { type: 'child_run', child_run_id: 'run_y', tool_use_id: 'u', agent: 'b', status: 'completed', usage, tool_calls: 1 }];
const endOfTurn = (usage: Usage): EventBody => ({ type: 'turn_end', duration: 1, usage });
const next: EventBody = { type: 'turn_start', attempt: 1, worker: 'w' };

const of = (...events: EventBody[]) => {
  const state = lookAhead(fixture(), events);
  const own = ownUsage(state);
  // Whatever happened: the parts are the whole.
  expect(Object.values(own).reduce(addUsage, state.children_usage)).toEqual(addUsage(state.usage, state.turn_usage));
  return Object.fromEntries(Object.entries(own).map(([model, usage]) => [model, usage.input_tokens + usage.wasted_tokens]));
};

test.each<[string, EventBody[], Record<string, number>]>([
  ['nobody was asked', [], {}],
  ['one model, in an open turn', [asked('m1', 0), said(used(5))], { m1: 5 }],
  ['one model, over two turns', [asked('m1', 0), said(used(5)), endOfTurn(used(5)), next, asked('m1', 0), said(used(7)), endOfTurn(used(7))], { m1: 12 }],
  ['a model that cost nothing is there all the same', [asked('m1', 0)], { m1: 0 }],
  ['a hop: what failed is its own model’s', [asked('m1', 0), failed('m1', used(3)), endOfTurn(asWaste(used(3))), next, asked('m2', 1), said(used(4)), endOfTurn(used(4))], { m1: 3, m2: 4 }],
  ['there and back again', [asked('m1', 0), said(used(1)), asked('m2', 1), said(used(10)), asked('m1', 0), said(used(100))], { m1: 101, m2: 10 }],
  ['a sub-agent counts for itself', [asked('m1', 0), said(used(5)), ...child(used(1000))], { m1: 5 }],
  ['a sub-agent that ends between two models', [asked('m1', 0), said(used(5)), ...child(used(1000)), asked('m2', 1), said(used(6))], { m1: 5, m2: 6 }],
  ['a summary by the model of the turns', [asked('m1', 0), compacted('m1', used(8)), said(used(5))], { m1: 13 }],
  ['a summary by another one', [asked('m1', 0), compacted('m2', used(8)), said(used(5))], { m1: 5, m2: 8 }],
  ['a summary before anybody was asked', [compacted('m2', used(8)), asked('m1', 0), said(used(5))], { m1: 5, m2: 8 }],
  ['a last summary by another one', [asked('m1', 0), said(used(5)), endOfTurn(used(5)), limit('m2', used(9))], { m1: 5, m2: 9 }],
])('%s', (_name, events, expected) => {
  expect(of(...events)).toEqual(expected);
});

test('what was wasted is in the cost, and told apart', () => {
  const waste = asWaste({ ...used(3, 0.5), output_tokens: 2 });
  expect(waste).toEqual({ ...noUsage, wasted_tokens: 5, cost_usd: 0.5, wasted_cost_usd: 0.5 });
  expect(addUsage(waste, used(1, 0.25))).toEqual({ ...noUsage, input_tokens: 1, wasted_tokens: 5, cost_usd: 0.75, wasted_cost_usd: 0.5 });
  expect(addUsage(used(1), used(2))).not.toHaveProperty('wasted_cost_usd');
  expect(withoutUsage(addUsage(used(1, 0.1), used(1, 0.2)), used(1, 0.3000000000000001)).cost_usd).toBe(0);
});

test.each<[string, Partial<Usage>, object, number]>([
  ['input and output', { input_tokens: 1_000_000, output_tokens: 500_000 }, {}, 6],
  ['cached input costs what other input does', { input_tokens: 1_000_000, cached_tokens: 400_000 }, {}, 2],
  ['or less, where its price says so', { input_tokens: 1_000_000, cached_tokens: 400_000 }, { cached_input_per_mtok: 0.5 }, 1.4],
  ['or nothing', { input_tokens: 1_000_000, cached_tokens: 1_000_000 }, { cached_input_per_mtok: 0 }, 0],
  ['more from the cache than there was is what there was', { input_tokens: 1_000_000, cached_tokens: 9_000_000 }, { cached_input_per_mtok: 1 }, 1],
])('a price: %s', (_name, usage, price, expected) => {
  expect(costOf({ ...noUsage, ...usage }, { input_per_mtok: 2, output_per_mtok: 8, ...price })).toBeCloseTo(expected, 12);
});
