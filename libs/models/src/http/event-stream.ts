/**
 * A response's body as the JSON values of its server-sent events.
 *
 * 1  Where the bytes are cut, and whether lines end in LF, CRLF or CR, makes no difference.
 * 2  Comments and empty events (servers keep connections alive with them) are nothing; `[DONE]` is told apart.
 * 3  A body that is no event stream but one JSON value is that value: errors come so under 200, and replies from servers that
 *    do not stream. Anything else errs with `UnreadableReply`.
 * 4  A last event may lack its blank line, but half an event is an early end and left out.
 */
import { parseExactly } from '@treadle/core';
import { createParser } from 'eventsource-parser';
import { createReplySize } from './reply-size.ts';
import { UnreadableReply } from './stream-fault.ts';

export interface StreamEvent {
  /** The name it came under; empty where it has none. */
  readonly name: string;
  readonly data: string;
  /** `data` parsed; null for `[DONE]`. */
  readonly value: Readonly<Record<string, unknown>> | null;
}

export const doneMark = '[DONE]';

/** Bytes of one reply. */
const largestReply = 8 * 1024 * 1024;

/** Cancelling `reader` ends it. */
export async function* streamEvents(reader: ReadableStreamDefaultReader<Uint8Array>): AsyncGenerator<StreamEvent, void, undefined> {
  const decoder = new TextDecoder();
  const found: { readonly name: string; readonly data: string }[] = [];
  // Some keep a connection alive with events that hold nothing.
  const parser = createParser({ onEvent: ({ event, data }) => { if (data.trim() !== '') found.push({ name: event ?? '', data }); } });
  const size = createReplySize(largestReply);
  /** What came before the first event: perhaps no event stream at all. */
  let beginning: string | null = '';

  function* ready(): Generator<StreamEvent, void, undefined> {
    for (const each of found.splice(0)) {
      const event = read(each);
      if (event === null) throw new UnreadableReply(each.data);
      yield event;
    }
  }

  for (;;) {
    const { done, value } = await reader.read();
    const text = done ? decoder.decode() : decoder.decode(value, { stream: true });
    if (value !== undefined) size.add(value);
    if (beginning !== null) beginning += text;
    parser.feed(text);
    if (found.length > 0) beginning = null;
    yield* ready();
    if (done) break;
  }
  parser.feed('\n\n');
  if (found.length === 0 && beginning !== null && beginning.trim() !== '') yield* wholeBody(beginning);
  // Of what was in the making only a whole value counts.
  for (const each of found.splice(0)) {
    const event = read(each);
    if (event !== null) yield event;
  }
}

function read({ name, data }: { readonly name: string; readonly data: string }): StreamEvent | null {
  if (data.trim() === doneMark) return { name, data, value: null };
  try {
    // Arguments may be values.
    const value = parseExactly(data);
    if (value === null || typeof value !== 'object' || Array.isArray(value)) return null;
    return { name, data, value: value as Readonly<Record<string, unknown>> };
  } catch {
    // Under the name of an error any words may stand.
    return name === 'error' ? { name, data, value: { error: { message: data } } } : null;
  }
}

function* wholeBody(text: string): Generator<StreamEvent, void, undefined> {
  // Comments and fields without data are an event stream that ended early.
  if (!/^\s*(\{|<)/.test(text)) return;
  const event = read({ name: '', data: text.trim() });
  if (event !== null) yield event;
  else if (!/^\s*\{/.test(text)) throw new UnreadableReply(text);
}
