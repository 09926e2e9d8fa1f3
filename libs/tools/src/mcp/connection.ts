/**
 * The connection to one MCP server: started when it is first needed, shared by all calls of this worker, started again after a
 * death.
 *
 * Owns: the server process, the client on it, its tool list, the count of failures in a row.
 * States: down → connecting → up → down …, and closed for good.
 *
 * 1  At most one process at a time; who needs it while it starts waits for the same start.
 * 2  After the first failure it is started again at once, then after pauses that double up to 30 s; an answered call ends the count.
 * 3  A call is either sent on a connection that is up, or it has certainly not been started.
 * 4  After `close` nothing starts any more, and no process is left.
 */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import type { CompleteOptions } from '../options.ts';
import type { McpServerSource } from '../sources.ts';
import { errorText } from '../call/run-call.ts';
import { readTools } from './list-tools.ts';
import { callResultSchema, type CallResult } from './result-text.ts';
import { createSlots, type Slots } from './slots.ts';
import { createStdioTransport, type StdioTransport } from './stdio-transport.ts';

/** The server is not there: nothing was sent to it. The message is for people. */
export class ServerUnreachable extends Error {}

export interface CallParams {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly _meta: Readonly<Record<string, unknown>>;
}

export interface McpConnection {
  /** Its tools as it describes them. @throws ServerUnreachable */
  listTools(): Promise<readonly unknown[]>;
  /**
   * Sends one call, when a slot is free and the server is up, unless `begin` rejects, which is asked directly before.
   * @throws ServerUnreachable, the signal's reason, or whatever the SDK says of the call.
   */
  call(params: CallParams, signal: AbortSignal, begin: () => Promise<void>): Promise<CallResult>;
  /** At once and without waiting; for the end of this process. */
  killNow(): void;
  close(): Promise<void>;
}

interface Up {
  readonly client: Client;
  readonly transport: StdioTransport;
  tools: Promise<readonly unknown[]> | null;
}

const maxBackoffMs = 30_000;
/** The longest a timer can hold: time-outs are ours, not the SDK's. */
const never = 2_147_483_647;

export function createMcpConnection(name: string, server: McpServerSource, options: CompleteOptions): McpConnection {
  return new Connection(name, server, options);
}

class Connection implements McpConnection {
  readonly #name: string;
  readonly #server: McpServerSource;
  readonly #options: CompleteOptions;
  readonly #slots: Slots;
  readonly #closing = new AbortController();
  #up: Up | null = null;
  #starting: Promise<Up> | null = null;
  #process: StdioTransport | null = null;
  #failures = 0;
  #notBefore = 0;
  #lastProblem = '';

  constructor(name: string, server: McpServerSource, options: CompleteOptions) {
    this.#name = name;
    this.#server = server;
    this.#options = options;
    this.#slots = createSlots(server.concurrency);
  }

  async listTools(): Promise<readonly unknown[]> {
    const up = await this.#ready();
    up.tools ??= readTools(up.client, this.#options.connectTimeoutMs);
    try {
      return await up.tools;
    } catch (error) {
      up.tools = null;
      throw new ServerUnreachable(`MCP server ${this.#name} does not list its tools: ${errorText(error)}`);
    }
  }

  async call(params: CallParams, signal: AbortSignal, begin: () => Promise<void>): Promise<CallResult> {
    const free = await this.#slots.take(signal);
    // The SDK never removes its listener, so it gets a signal that lives only as long as the call.
    const own = new AbortController();
    const pass = (): void => own.abort(signal.reason);
    try {
      const { client } = await abortable(this.#ready(), signal);
      signal.addEventListener('abort', pass, { once: true });
      await begin();
      const result = await client.request({ method: 'tools/call', params: { ...params } }, callResultSchema, { signal: own.signal, timeout: never });
      this.#failures = 0;
      return result;
    } finally {
      signal.removeEventListener('abort', pass);
      free();
    }
  }

  killNow(): void {
    this.#process?.killNow();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#starting?.catch(() => {});
    await this.#process?.close();
  }

  #ready(): Promise<Up> {
    if (this.#closing.signal.aborted) return Promise.reject(new ServerUnreachable(`MCP server ${this.#name} has been shut down.`));
    if (this.#up !== null) return Promise.resolve(this.#up);
    this.#starting ??= this.#start().finally(() => { this.#starting = null; });
    return this.#starting;
  }

  async #start(): Promise<Up> {
    await this.#pause();
    const transport = createStdioTransport(this.#server, this.#options.maxMessageBytes);
    const client = new Client({ name: 'treadle', version: '0.1.0' });
    const up: Up = { client, transport, tools: null };
    this.#process = transport;
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => { up.tools = null; });
    try {
      await abortable(client.connect(transport, { timeout: this.#options.connectTimeoutMs }), this.#closing.signal);
    } catch (error) {
      await transport.close();
      this.#failed(`cannot be started: ${errorText(error)}${tailOf(transport)}`);
      throw this.#unreachable();
    }
    // A server that ended between its greeting and here has no transport any more.
    if (client.transport === undefined) {
      this.#failed(`ended right after its start${tailOf(transport)}`);
      throw this.#unreachable();
    }
    client.onclose = () => {
      if (this.#up === up) this.#up = null;
      this.#failed(`has ended${tailOf(transport)}`);
    };
    this.#up = up;
    return up;
  }

  /** Invariant 2. Waits out a short pause; a long one is an answer. */
  async #pause(): Promise<void> {
    const left = this.#notBefore - performance.now();
    if (left <= 0) return;
    if (left > this.#options.maxBackoffWaitMs) throw this.#unreachable();
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, left);
    await abortable(promise, this.#closing.signal).finally(() => clearTimeout(timer));
  }

  #failed(problem: string): void {
    this.#failures += 1;
    this.#lastProblem = problem;
    const pause = this.#failures === 1 ? 0 : Math.min(this.#options.backoffMs * 2 ** (this.#failures - 2), maxBackoffMs);
    this.#notBefore = performance.now() + pause;
  }

  #unreachable(): ServerUnreachable {
    return new ServerUnreachable(`MCP server ${this.#name} ${this.#lastProblem}`);
  }
}

function tailOf(transport: StdioTransport): string {
  const tail = transport.stderrTail();
  return tail === '' ? '' : `; its last words: ${tail.slice(-300)}`;
}

/** The promise's outcome, or the signal's reason where that comes first; the promise goes on by itself. */
async function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  promise.catch(() => {});
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason as Error);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
