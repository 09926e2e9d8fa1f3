/** A trial as the API shows it. */
import type { CanaryDecision, CanaryJudgement, CanaryReading } from '@treadle/engine';
import { z } from 'zod';

const numbers = z.record(z.string(), z.unknown()).describe('What it was made on.');
const status = z.enum(['active', 'paused', 'rolled_back']);

export const canarySchema = z.strictObject({
  chain: z.string(), model: z.string(), status, stage: z.int().describe('Percent of new runs that begin on the model. 0: it is the last of the chain; 100: the primary.'),
  stages: z.array(z.int()), min_runs: z.int(), bounds: z.strictObject({ error_rate_delta: z.number(), latency_ratio: z.number(), cost_ratio: z.number() }),
  since: z.string().describe('When the stage began.'),
  verdict: z.strictObject({ decision: z.enum(['hold', 'promote', 'rollback']), reason: z.string(), numbers }).describe('What the judge says now.'),
  decisions: z.array(z.strictObject({
    id: z.string(), at: z.string(), decision: z.enum(['promote', 'rollback', 'pause', 'set']), by: z.string().describe('`judge`, or who asked for it.'), model: z.string(),
    from_stage: z.int(), to_stage: z.int(), status, reason: z.string(), numbers,
  })).describe('The last 100, newest first.'),
});

/** In a list of chains. */
export const canaryLine = z.strictObject({ model: z.string(), stage: z.int(), status }).nullable();

export function canaryView({ state, decisions }: CanaryReading, { decision, reason, numbers: now }: CanaryJudgement): z.output<typeof canarySchema> {
  const { chain, definition: { model, stages, min_runs, bounds }, stage } = state;
  return {
    chain, model, status: state.status, stage, stages: [...stages], min_runs, bounds, since: new Date(state.since_ms).toISOString(),
    verdict: { decision, reason, numbers: now }, decisions: decisions.map(decisionView),
  };
}

function decisionView({ at_ms, ...decision }: CanaryDecision) {
  return { ...decision, at: new Date(at_ms).toISOString() };
}
