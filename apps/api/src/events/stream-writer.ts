/**
 * Writing to a reader that may be slow, asleep or gone. `write()` to a sleeping client does not fail: it gathers in memory.
 *
 * Owns: one response, from its head to its end.
 * 1. After `full` is true the caller writes nothing more until `drained` has answered true; so at most `maxBufferedBytes` and
 *    one event wait in memory for one reader.
 * 2. A reader that has not read what waits for it within `drainTimeoutMs` is cut off, at the end of the response, too.
 * 3. The connection ends with the response, whose head says so: a reader that sleeps would otherwise keep an idle one for as long as it likes.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface StreamWriter {
  readonly full: boolean;
  readonly gone: boolean;
  /** Ignored once the reader has gone. */
  write(text: string): void;
  /** True when all has been read; false when the reader was too slow (it is cut off), has gone, or `signal` aborted. */
  drained(signal: AbortSignal): Promise<boolean>;
  /** Ends the response cleanly, unless it was cut. */
  end(): void;
  /** Sends what was written and breaks off: whoever counts on a clean end sees that there was none. */
  cut(): void;
}

export interface WriterOptions {
  readonly maxBufferedBytes: number;
  readonly drainTimeoutMs: number;
}

/** The head, with `connection: close`, is written by the caller. */
export function createStreamWriter(raw: ServerResponse, options: WriterOptions): StreamWriter {
  let broken = false;
  raw.on('error', () => undefined);
  return {
    get full() { return raw.writableLength > options.maxBufferedBytes; },
    get gone() { return broken || raw.destroyed || raw.writableEnded; },
    write(text) {
      if (!this.gone) raw.write(text);
    },
    async drained(signal) {
      if (raw.destroyed) return false;
      if (raw.writableLength === 0) return true;
      const outcome = await firstOf(raw, signal, options.drainTimeoutMs);
      if (outcome === 'too_slow') raw.destroy();
      return outcome === 'drained';
    },
    end() {
      if (this.gone) return;
      const { socket } = raw;
      raw.end();
      destroyAfter(socket, options.drainTimeoutMs);
    },
    cut() {
      broken = true;
      const { socket } = raw;
      // After the tick's writes have reached the socket; what a sleeping reader does not take by then is thrown away.
      setImmediate(() => socket?.destroySoon());
      destroyAfter(socket, options.drainTimeoutMs);
    },
  };
}

/** The socket is taken before the end: the response lets go of it when it has handed its last byte over. */
function destroyAfter(socket: Socket | null, ms: number): void {
  const timer = setTimeout(() => socket?.destroy(), ms).unref();
  socket?.once('close', () => { clearTimeout(timer); });
}

function firstOf(raw: ServerResponse, signal: AbortSignal, timeoutMs: number): Promise<'drained' | 'gone' | 'too_slow'> {
  return new Promise((resolve) => {
    const settle = (outcome: 'drained' | 'gone' | 'too_slow') => (): void => {
      clearTimeout(timer);
      raw.off('drain', onDrain).off('close', onClose);
      signal.removeEventListener('abort', onClose);
      resolve(outcome);
    };
    const onDrain = settle('drained');
    const onClose = settle('gone');
    const timer = setTimeout(settle('too_slow'), timeoutMs);
    raw.once('drain', onDrain).once('close', onClose);
    if (signal.aborted) onClose();
    else signal.addEventListener('abort', onClose, { once: true });
  });
}
