/**
 * The body of an HTTP answer of a server, with answers that are not JSON-RPC to the letter as if they were: one JSON text, or the data lines
 * of a stream of events. Anything else passes as it came.
 */
import { MessageLines, toTheLetter } from './message-lines.ts';

/** @throws where a JSON text, or a line of a stream, is longer than the bound. */
export async function* lenientBody(type: string, body: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  if (/^\s*application\/json\b/i.test(type)) yield Buffer.from(toTheLetter((await whole(body, maxBytes)).toString('utf8')));
  else if (/^\s*text\/event-stream\b/i.test(type)) {
    const lines = new MessageLines(maxBytes);
    for await (const part of body) for (const line of lines.append(Buffer.from(part))) yield Buffer.from(`${inEvent(line)}\n`);
    yield lines.rest();
  } else yield* body;
}

async function whole(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body) {
    size += part.length;
    if (size > maxBytes) throw new TypeError(`a message is longer than ${maxBytes} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function inEvent(line: string): string {
  const [, field, data] = /^(data: ?)(.*)$/.exec(line) ?? [];
  return field === undefined || data === undefined ? line : `${field}${toTheLetter(data)}`;
}
