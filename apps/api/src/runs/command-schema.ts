/** What commands may say. */
import { utf8Length, type Limits } from '@treadle/core';
import { z } from 'zod';
import { idempotencyKey, inputSchema, limitsSchema, metadataSchema, tagsSchema } from './create-schema.ts';

const maxSteerBytes = 32 * 1024;

export const commandHeaders = z.object({ 'idempotency-key': idempotencyKey });

/** No body is an empty one. */
export const resumeSchema = z.strictObject({ input: inputSchema.optional() }).nullish();

export const steerSchema = z.strictObject({
  text: z.string().refine((text) => text.trim() !== '', 'expected some text')
    .refine((text) => utf8Length(text) <= maxSteerBytes, `expected at most ${maxSteerBytes} bytes`).describe('Up to 32 KiB of UTF-8.'),
});

/** What the model is told of a call is an observation like any other. */
const maxContentBytes = 32 * 1024;

export const outcomeSchema = z.strictObject({
  outcome: z.enum(['happened', 'did_not_happen']),
  content: z.string().refine((text) => utf8Length(text) <= maxContentBytes, `expected at most ${maxContentBytes} bytes`).optional()
    .describe('What the model gets as the result of the call; without it the host says what is known.'),
});

const maxReason = 2000;

export const approvalSchema = z.strictObject({
  decision: z.enum(['approve', 'deny']),
  input: z.record(z.string(), z.unknown()).optional().describe('With approve: the arguments that are approved instead of the model\'s. They have to fit the tool\'s schema.'),
  reason: z.string().min(1).max(maxReason).optional().describe('Kept in the log; of a denied call the model is told.'),
  digest: z.string().min(1).max(100).optional().describe('Of the call as it was seen (`pending[].digest`): if it waits with other arguments by now, nothing is decided.'),
}).refine(({ decision, input }) => decision === 'approve' || input === undefined, { path: ['input'], error: 'a call that is denied has no other arguments' });

export type ApprovalBody = z.output<typeof approvalSchema>;

export const updateSchema = z.strictObject({
  metadata: metadataSchema.optional().describe('Takes the place of what is there.'),
  tags: tagsSchema.optional().describe('Take the place of those that are there.'),
  limits: limitsSchema.optional().describe('Those named; up to the agent\'s maxima.'),
}).refine((body) => Object.values(body).some((value) => value !== undefined), 'expected metadata, tags or limits');

export type UpdateBody = z.output<typeof updateSchema>;

/** Limits that were named. */
export function namedLimits(limits: z.output<typeof limitsSchema>): Partial<Limits> {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined));
}
