/** Body and headers of an answer of `node:http` as those of a `Response`. */
import type { IncomingMessage } from 'node:http';

export interface ReadBody {
  readonly stream: ReadableStream<Uint8Array>;
  /** Ends the stream with this error, if it is still open. */
  readonly fail: (reason: unknown) => void;
}

/** Asks for more only when it is read, and calls `over` once nothing more can come. */
export function bodyOf(message: IncomingMessage, over: () => void): ReadBody {
  let fail: (reason: unknown) => void = () => undefined;
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      let open = true;
      const end = (how: () => void): void => {
        over();
        if (!open) return;
        open = false;
        how();
      };
      fail = (reason) => end(() => controller.error(reason));
      // Before the listener, which would else set it flowing.
      message.pause();
      message.on('data', (chunk: Buffer) => {
        if (!open) return;
        controller.enqueue(chunk);
        if ((controller.desiredSize ?? 0) <= 0) message.pause();
      });
      message.on('end', () => end(() => controller.close()));
      message.on('error', (error) => fail(new TypeError(`the answer broke off: ${error.message}`, { cause: error })));
      message.on('close', () => fail(new TypeError('the answer broke off')));
    },
    pull() {
      message.resume();
    },
    cancel() {
      over();
      message.destroy();
    },
  }, { highWaterMark: 0 });
  return { stream, fail };
}

export function headersOf(message: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, values] of Object.entries(message.headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value);
  }
  return headers;
}
