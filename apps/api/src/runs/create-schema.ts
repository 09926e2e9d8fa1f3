/** What may be asked of a new run, and what a later release will take: that is named as such and refused. */
import { limitRules } from '@treadle/config';
import { isId, limitNames, utf8Length, type LimitName } from '@treadle/core';
import { z } from 'zod';

/** Decoded bytes of one image. */
export const maxImageBytes = 5 * 1024 * 1024;
const maxMetadataBytes = 16 * 1024;

const textPart = z.strictObject({ type: z.literal('text'), text: z.string() });
const imagePart = z.strictObject({
  type: z.literal('image'),
  media_type: z.enum(['image/png', 'image/jpeg', 'image/gif', 'image/webp']),
  data: z.string().superRefine((data, context) => {
    const problem = base64Problem(data);
    if (problem !== null) context.addIssue({ code: 'custom', message: problem });
  }).describe('Base64 without a prefix, at most 5 MiB when decoded.'),
});

const someInput = 'expected a text, or a list of parts: {"type":"text","text":…} or {"type":"image","media_type":…,"data":…}';

export const inputSchema = z.union([
  z.string(),
  z.array(z.discriminatedUnion('type', [textPart, imagePart])).min(1).max(100),
], { error: (issue) => (issue.input === undefined ? `is missing; ${someInput}` : someInput) }).refine(saysSomething, 'expected some text or an image');

/** The upper end is the agent's business, but for a part, which has one of its own. */
function limit(name: LimitName) {
  const { kind, lowest, highest, nullable } = limitRules[name];
  const number = kind === 'count' ? z.int().min(lowest) : kind === 'part' ? z.number().min(lowest).max(highest) : z.number().gt(lowest);
  return nullable ? number.nullable().optional().describe('Null: no limit.') : number.optional();
}

const seconds = z.number().gt(0);
const turnTimeout = z.union([seconds, z.strictObject({ first: seconds, default: seconds })], { error: 'expected a positive number or {first, default}' })
  .optional().describe('A number, or a time of its own for the first turn.');

export const limitsSchema = z.strictObject({
  ...Object.fromEntries(limitNames.map((name) => [name, limit(name)])) as Record<LimitName, ReturnType<typeof limit>>,
  turn_timeout_s: turnTimeout,
});

export const metadataSchema = z.record(z.string().max(256), z.unknown())
  .refine((metadata) => utf8Length(JSON.stringify(metadata)) <= maxMetadataBytes, `expected at most ${maxMetadataBytes} bytes of JSON`);

export const tagsSchema = z.array(z.string().min(1).max(64)).max(20);

const endpointName = z.string().min(1).max(128);

/** A text is the address; what it must be beyond that is said by `targetProblem`, which knows the configuration. */
export const webhookSchema = z.union([
  z.string().describe('The address.'), z.strictObject({ url: z.string() }), z.strictObject({ endpoint: endpointName.describe('Of `webhooks` in the configuration.') }),
], { error: 'expected a URL, {"url":…} or {"endpoint":…}' }).optional()
  .describe('Told once the run has ended, signed, at least once. An address that no endpoint of the configuration has is signed with `TREADLE_WEBHOOK_SECRET`.');

export const createRunSchema = z.strictObject({
  agent: z.string().min(1).max(128).optional(),
  input: inputSchema,
  limits: limitsSchema.default({}),
  metadata: metadataSchema.default({}),
  tags: tagsSchema.default([]).describe('Repeated ones count once.'),
  priority: z.int().min(1).max(100).default(50).describe('1 is served first.'),
  run_at: z.iso.datetime({ offset: true }).refine(hasFourDigitYear, 'expected a time in the years 0000 to 9999, UTC').optional().describe('ISO 8601; a time that has passed means at once.'),
  session_id: z.string().refine((id) => isId('ses', id), 'expected the id of a session').optional().describe('The run goes on from what the session has said.'),
  webhook: webhookSchema,
  on_busy: z.enum(['reject', 'queue', 'interrupt', 'steer']).default('reject').describe('What happens while the session\'s current run has not ended.'),
  chain: z.string().min(1).max(128).optional().describe('Another chain of the configuration than the agent\'s.'),
});

export type CreateRunBody = z.output<typeof createRunSchema>;

export const idempotencyKey = z.string().regex(/^[\x20-\x7e]{1,255}$/, 'expected 1 to 255 printable ASCII characters').optional();

/** What is not a valid `traceparent` counts as not sent: a broken tracer must not keep runs out. */
export const createHeaders = z.object({
  'idempotency-key': idempotencyKey, traceparent: z.string().optional().describe('W3C Trace Context: the run becomes a part of this trace. Ignored where it is not valid.'),
});

const laterFields = ['concurrency_key', 'start_within_s'] as const;

/** The paths of what a later release will take, in a body that may be anything. */
export function laterFieldsOf(body: unknown): string[] {
  if (!isObject(body)) return [];
  const fields: string[] = laterFields.filter((name) => Object.hasOwn(body, name));
  const { input } = body;
  if (Array.isArray(input)) {
    input.slice(0, 100).forEach((part: unknown, index) => {
      if (isObject(part) && part.type === 'image' && Object.hasOwn(part, 'url')) fields.push(`input.${index}.url`);
    });
  }
  return fields;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** An offset can lead out of what ISO 8601 writes with four digits. */
function hasFourDigitYear(time: string): boolean {
  return /^\d{4}-/.test(new Date(time).toISOString());
}

/** A model refuses a request without any text or image, so a run of nothing could only fail. */
function saysSomething(input: string | readonly { readonly type: string; readonly text?: string }[]): boolean {
  if (typeof input === 'string') return input.trim() !== '';
  return input.some((part) => part.type !== 'text' || part.text?.trim() !== '');
}

function base64Problem(data: string): string | null {
  if (data.length === 0 || data.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(data)) return 'expected base64 without a prefix';
  const bytes = data.length / 4 * 3 - (data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0);
  return bytes > maxImageBytes ? `expected at most ${maxImageBytes} bytes when decoded` : null;
}
