/**
 * Stands between the wire and the npm client, which drops a line that it cannot parse and writes it to the console: text
 * would be missing in the middle of a reply that looks whole. Passes whole lines of JSON objects on, byte for byte, and errs
 * where the wire says something else.
 *
 * 1  A chunk handed on is one or more whole lines; so no boundary of the wire can matter.
 * 2  The line with `done: true` is the last one. It is handed on once the response has ended, or after a short grace, so that
 *    the connection can be used again.
 * 3  Early ends are left to the reader, who misses the `done` line.
 */
import { inexactNumber, parseExactly } from '@treadle/core';
import { saysError } from '../../reply/loose.ts';
import { createReplySize } from '../../http/reply-size.ts';
import { StreamedError, UnreadableReply } from '../../http/stream-fault.ts';

/** Bytes of one reply. */
const largestReply = 4 * 1024 * 1024;
/** How long the end of a response may lag behind its last line. */
const graceMs = 100;

const newline = 0x0a;

export function wholeLines(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let rest: Uint8Array[] = [];
  const size = createReplySize(largestReply);

  /** The next whole lines; null at the end. */
  async function next(): Promise<Uint8Array | null> {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        const last = Buffer.concat(rest);
        rest = [];
        // A last line may lack its line feed, but half a line is an early end, not an unreadable one.
        return last.length > 0 && isJson(last) ? last : null;
      }
      size.add(value);
      const end = value.lastIndexOf(newline);
      if (end < 0) {
        rest.push(value);
        continue;
      }
      const whole = Buffer.concat([...rest, value.subarray(0, end + 1)]);
      rest = [value.subarray(end + 1)];
      return whole;
    }
  }

  /** What the wire said wrong behind lines that were good: those are read first, since an erring stream drops its queue. */
  let fault: Error | null = null;

  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      for (;;) {
        if (fault !== null) throw fault;
        const chunk = await next();
        if (chunk === null) return controller.close();
        const read = checked(chunk);
        fault = read.fault;
        if (read.last) await drained(reader);
        if (read.lines !== '') controller.enqueue(Buffer.from(read.lines));
        if (read.last) return controller.close();
        if (read.lines !== '') return;
      }
    },
    async cancel(reason) {
      await reader.cancel(reason);
    },
  }, { highWaterMark: 0 });
}

interface Checked { readonly lines: string; readonly last: boolean; readonly fault: Error | null }

/** Blank lines left out, and what stands behind the terminal one. */
function checked(chunk: Uint8Array): Checked {
  let lines = '';
  for (const line of new TextDecoder().decode(chunk).split('\n')) {
    if (line.trim() === '') continue;
    const value = parsed(line);
    if (value === null) return { lines, last: false, fault: new UnreadableReply(line) };
    if (saysError(value)) return { lines, last: false, fault: new StreamedError(line) };
    // The client takes the field for an error, whatever is in it.
    const { error, ...rest } = value;
    const inexact = inexactNumber(value['message']) !== null;
    lines += `${error === undefined && !inexact ? line : JSON.stringify(rest, inexact ? argumentsAsText : undefined)}\n`;
    if (value['done'] === true) return { lines, last: true, fault: null };
  }
  return { lines, last: false, fault: null };
}

/** The client reads the line once more, and would change a number that is too large for it. */
function argumentsAsText(key: string, value: unknown): unknown {
  return key === 'arguments' && typeof value === 'object' && inexactNumber(value) !== null ? JSON.stringify(value) : value;
}

/** What comes behind the terminal line, an error too, takes nothing from the reply. */
async function drained(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const grace = new Promise<'late'>((resolve) => { timer = setTimeout(() => resolve('late'), graceMs); });
  const toTheEnd = (async () => {
    while (!(await reader.read()).done);
  })().catch(() => undefined);
  await Promise.race([toTheEnd, grace]);
  clearTimeout(timer);
}

function parsed(line: string): Record<string, unknown> | null {
  try {
    const value = parseExactly(line);
    return value !== null && typeof value === 'object' && !Array.isArray(value) ? value as Record<string, unknown> : null;
  } catch {
    return null;
  }
}

function isJson(bytes: Uint8Array): boolean {
  return parsed(new TextDecoder().decode(bytes)) !== null;
}
