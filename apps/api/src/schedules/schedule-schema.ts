/** What a schedule may say, and how it is shown. */
import type { Schedule } from '@treadle/engine';
import { z } from 'zod';
import { createRunSchema, limitsSchema, metadataSchema, tagsSchema } from '../runs/create-schema.ts';

const { agent, input, priority, session_id, chain, webhook } = createRunSchema.shape;

/** A run as for POST /v1/runs; when it begins is the schedule's business, and a schedule makes runs: it does not steer one. */
const scheduledRunSchema = z.strictObject({
  agent, input, limits: limitsSchema.default({}), metadata: metadataSchema.default({}), tags: tagsSchema.default([]), priority, session_id, chain, webhook,
  on_busy: z.enum(['reject', 'queue', 'interrupt'], { error: 'expected reject, queue or interrupt' }).default('reject').describe('What happens while the session\'s current run has not ended.'),
});

export type ScheduledRunBody = z.output<typeof scheduledRunSchema>;

const cron = z.string().max(1000).describe('Five fields (minute, hour, day of month, month, day of week), or @hourly, @daily, @weekly, @monthly, @yearly.');
const timezone = z.string().max(200).describe('IANA name, e.g. Europe/Berlin.');
const name = z.string().min(1).max(128).nullable();
/** The run's id begins with the time it was due at, and lists look no further back for a run that was made just now. */
const catchUp = z.int().min(10).max(3600).describe('Seconds that a run may be late: of the times that were missed the latest is made up for within them.');

export const createScheduleSchema = z.strictObject({
  cron, timezone: timezone.default('UTC'), run: scheduledRunSchema, name: name.default(null), paused: z.boolean().default(false), catch_up_s: catchUp.default(3600),
});

export type CreateScheduleBody = z.output<typeof createScheduleSchema>;

export const changeScheduleSchema = z.strictObject({
  cron: cron.optional(), timezone: timezone.optional(), run: scheduledRunSchema.optional().describe('Takes the place of what is there.'), name: name.optional(), paused: z.boolean().optional(), catch_up_s: catchUp.optional(),
}).refine((body) => Object.values(body).some((value) => value !== undefined), 'expected something to change');

export type ChangeScheduleBody = z.output<typeof changeScheduleSchema>;

export const scheduleParams = z.object({ schedule_id: z.string().max(200) });

const when = z.string().describe('ISO 8601, UTC').nullable();
const count = z.int().min(0);

export const scheduleSchema = z.strictObject({
  id: z.string(), name: z.string().nullable(), cron: z.string(), timezone: z.string(), catch_up_s: z.int(), paused: z.boolean(),
  run: z.strictObject({
    agent: z.string(), input: z.unknown(), limits: z.record(z.string(), z.unknown()), metadata: z.record(z.string(), z.unknown()), tags: z.array(z.string()), priority: z.int(),
    session_id: z.string().nullable(), on_busy: z.enum(['reject', 'queue', 'interrupt']), chain: z.string().nullable(),
    webhook: z.union([z.strictObject({ url: z.string() }), z.strictObject({ endpoint: z.string() })]).nullable(),
  }),
  created_at: when, next_run_at: when.describe('Null while it is paused.'),
  last_run_at: when.describe('The time that the last run was due at.'), last_run_id: z.string().nullable(),
  last_error: z.strictObject({ due_at: z.string(), code: z.string(), message: z.string() }).nullable().describe('Why the last time that was to make a run made none; null once one does again.'),
  counts: z.strictObject({ fired: count, skipped: count.describe('Times that were missed; of a long gap at most 500 are counted.'), failed: count }),
});

export type ScheduleView = z.output<typeof scheduleSchema>;

const timeOf = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

export function scheduleView({ id, definition, paused, created_at_ms, next_ms, last, last_error, fired, skipped, failed }: Schedule): ScheduleView {
  const { run, ...rules } = definition;
  return {
    id, name: rules.name, cron: rules.cron, timezone: rules.timezone, catch_up_s: rules.catch_up_s, paused,
    run: { ...run, limits: { ...run.limits }, metadata: { ...run.metadata }, tags: [...run.tags] },
    created_at: timeOf(created_at_ms), next_run_at: paused ? null : timeOf(next_ms), last_run_at: timeOf(last?.due_ms ?? null), last_run_id: last?.run_id ?? null,
    last_error: last_error === null ? null : { due_at: new Date(last_error.due_ms).toISOString(), code: last_error.code, message: last_error.message },
    counts: { fired, skipped, failed },
  };
}
