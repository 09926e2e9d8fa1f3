/** The two streams of a log: Server-Sent Events, which stay open, and JSONL, which ends with what is there. */
import type { FastifyReply } from 'fastify';
import type { LogEntry } from '@treadle/engine';
import { watchKey } from '../auth/authenticate.ts';
import type { ApiContext } from '../dependencies.ts';
import { followLog } from './follow.ts';
import { logLines } from './pager.ts';
import { createStreamWriter, type StreamWriter } from './stream-writer.ts';

export interface StreamRequest extends Connection {
  readonly run_id: string;
  readonly after_seq: number;
  /** See `Reader`. */
  readonly seen_epoch: number;
  /** What the reader has seen beyond `after_seq` is void. */
  readonly reset: boolean;
  /** Nothing will ever follow `after_seq`. */
  readonly atEnd: boolean;
  readonly types: ReadonlySet<string> | null;
}

/** Ends when its key expires or is revoked. */
export interface Connection { readonly reply: FastifyReply }

const eventStreamHead = {
  'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache, no-transform', 'x-accel-buffering': 'no',
  'x-content-type-options': 'nosniff', connection: 'close',
};
const jsonLinesHead = { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store', 'x-content-type-options': 'nosniff', connection: 'close' };

/** How soon a browser comes back when the connection is lost, ms. */
const retryMs = 1000;

/** Answers at once with the head and a comment, so that proxies and clients see that the stream is there. */
export async function serveEventStream(context: ApiContext, request: StreamRequest): Promise<void> {
  const { observe } = context.deps;
  const { writer, signal, left, gone } = open(context, request, eventStreamHead);
  observe?.sseClientOpened?.();
  // Not before: a response that has been ended lives on while its reader does not read.
  gone(() => { observe?.sseClientGone?.(); });
  writer.write(`retry: ${retryMs}\n\n`);
  const heartbeat = setInterval(() => { if (!writer.full) writer.write(': heartbeat\n\n'); }, context.settings.heartbeatMs);
  try {
    const { run_id, after_seq, seen_epoch, types } = request;
    if (request.reset) writer.write(resetFrame(after_seq));
    if (!request.atEnd) await followLog(context, { run_id, after_seq, seen_epoch, types, writer, signal, frame: eventFrame, resetFrame });
  } finally {
    clearInterval(heartbeat);
    left();
  }
}

/** The log as it is now. */
export async function serveJsonLines(context: ApiContext, request: StreamRequest): Promise<void> {
  await serveLines(context, request, logLines(context.log, request));
}

/**
 * Lines as they are read, no faster than they are taken. Whoever stops reading for too long is cut off, and what cannot be read on is
 * cut short: both are seen as an unclean end. Throws what reading the first line throws: then nothing has been answered yet.
 */
export async function serveLines(context: ApiContext, connection: Connection, lines: AsyncGenerator<string>): Promise<void> {
  let line = await lines.next();
  const { writer, signal, left } = open(context, connection, jsonLinesHead);
  try {
    while (line.done !== true && !signal.aborted) {
      writer.write(line.value);
      if (writer.full && !(await writer.drained(signal))) return writer.cut();
      line = await lines.next();
    }
    if (signal.aborted) writer.cut();
  } catch (error) {
    context.deps.logger?.warn({ route: connection.reply.request.routeOptions.url, err: error }, 'a log was cut short');
    writer.cut();
  } finally {
    left();
    await lines.return(undefined);
  }
}

function eventFrame({ seq, type, text }: LogEntry): string {
  return `id: ${seq}\nevent: ${type}\ndata: ${text}\n\n`;
}

/** No event of the log; its id is where the reader stands now. */
function resetFrame(last_seq: number): string {
  return `id: ${last_seq}\nevent: reset\ndata: ${JSON.stringify({ type: 'reset', last_seq })}\n\n`;
}

interface Opened {
  readonly writer: StreamWriter;
  /** Aborts when the reader goes or the server closes. */
  readonly signal: AbortSignal;
  /** Ends the response if nothing else has. */
  readonly left: () => void;
  /** Calls back once, when the connection is gone. */
  readonly gone: (callback: () => void) => void;
}

function open(context: ApiContext, { reply }: Connection, head: Readonly<Record<string, string>>): Opened {
  const { settings, streams } = context;
  reply.hijack();
  const { raw } = reply;
  const { socket } = reply.request.raw;
  const abort = new AbortController();
  const unwatch = watchKey(reply.request, context, () => abort.abort());
  raw.once('close', () => {
    abort.abort();
    unwatch();
  });
  raw.writeHead(200, head);
  const writer = createStreamWriter(raw, settings);
  const leave = streams.open(() => {
    abort.abort();
    // A reader that does not read its end is not waited for.
    setTimeout(() => raw.destroy(), settings.closeGraceMs).unref();
  });
  raw.once('close', leave);
  const gone = (callback: () => void): void => { if (socket.destroyed) callback(); else socket.once('close', callback); };
  return { writer, signal: abort.signal, left: () => writer.end(), gone };
}
