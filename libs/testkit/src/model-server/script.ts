/**
 * The script of a model server, and the record of what was asked of it.
 *
 * Owns: the script's position, the record of all chat requests of all wires, in order of arrival.
 *
 * 1  Every chat request is recorded, refused ones too.
 * 2  A script entry is used up by exactly one accepted request, in order of arrival.
 * 3  A request that the strict validator refuses gets 400, uses up nothing and is a violation.
 * 4  A request beyond the script gets 500 and is a violation, unless `whenUsedUp` is `done`.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { deliver } from './deliver.ts';
import type { ChatBody, Dialect, DialectName } from './dialects/index.ts';
import { refusal, text, type ScriptedReply } from './replies.ts';

/** `answered`: sent whole. `client_closed`: the client went first. `cut`: broken off by the script or by `close`. */
export type RequestEnd = 'answered' | 'client_closed' | 'cut';

export interface RecordedRequest {
  /** From 0, in order of arrival. */
  readonly index: number;
  readonly dialect: DialectName;
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

/** A list of replies, or a function of the request for scripts without end. */
export type ModelScript = readonly ScriptedReply[] | ((request: ChatBody, index: number, dialect: DialectName, headers: IncomingHttpHeaders) => ScriptedReply);

export interface ScriptOptions {
  readonly script?: ModelScript;
  /** Default `refuse` (4). */
  readonly whenUsedUp?: 'refuse' | 'done';
  /** Default true (3). */
  readonly strict?: boolean;
}

export interface Played {
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
}

export interface ScriptPlayer extends Played {
  answer(request: IncomingMessage, response: ServerResponse, asked: { readonly bytes: Buffer; readonly dialect: Dialect }): Promise<void>;
  blame(problem: string): void;
  close(): void;
}

export function playScript(options: ScriptOptions): ScriptPlayer {
  const { take, unused, add } = positionOf(options);
  const requests: RecordedRequest[] = [];
  const violations: string[] = [];
  const parallel = { most: 0, now: 0 };
  const waiting: { count: number; resolve: (request: RecordedRequest) => void }[] = [];
  let closing = false;

  function next(body: ChatBody, index: number, { dialect, headers }: { readonly dialect: Dialect; readonly headers: IncomingHttpHeaders }): ScriptedReply | null {
    try {
      const reply = take(body, { index, dialect: dialect.name, headers });
      if (reply === null) violations.push(`request ${index} is beyond the script`);
      return reply;
    } catch (error) {
      violations.push(`request ${index}: the script failed: ${String(error)}`);
      return null;
    }
  }

  const answer: ScriptPlayer['answer'] = async (request, response, { bytes, dialect }) => {
    parallel.now += 1;
    parallel.most = Math.max(parallel.most, parallel.now);
    const body = parse(bytes);
    const index = requests.length;
    const refused = options.strict === false && body !== null ? [] : problemsOf(body, bytes, dialect);
    violations.push(...refused.map((problem) => `request ${index}: ${problem}`));
    const reply = body === null || refused.length > 0 ? null : next(body, index, { dialect, headers: request.headers });
    const ended = endOf(response, () => closing || reply?.type === 'cut').finally(() => { parallel.now -= 1; });
    requests.push({
      index, dialect: dialect.name, at_ms: Date.now(), headers: request.headers, port: request.socket.remotePort, body, rawBody: bytes.toString(), refused, reply, ended,
    });
    tell();
    const given = reply ?? (refused.length > 0
      ? refusal(bytes.length > dialect.maxBodyBytes ? 413 : 400, `strict: ${refused.join('; ')}`)
      : refusal(500, 'unscripted call'));
    await deliver(given, { response, dialect, asked: { body: body ?? {}, index, promptBytes: bytes.length } });
  };

  function tell(): void {
    for (const waiter of waiting.filter((each) => each.count <= requests.length)) {
      waiting.splice(waiting.indexOf(waiter), 1);
      waiter.resolve(requests[waiter.count - 1]!);
    }
  }

  return {
    requests, violations, parallel, answer, add,
    received: (count) => new Promise((resolve) => {
      waiting.push({ count, resolve });
      tell();
    }),
    assertUsedUp: () => {
      const problems = [...violations, ...unused()];
      if (problems.length > 0) throw new Error(`model server: ${problems.join('\n')}`);
    },
    blame: (problem) => { violations.push(problem); },
    close: () => { closing = true; },
  };
}

function positionOf({ script = [], whenUsedUp }: ScriptOptions) {
  const list: ScriptedReply[] = typeof script === 'function' ? [] : [...script];
  let used = 0;
  return {
    take: (body: ChatBody, { index, dialect, headers }: { readonly index: number; readonly dialect: DialectName; readonly headers: IncomingHttpHeaders }): ScriptedReply | null => {
      if (typeof script === 'function') return script(body, index, dialect, headers);
      const entry = list[used];
      if (entry !== undefined) used += 1;
      return entry ?? (whenUsedUp === 'done' ? text('done') : null);
    },
    unused: (): string[] => used < list.length ? [`${list.length - used} of ${list.length} scripted replies were not asked for`] : [],
    add: (...replies: readonly ScriptedReply[]): void => { list.push(...replies); },
  };
}

function problemsOf(body: ChatBody | null, bytes: Buffer, dialect: Dialect): readonly string[] {
  if (bytes.length > dialect.maxBodyBytes) return [`the body has ${bytes.length} bytes, more than ${dialect.maxBodyBytes}`];
  return body === null ? ['the body is not JSON in good UTF-8'] : dialect.problems(body);
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

/** Null for what is no JSON object in good UTF-8. */
export function parse(bytes: Buffer): ChatBody | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    return value !== null && typeof value === 'object' && !Array.isArray(value) ? value as ChatBody : null;
  } catch {
    return null;
  }
}
