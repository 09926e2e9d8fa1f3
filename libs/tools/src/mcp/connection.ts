/**
 * The connection to one MCP server, a process of ours or one elsewhere: made when it is first needed, shared by all calls of this
 * worker, made again after a death or the loss of its session.
 *
 * Owns: the server process or session, the client on it, its tool list, the count of failures in a row.
 * States: down → connecting → up → down …, and closed for good.
 *
 * 1  At most one process at a time; who needs it while it starts waits for the same start.
 * 2  After the first failure it is started again at once, then after pauses that double up to 30 s; an answered call ends the count.
 * 3  A call is either sent on a connection that is up, or it has certainly not been started.
 * 4  A call that the server certainly did not take (its session was gone, it could not be reached) is sent once more on a new
 *    connection, unless it refused it; one that may have happened, only to a server elsewhere and only where repeating it does no harm.
 * 5  After `close` nothing starts any more, and no process is left.
 */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { ErrorCode, McpError, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import type { CompleteOptions } from '../options.ts';
import type { Mask } from '../content/mask.ts';
import type { McpServerSource } from '../sources.ts';
import { errorText } from '../call/run-call.ts';
import { createSlots, type Slots } from '../call/slots.ts';
import { readTools } from './list-tools.ts';
import { createHttpTransport, Refused } from './http-transport.ts';
import { callResultSchema, type CallResult } from './observation.ts';
import { createStdioTransport } from './stdio-transport.ts';
import type { McpTransport } from './transport.ts';

/** The server is not there: nothing was sent to it. The message is for people. */
export class ServerUnreachable extends Error {
  readonly sent = false;
}

export interface CallParams {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly _meta: Readonly<Record<string, unknown>>;
}

export interface CallCourse {
  readonly signal: AbortSignal;
  /** Told directly before the call is sent. */
  begin(): Promise<void>;
  /** Told of every sign of life. */
  progress(): void;
  /** Whether the call may be sent again although it may have happened. */
  readonly repeatable: boolean;
}

export interface McpConnection {
  /** Whether it is up now. */
  readonly connected: boolean;
  /** What the server that is up now says about how to use it. */
  readonly instructions: string | null;
  /** Its tools as it describes them. @throws ServerUnreachable */
  listTools(): Promise<readonly unknown[]>;
  /**
   * Sends one call, when a slot is free and the server is up.
   * @throws ServerUnreachable, the signal's reason, or whatever the SDK says of the call.
   */
  call(params: CallParams, course: CallCourse): Promise<CallResult>;
  /** At once and without waiting; for the end of this process. */
  killNow(): void;
  close(): Promise<void>;
}

interface Up {
  readonly client: Client;
  readonly transport: McpTransport;
  tools: Promise<readonly unknown[]> | null;
}

const maxBackoffMs = 30_000;
/** The longest a timer can hold: time-outs are ours, not the SDK's. */
const never = 2_147_483_647;

export interface ConnectionOptions extends CompleteOptions {
  readonly fetch: typeof globalThis.fetch;
  /** For what is cut here: of a secret that a cut went through nobody would know what is left. */
  readonly mask: Mask;
}

export function createMcpConnection(name: string, server: McpServerSource, options: ConnectionOptions): McpConnection {
  return new Connection(name, server, options);
}

class Connection implements McpConnection {
  readonly #name: string;
  readonly #server: McpServerSource;
  readonly #options: ConnectionOptions;
  readonly #slots: Slots;
  readonly #closing = new AbortController();
  #up: Up | null = null;
  #starting: Promise<Up> | null = null;
  #transport: McpTransport | null = null;
  #failures = 0;
  #notBefore = 0;
  #lastProblem = '';

  constructor(name: string, server: McpServerSource, options: ConnectionOptions) {
    this.#name = name;
    this.#server = server;
    this.#options = options;
    this.#slots = createSlots(server.concurrency);
  }

  get connected(): boolean { return this.#up !== null; }
  get instructions(): string | null { return this.#up?.client.getInstructions() ?? null; }

  async listTools(): Promise<readonly unknown[]> {
    const up = await this.#ready();
    try {
      return await this.#toolsOf(up);
    } catch (error) {
      up.tools = null;
      if (!neverTaken(error) || error instanceof Refused) throw this.#noList(error);
    }
    this.#forget(up);
    const again = await this.#ready();
    try {
      return await this.#toolsOf(again);
    } catch (error) {
      again.tools = null;
      throw this.#noList(error);
    }
  }

  #toolsOf(up: Up): Promise<readonly unknown[]> {
    up.tools ??= readTools(up.client, this.#options.connectTimeoutMs);
    return up.tools;
  }

  #noList(error: unknown): ServerUnreachable {
    return new ServerUnreachable(`MCP server ${this.#name} does not list its tools: ${errorText(error)}`);
  }

  async call(params: CallParams, course: CallCourse): Promise<CallResult> {
    const free = await this.#slots.take(course.signal);
    try {
      const up = await abortable(this.#ready(), course.signal);
      let first: unknown;
      try {
        return await this.#send(up, params, course);
      } catch (error) {
        if (course.signal.aborted || !this.#mayRepeat(error, course)) throw error;
        this.#forget(up);
        first = error;
      }
      return await this.#again(params, course, first);
    } finally {
      free();
    }
  }

  /** That the second try was not sent says nothing of the first. */
  async #again(params: CallParams, course: CallCourse, first: unknown): Promise<CallResult> {
    try {
      return await this.#send(await abortable(this.#ready(), course.signal), params, course);
    } catch (error) {
      throw neverTaken(error) && !neverTaken(first) ? first : error;
    }
  }

  async #send({ client }: Up, params: CallParams, { signal, begin, progress }: CallCourse): Promise<CallResult> {
    // The SDK never removes its listener, so it gets a signal that lives only as long as the call.
    const own = new AbortController();
    const pass = (): void => own.abort(signal.reason);
    signal.addEventListener('abort', pass, { once: true });
    try {
      await begin();
      const result = await client.request({ method: 'tools/call', params: { ...params } }, callResultSchema, { signal: own.signal, timeout: never, onprogress: progress });
      this.#failures = 0;
      return result;
    } finally {
      signal.removeEventListener('abort', pass);
    }
  }

  /** Invariant 4. A process of ours that died with a call may have died of it; what a server has refused it would refuse again. */
  #mayRepeat(error: unknown, { repeatable }: CallCourse): boolean {
    if (!('url' in this.#server) || error instanceof Refused) return false;
    return neverTaken(error) || (repeatable && brokeOff(error));
  }

  #forget(up: Up): void {
    if (this.#up === up) this.#up = null;
    up.client.onclose = () => undefined;
    up.transport.retire();
  }

  killNow(): void {
    this.#transport?.killNow();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#starting?.catch(() => {});
    await this.#transport?.close();
  }

  #ready(): Promise<Up> {
    if (this.#closing.signal.aborted) return Promise.reject(new ServerUnreachable(`MCP server ${this.#name} has been shut down.`));
    if (this.#up !== null) return Promise.resolve(this.#up);
    this.#starting ??= this.#start().finally(() => { this.#starting = null; });
    return this.#starting;
  }

  async #start(): Promise<Up> {
    await this.#pause();
    const { fetch, maxMessageBytes, mask } = this.#options;
    const transport = 'url' in this.#server ? createHttpTransport(this.#server, { fetch, maxMessageBytes, mask }) : createStdioTransport(this.#server, maxMessageBytes);
    const client = new Client({ name: 'treadle', version: '0.1.0' });
    const up: Up = { client, transport, tools: null };
    this.#transport = transport;
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => { up.tools = null; });
    try {
      await abortable(client.connect(transport, { timeout: this.#options.connectTimeoutMs }), this.#closing.signal);
    } catch (error) {
      await transport.close();
      this.#failed(`cannot be ${'url' in this.#server ? 'reached' : 'started'}: ${this.#whyNot(error)}${this.#tailOf(transport)}`);
      throw this.#unreachable();
    }
    // A server that ended between its greeting and here has no transport any more.
    if (client.transport === undefined) {
      this.#failed(`ended right after its start${this.#tailOf(transport)}`);
      throw this.#unreachable();
    }
    client.onclose = () => {
      if (this.#up === up) this.#up = null;
      this.#failed(`has ended${this.#tailOf(transport)}`);
    };
    this.#up = up;
    return up;
  }

  /** The SDK says `MCP error -32001: Request timed out`. A command that has to be fetched first (npx) is the usual cause. */
  #whyNot(error: unknown): string {
    const late = error instanceof McpError && error.code === (ErrorCode.RequestTimeout as number);
    return late ? `no answer within ${this.#options.connectTimeoutMs / 1000} s` : errorText(error);
  }

  #tailOf(transport: McpTransport): string {
    const tail = this.#options.mask.text(transport.lastWords());
    return tail === '' ? '' : `; its last words: ${tail.slice(-300)}`;
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

/** `Not connected` is the SDK's word for a connection that was gone before anything was written. */
function neverTaken(error: unknown): boolean {
  return (error as { readonly sent?: boolean } | null)?.sent === false || (error instanceof Error && error.message === 'Not connected');
}

/** The connection was lost, at whatever point. */
function brokeOff(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof McpError && error.code === ErrorCode.ConnectionClosed);
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
