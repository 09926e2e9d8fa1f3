/** Where a reader of a log stands, and what it wants to see. */
import { eventTypes } from '@treadle/core';
import { z } from 'zod';
import { Problem } from '../problem.ts';
import { decodeCursor, pageLimit } from '../server/api-types.ts';

const knownTypes = new Set<string>(eventTypes);

const typesSchema = z.string().max(2000).transform((text) => text.split(',')).superRefine((types, context) => {
  for (const type of types) if (!knownTypes.has(type)) context.addIssue({ code: 'custom', message: `unknown event type "${type.slice(0, 50)}"` });
}).describe('Comma-separated event types.');

export const eventsQuery = z.strictObject({
  after: z.string().optional().describe('Only events after this seq.'),
  types: typesSchema.optional(),
  limit: pageLimit.optional().describe('Of a JSON page; default 100.'),
  cursor: z.string().max(200).optional().describe('Of a JSON page.'),
});

/** `Last-Event-ID` is checked by `positionOf`, since an empty one means none. */
export const eventsHeaders = z.object({
  'last-event-id': z.string().optional(),
  'treadle-last-epoch': z.string().regex(/^\d{1,15}$/, 'expected the epoch of the event that Last-Event-ID names').optional()
    .describe('The epoch of the event that Last-Event-ID names: so it is known for certain whether that event was lost.'),
});

/** What was asked for, in the order in which it counts: a reconnecting browser repeats its URL and adds the header. */
export interface AskedPosition { readonly lastEventId?: string | undefined; readonly cursor?: string | undefined; readonly after?: string | undefined }

export interface Position {
  /** What named it, for errors. */
  readonly path: string;
  /** The seq after which to read. */
  readonly seq: number;
}

/** Throws the 400 `Problem` for what is not a number. Where the log ends is for `beyondEnd`. */
export function positionOf(asked: AskedPosition): Position {
  const header = asked.lastEventId === '' ? undefined : asked.lastEventId;
  if (header !== undefined) return checked('Last-Event-ID', header);
  if (asked.cursor !== undefined) return checked('cursor', decodeCursor(asked.cursor) ?? '');
  return asked.after === undefined ? { path: 'after', seq: 0 } : checked('after', asked.after);
}

/** The 400 for a position that the log never reached. */
export function beyondEnd({ path }: Position, last_seq: number): Problem {
  return invalidPosition(path, `beyond the end of the log, which is ${last_seq}`);
}

function checked(path: string, text: string): Position {
  if (!/^\d{1,15}$/.test(text)) throw invalidPosition(path, 'expected the seq of an event');
  return { path, seq: Number(text) };
}

function invalidPosition(path: string, problem: string): Problem {
  return new Problem({ status: 400, code: 'invalid_request', detail: `${path}: ${problem}`, errors: [{ path, problem }] });
}
