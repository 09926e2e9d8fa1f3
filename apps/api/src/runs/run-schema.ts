/** The run as the API shows it (contract, section 5), for the OpenAPI file; a test holds answers against it. */
import { limitRules } from '@treadle/config';
import { limitNames, pauseReasons, runStatuses, stopReasons } from '@treadle/core';
import { z } from 'zod';

const when = z.string().describe('ISO 8601, UTC').nullable();
const count = z.int().min(0);

export const limitsShown = z.strictObject({
  ...Object.fromEntries(limitNames.map((name) => [name, limitRules[name].nullable ? z.number().nullable() : z.number()])),
  turn_timeout_s: z.union([z.number(), z.strictObject({ first: z.number(), default: z.number() })]),
});

export const runSchema = z.strictObject({
  id: z.string(),
  session_id: z.string(),
  parent_run_id: z.string().nullable(),
  forked_from: z.unknown(),
  agent: z.string(),
  agent_version: z.string(),
  chain: z.string(),
  status: z.enum(runStatuses),
  stop_reason: z.enum(stopReasons as [string, ...string[]]).nullable(),
  pause_reason: z.enum(pauseReasons).nullable(),
  resumes_at: when,
  answer: z.string().nullable(),
  output: z.unknown(),
  checks: z.array(z.unknown()),
  turn_number: count,
  tool_calls: count,
  usage: z.strictObject({
    input_tokens: count, output_tokens: count, cached_tokens: count, wasted_tokens: count, cost_usd: z.number().min(0),
    wasted_cost_usd: z.number().min(0).optional().describe('Part of cost_usd; absent where nothing was wasted.'),
  }),
  model: z.string().nullable(),
  recoveries: z.record(z.string(), count),
  pending: z.array(z.unknown()),
  partial: z.record(z.string(), z.unknown()).nullable(),
  error: z.record(z.string(), z.unknown()).nullable(),
  limits: limitsShown,
  metadata: z.record(z.string(), z.unknown()),
  tags: z.array(z.string()),
  priority: z.int().min(1).max(100),
  run_at: when,
  last_seq: count.describe('The seq of the newest event.'),
  archived_seq: count.describe('Events up to this one are in the archive.'),
  created_at: when,
  started_at: when,
  ended_at: when,
});

export const runParams = z.object({ run_id: z.string() });
export const callParams = z.object({ run_id: z.string(), tool_use_id: z.string() });
