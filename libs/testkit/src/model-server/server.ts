/**
 * A scriptable model server on a free port of 127.0.0.1. It stands in for a real Ollama, and is stricter than one.
 *
 * Owns: the listening socket, the script's position, the record of all chat requests.
 * States: listening → closed (`close`, which also ends every stalled reply).
 *
 * 1  Every chat request is recorded, refused ones too.
 * 2  A script entry is used up by exactly one accepted request, in order of arrival.
 * 3  A request that the strict validator refuses gets 400, uses up nothing and is a violation.
 * 4  A request beyond the script gets 500 and is a violation, unless `whenUsedUp` is `done`.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { deliver } from './deliver.ts';
import { show, tags, type ServedModel } from './ollama-wire.ts';
import { status, text, type ScriptedReply } from './replies.ts';
import { strictValidator } from './strict-validator.ts';

/** `answered`: sent whole. `client_closed`: the client went first. `cut`: broken off by the script or by `close`. */
export type RequestEnd = 'answered' | 'client_closed' | 'cut';

export interface RecordedRequest {
  /** From 0, in order of arrival. */
  readonly index: number;
  /** Epoch milliseconds. */
  readonly at_ms: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The client's; the same for two requests that share a connection. */
  readonly port: number | undefined;
  /** Parsed; null where it is not JSON in good UTF-8. */
  readonly body: ChatBody | null;
  readonly rawBody: string;
  /** Why the strict validator refused it. */
  readonly refused: readonly string[];
  /** The reply it was given; null for refused and unscripted ones. */
  readonly reply: ScriptedReply | null;
  /** How the exchange ended; settles when it has. */
  readonly ended: Promise<RequestEnd>;
}

export interface ChatBody {
  readonly model?: string;
  readonly stream?: boolean;
  readonly messages?: readonly ChatMessage[];
  readonly [field: string]: unknown;
}

export interface ChatMessage { readonly role?: string; readonly content?: string; readonly [field: string]: unknown }

/** A list of replies, or a function of the request for scripts without end. */
export type ModelScript = readonly ScriptedReply[] | ((request: ChatBody, index: number) => ScriptedReply);

export interface ModelServerOptions {
  readonly dialect: 'ollama';
  readonly script?: ModelScript;
  /** Default `refuse` (4). */
  readonly whenUsedUp?: 'refuse' | 'done';
  /** Default true (3). */
  readonly strict?: boolean;
  /** What `/api/tags` and `/api/show` tell. */
  readonly models?: readonly ServedModel[];
  /** Default any free one; a server that comes back takes the port it had. */
  readonly port?: number;
}

export interface ModelServer {
  /** `http://127.0.0.1:port` */
  readonly url: string;
  readonly requests: readonly RecordedRequest[];
  /** Chat requests at the same time, at most and now. */
  readonly parallel: { readonly most: number; readonly now: number };
  readonly violations: readonly string[];
  /** Adds replies to a script that is a list. */
  add(...replies: readonly ScriptedReply[]): void;
  /** The `count`-th chat request (from 1), once it has come. */
  received(count: number): Promise<RecordedRequest>;
  /** @throws Error naming every violation and every unused reply. */
  assertUsedUp(): void;
  close(): Promise<void>;
}

const defaultModels: readonly ServedModel[] = [{ name: 'scripted:latest', context_length: 32_768, capabilities: ['completion', 'tools'] }];

/** Resolves when the server listens. */
export async function startModelServer(options: ModelServerOptions): Promise<ModelServer> {
  const models = options.models ?? defaultModels;
  const chat = chatEndpoint(options);
  const server = createServer((request, response) => {
    // A test's server must not die of a client that is gone; what matters is recorded.
    response.on('error', () => undefined);
    void route(request, response).catch((error: unknown) => {
      if (!request.readableAborted) chat.violations.push(`the server failed: ${String(error)}`);
      response.destroy();
    });
  });

  async function route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request);
    switch (`${request.method} ${request.url}`) {
      case 'POST /api/chat': return chat.answer(request, response, body);
      case 'GET /api/version': return json(response, 200, { version: '0.99.0-scripted' });
      case 'GET /api/tags': return json(response, 200, tags(models));
      case 'POST /api/show': return answerShow(response, body, models);
      default: response.writeHead(404, { 'content-type': 'text/plain' }).end('404 page not found');
    }
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests: chat.requests, parallel: chat.parallel, violations: chat.violations,
    add: chat.add, received: chat.received, assertUsedUp: chat.assertUsedUp,
    close: () => new Promise<void>((resolve) => {
      chat.close();
      server.close(() => resolve());
      server.closeAllConnections();
    }),
  };
}

function chatEndpoint(options: ModelServerOptions) {
  const list: ScriptedReply[] = Array.isArray(options.script) ? [...options.script as readonly ScriptedReply[]] : [];
  const script = typeof options.script === 'function' ? options.script : null;
  const requests: RecordedRequest[] = [];
  const violations: string[] = [];
  const parallel = { most: 0, now: 0 };
  const waiting: { count: number; resolve: (request: RecordedRequest) => void }[] = [];
  let used = 0;
  let closing = false;

  function next(body: ChatBody, index: number): ScriptedReply | null {
    if (script !== null) return ask(script, body, index);
    const entry = list[used];
    if (entry !== undefined) used += 1;
    else if (options.whenUsedUp === 'done') return text('done');
    return entry ?? null;
  }

  function ask(of: (body: ChatBody, index: number) => ScriptedReply, body: ChatBody, index: number): ScriptedReply | null {
    try {
      return of(body, index);
    } catch (error) {
      violations.push(`request ${index}: the script failed: ${String(error)}`);
      return null;
    }
  }

  async function answer(request: IncomingMessage, response: ServerResponse, bytes: Buffer): Promise<void> {
    parallel.now += 1;
    parallel.most = Math.max(parallel.most, parallel.now);
    const body = parse(bytes);
    const index = requests.length;
    const strict = options.strict ?? true;
    const refused = body === null ? ['the body is not JSON in good UTF-8'] : strict ? strictValidator(body, options.dialect) : [];
    const reply = body === null || refused.length > 0 ? null : next(body, index);
    const ended = endOf(response, () => closing || reply?.type === 'cut').finally(() => { parallel.now -= 1; });
    const record: RecordedRequest = { index, at_ms: Date.now(), headers: request.headers, port: request.socket.remotePort, body, rawBody: bytes.toString(), refused, reply, ended };
    requests.push(record);
    tell();
    if (refused.length > 0) violations.push(...refused.map((problem) => `request ${index}: ${problem}`));
    else if (reply === null && script === null) violations.push(`request ${index} is beyond the script`);
    const given = reply ?? (refused.length > 0
      ? status(400, {}, { error: `strict: ${refused.join('; ')}` })
      : status(500, {}, { error: 'unscripted call' }));
    await deliver(given, { response, model: body?.model ?? '', stream: body?.stream !== false, promptBytes: bytes.length });
  }

  function tell(): void {
    for (const waiter of waiting.filter((each) => each.count <= requests.length)) {
      waiting.splice(waiting.indexOf(waiter), 1);
      waiter.resolve(requests[waiter.count - 1]!);
    }
  }

  function received(count: number): Promise<RecordedRequest> {
    return new Promise((resolve) => {
      waiting.push({ count, resolve });
      tell();
    });
  }

  function assertUsedUp(): void {
    const problems = [...violations];
    if (used < list.length) problems.push(`${list.length - used} of ${list.length} scripted replies were not asked for`);
    if (problems.length > 0) throw new Error(`model server: ${problems.join('\n')}`);
  }

  return {
    requests, violations, parallel, answer, received, assertUsedUp,
    add: (...replies: readonly ScriptedReply[]) => { list.push(...replies); },
    close: () => { closing = true; },
  };
}

/** `writableFinished` says that the bytes are with the kernel; `brokenOff`, that it was this side's doing. */
function endOf(response: ServerResponse, brokenOff: () => boolean): Promise<RequestEnd> {
  return new Promise((resolve) => {
    const onClose = (): void => {
      if (brokenOff()) resolve('cut');
      else resolve(response.writableFinished ? 'answered' : 'client_closed');
    };
    if (response.closed) onClose();
    else response.once('close', onClose);
  });
}

function parse(bytes: Buffer): ChatBody | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    return value !== null && typeof value === 'object' && !Array.isArray(value) ? value as ChatBody : null;
  } catch {
    return null;
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function answerShow(response: ServerResponse, body: Buffer, models: readonly ServedModel[]): void {
  const asked = parse(body)?.model;
  const model = models.find((each) => each.name === asked);
  if (model === undefined) json(response, 404, { error: `model '${asked ?? ''}' not found` });
  else json(response, 200, show(model));
}

function json(response: ServerResponse, code: number, body: unknown): void {
  response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
