/** A stream of messages in which none is longer than its bound: an answer, or one event of many. */

const lineFeed = 10;
const carriageReturn = 13;

/** A message ends with a blank line; an answer as JSON has none within. `over` is told once, however the stream ends. @throws where one is too long. */
export async function* boundedMessages(body: ReadableStream<Uint8Array>, maxBytes: number, over: () => void): AsyncGenerator<Uint8Array> {
  let size = 0;
  /** Of the line that is being read, its end apart. */
  let lineBytes = 0;
  try {
    for await (const chunk of body) {
      for (let from = 0; from < chunk.length;) {
        const found = chunk.indexOf(lineFeed, from);
        const end = found === -1 ? chunk.length : found + 1;
        const last = found === -1 ? end : found;
        lineBytes += last - from - (last > from && chunk[last - 1] === carriageReturn ? 1 : 0);
        size += end - from;
        if (size > maxBytes) throw new TypeError(`a message is longer than ${maxBytes} bytes`);
        if (found !== -1 && lineBytes === 0) size = 0;
        if (found !== -1) lineBytes = 0;
        from = end;
      }
      yield chunk;
    }
  } finally {
    over();
  }
}
