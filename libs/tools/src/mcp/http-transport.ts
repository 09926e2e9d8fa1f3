/**
 * The way to an MCP server that is there already, over streamable HTTP: the SDK's transport, and round it what it leaves open.
 *
 * Owns: the session, one request per message under way, the server's own stream. States: new → running → ended.
 *
 * 1  A request whose answer can no longer come (its stream ended or broke, and cannot be resumed) gets an error instead: the SDK alone
 *    would wait for ever.
 * 2  A session that the server no longer knows is `SessionLost`: what was sent was refused, so it has certainly not happened.
 * 3  A request that is cancelled is told to the server first, then its connection is closed.
 * 4  A message above the limit ends its stream.
 * 5  Answers that are not JSON-RPC to the letter are given to the SDK as if they were.
 * 6  Every address is asked for through the `fetch` that was given; redirects leave neither the origin nor that.
 */
import { StreamableHTTPClientTransport, StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ErrorCode, type JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import type { Mask } from '../content/mask.ts';
import type { McpHttpSource } from '../sources.ts';
import { lenientBody } from './lenient-body.ts';
import { boundedMessages } from './message-bound.ts';
import type { McpTransport } from './transport.ts';

/** The server knows the session no more; nothing came of what was sent. */
export class SessionLost extends Error {
  readonly sent = false;
}

/** The server did not take the message, and said so by a status. */
export class Refused extends Error {
  readonly sent = false;
}

/** For an answer that is in the stream already to be read after the stream's end. */
const readMs = 250;
/** For telling the server that its session is over. */
const goodbyeMs = 1_000;

export interface HttpSessionOptions { readonly fetch: typeof globalThis.fetch; readonly maxMessageBytes: number; readonly mask: Pick<Mask, 'text'> }

export function createHttpTransport(server: McpHttpSource, options: HttpSessionOptions): McpTransport {
  return new HttpSession(server, options);
}

type RequestId = string | number;

interface Pending { readonly abort: AbortController; resumable: boolean }

class HttpSession implements McpTransport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport['onmessage'];
  readonly #inner: StreamableHTTPClientTransport;
  readonly #fetch: typeof globalThis.fetch;
  readonly #maxMessageBytes: number;
  readonly #mask: Pick<Mask, 'text'>;
  readonly #pending = new Map<RequestId, Pending>();
  #over = false;
  #retired = false;

  constructor(server: McpHttpSource, { fetch, maxMessageBytes, mask }: HttpSessionOptions) {
    this.#fetch = fetch;
    this.#maxMessageBytes = maxMessageBytes;
    this.#mask = mask;
    this.#inner = new StreamableHTTPClientTransport(new URL(server.url), {
      requestInit: { headers: { ...server.headers } }, fetch: (url, init) => this.#request(url, init ?? {}),
      reconnectionOptions: { initialReconnectionDelay: 500, maxReconnectionDelay: 10_000, reconnectionDelayGrowFactor: 2, maxRetries: 3 },
    });
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion(version);
  }

  lastWords(): string {
    return '';
  }

  killNow(): void {
    // Nothing of ours runs there.
  }

  /** Without a goodbye: the session is gone already. */
  retire(): void {
    this.#retired = true;
    if (this.#pending.size === 0) this.#inner.close().catch(() => undefined);
  }

  async start(): Promise<void> {
    this.#inner.onmessage = (message) => {
      if ('id' in message && !('method' in message) && message.id !== undefined) this.#settled(message.id);
      this.onmessage?.(message);
    };
    this.#inner.onerror = (error) => {
      this.onerror?.(error);
      if (error.message.startsWith('Maximum reconnection attempts')) this.#resumedNoMore();
    };
    this.#inner.onclose = () => this.#end();
    await this.#inner.start();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#over) throw new Error('Not connected');
    const id = 'method' in message && 'id' in message ? message.id : undefined;
    const pending: Pending = { abort: new AbortController(), resumable: false };
    if (id !== undefined) this.#pending.set(id, pending);
    try {
      await this.#inner.send(message, { onresumptiontoken: () => { pending.resumable = true; } });
    } catch (error) {
      if (id !== undefined) this.#settled(id);
      throw this.#refusal(error, message);
    } finally {
      if ('method' in message && message.method === 'notifications/cancelled') this.#drop(message.params?.requestId as RequestId | undefined);
    }
  }

  async close(): Promise<void> {
    if (this.#over) return;
    const said = this.#inner.terminateSession().catch(() => undefined);
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([said, new Promise((resolve) => { timer = setTimeout(resolve, goodbyeMs); })]).finally(() => { clearTimeout(timer); });
    await this.#inner.close();
  }

  /** A status below 500 is the server's own refusal. Older servers answer an unknown session with 400. */
  #refusal(error: unknown, message: JSONRPCMessage): unknown {
    if (!(error instanceof StreamableHTTPError) || error.code === undefined || error.code < 400 || error.code >= 500) return error;
    const asksForSession = 'method' in message && message.method === 'initialize';
    const unknown = error.code === 404 || (error.code === 400 && /session/i.test(error.message));
    if (this.sessionId !== undefined && !asksForSession && unknown) return new SessionLost('the server no longer knows the session');
    return new Refused(`HTTP ${error.code}: ${this.#mask.text(error.message).slice(0, 300)}`);
  }

  async #request(url: string | URL, init: RequestInit): Promise<Response> {
    const id = requestIdIn(init.body);
    const pending = id === null ? undefined : this.#pending.get(id);
    const { signal } = init;
    const pass = (): void => pending?.abort.abort(signal?.reason);
    signal?.addEventListener('abort', pass, { once: true });
    const over = (): void => {
      signal?.removeEventListener('abort', pass);
      if (id !== null) setTimeout(() => this.#streamOver(id), readMs).unref();
    };
    try {
      const response = await this.#fetch(url, { ...init, ...(pending === undefined ? {} : { signal: pending.abort.signal }) });
      if (response.body === null) {
        over();
        return response;
      }
      const { status, statusText, headers } = response;
      const bounded = boundedMessages(response.body, this.#maxMessageBytes, over);
      const read = lenientBody(headers.get('content-type') ?? '', bounded, this.#maxMessageBytes);
      return new Response(ReadableStream.from(read) as ReadableStream<Uint8Array>, { status, statusText, headers });
    } catch (error) {
      signal?.removeEventListener('abort', pass);
      throw error;
    }
  }

  #streamOver(id: RequestId): void {
    if (this.#pending.get(id)?.resumable === false) this.#fail(id);
  }

  #resumedNoMore(): void {
    for (const [id, { resumable }] of this.#pending) if (resumable) this.#fail(id);
  }

  #fail(id: RequestId): void {
    this.#settled(id);
    this.onmessage?.({ jsonrpc: '2.0', id, error: { code: ErrorCode.ConnectionClosed, message: 'the connection ended before the answer' } });
  }

  #drop(id: RequestId | undefined): void {
    if (id === undefined) return;
    const pending = this.#pending.get(id);
    pending?.abort.abort();
    this.#settled(id);
  }

  #settled(id: RequestId): void {
    this.#pending.delete(id);
    // Later: whoever waits for this message hears first what came of it.
    if (this.#retired) setImmediate(() => this.retire());
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#pending.clear();
    this.onclose?.();
  }
}

/** Of a body that is one request; null for notifications and answers. */
function requestIdIn(body: RequestInit['body']): RequestId | null {
  if (typeof body !== 'string') return null;
  const { id, method } = JSON.parse(body) as { readonly id?: RequestId; readonly method?: string };
  return method === undefined ? null : id ?? null;
}
