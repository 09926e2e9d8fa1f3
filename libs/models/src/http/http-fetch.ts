/**
 * A `fetch` over `node:http` and `node:https` with kept-alive connections, for the vendors' clients: the global one costs more
 * CPU per model call than the whole queue.
 *
 * Implements what those clients use: method, headers, a body of text or bytes, signal; a `Response` with status, headers and a
 * streamed body. Asks for no compression, and undoes it where a server (a proxy before it, mostly) compresses all the same. Does not follow redirects (a 3xx is answered as it is: a redirect must not lead to an address nobody allowed),
 * has no time-outs of its own. Fails as the global one does: `TypeError('fetch failed')` before the status
 * line, a body erring with `TypeError('terminated')` after it, both with the cause; on abort the signal's reason.
 *
 * Owns: two agents and their idle sockets, which do not keep the process alive. Nothing else outlives a call: when body or
 * promise have ended, no listener is left on the signal.
 */
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import { pipeline, type Readable } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';

export interface HttpFetch {
  readonly fetch: typeof fetch;
  /** Closes idle sockets; calls in flight go on. */
  readonly close: () => void;
}

export interface HttpFetchOptions {
  /** How long an idle socket is kept, default 15,000: shorter than servers usually keep theirs, so that none is used as it dies. */
  readonly idleSocketMs?: number;
}

/** Statuses whose responses have no body. */
const bodiless = new Set([204, 205, 304]);

export function createHttpFetch(options: HttpFetchOptions = {}): HttpFetch {
  const agentOptions = { keepAlive: true, timeout: options.idleSocketMs ?? 15_000 };
  const agents = { 'http:': new http.Agent(agentOptions), 'https:': new https.Agent(agentOptions) };

  async function fetchOverHttp(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    const url = new URL(input instanceof Request ? input.url : input);
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw refused(`${url.protocol} is not http`, 'ERR_INVALID_PROTOCOL');
    const { body } = init;
    if (body !== undefined && body !== null && typeof body !== 'string' && !(body instanceof Uint8Array)) {
      throw new TypeError('only text and bytes can be sent');
    }
    init.signal?.throwIfAborted();
    const request = (url.protocol === 'https:' ? https : http).request(url, {
      agent: agents[url.protocol], method: init.method ?? 'GET', headers: { 'accept-encoding': 'identity', ...Object.fromEntries(new Headers(init.headers)) },
    });
    return exchange(request, body ?? undefined, init.signal ?? undefined);
  }

  return {
    fetch: fetchOverHttp as typeof fetch,
    close: () => {
      for (const agent of Object.values(agents)) {
        for (const socket of Object.values(agent.freeSockets).flat()) socket?.destroy();
      }
    },
  };
}

function exchange(request: ClientRequest, body: string | Uint8Array | undefined, signal: AbortSignal | undefined): Promise<Response> {
  return new Promise<Response>((resolve, reject) => {
    let onAbort = (reason: unknown): void => reject(asError(reason));
    const aborted = (): void => {
      onAbort(signal?.reason);
      request.destroy();
    };
    const over = (): void => signal?.removeEventListener('abort', aborted);
    signal?.addEventListener('abort', aborted, { once: true });

    request.on('error', (error) => {
      over();
      reject(new TypeError('fetch failed', { cause: error }));
    });
    request.on('response', (message) => {
      try {
        const decoder = decoderOf(message);
        const read = bodyOf(decoder === null ? message : pipeline(message, decoder, () => undefined), over);
        onAbort = read.fail;
        const status = message.statusCode ?? 0;
        if (bodiless.has(status)) message.resume();
        resolve(new Response(bodiless.has(status) ? null : read.stream, { status, statusText: message.statusMessage ?? '', headers: headersOf(message, decoder === null ? [] : ['content-encoding', 'content-length']) }));
      } catch (error) {
        over();
        request.destroy();
        reject(new TypeError('fetch failed', { cause: error }));
      }
    });
    request.end(body);
  });
}

/** What came whole of a body that breaks off is handed on: whether that was all, its reader knows. */
const zlibOptions = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };
const brotliOptions = { flush: constants.BROTLI_OPERATION_FLUSH, finishFlush: constants.BROTLI_OPERATION_FLUSH };

/** Null where the body is as it is, or in a way that nobody asked for and that is not known here. */
function decoderOf({ headers }: IncomingMessage): NodeJS.ReadWriteStream & Readable | null {
  switch (headers['content-encoding']?.trim().toLowerCase()) {
    case 'gzip': case 'x-gzip': return createGunzip(zlibOptions);
    case 'deflate': return createInflate(zlibOptions);
    case 'br': return createBrotliDecompress(brotliOptions);
    default: return null;
  }
}

/** Asks for more only when it is read, and calls `over` once, when nothing more can come. */
function bodyOf(message: Readable, over: () => void): { readonly stream: ReadableStream<Uint8Array>; readonly fail: (reason: unknown) => void } {
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
      message.on('error', (error) => fail(new TypeError('terminated', { cause: error })));
      message.on('close', () => {
        if (open) fail(new TypeError('terminated', { cause: refused('other side closed', 'ECONNRESET') }));
      });
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

function headersOf(message: IncomingMessage, without: readonly string[]): Headers {
  const headers = new Headers();
  for (const [name, values] of Object.entries(message.headersDistinct)) {
    if (!without.includes(name)) for (const value of values ?? []) headers.append(name, value);
  }
  return headers;
}

function refused(message: string, code: string): Error {
  return Object.assign(new TypeError(message), { code });
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new DOMException('This operation was aborted', 'AbortError');
}
