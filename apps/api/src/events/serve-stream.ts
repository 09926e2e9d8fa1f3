/** The two streams of a log: Server-Sent Events, which stay open, and JSONL, which ends with what is there. */
import type { FastifyReply } from 'fastify';
import { readLog, type LogEntry } from '@treadle/engine';
import type { ApiContext } from '../dependencies.ts';
import { followLog } from './follow.ts';
import { createStreamWriter, type StreamWriter } from './stream-writer.ts';

export interface StreamRequest {
  readonly run_id: string;
  readonly after_seq: number;
  /** Nothing will ever follow `after_seq`. */
  readonly atEnd: boolean;
  readonly types: ReadonlySet<string> | null;
  readonly reply: FastifyReply;
}

const eventStreamHead = {
  'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache, no-transform', 'x-accel-buffering': 'no',
  'x-content-type-options': 'nosniff',
};

/** How soon a browser comes back when the connection is lost, ms. */
const retryMs = 1000;

/** Answers at once with the head and a comment, so that proxies and clients see that the stream is there. */
export async function serveEventStream(context: ApiContext, request: StreamRequest): Promise<void> {
  const { observe } = context.deps;
  const { writer, signal, left } = open(context, request.reply, eventStreamHead);
  observe?.sseClientOpened?.();
  writer.write(`retry: ${retryMs}\n\n`);
  const heartbeat = setInterval(() => { if (!writer.full) writer.write(': heartbeat\n\n'); }, context.settings.heartbeatMs);
  try {
    const { run_id, after_seq, types } = request;
    if (!request.atEnd) await followLog(context, { run_id, after_seq, types, writer, signal, frame: eventFrame });
  } finally {
    clearInterval(heartbeat);
    observe?.sseClientGone?.();
    left();
  }
}

/** Whoever stops reading for too long is cut off, and a log that cannot be read on is cut short: both are seen as an unclean end. */
export async function serveJsonLines(context: ApiContext, request: StreamRequest): Promise<void> {
  const { run_id, types } = request;
  let after_seq = request.after_seq;
  // The first page is read before the head is written, so that a store that is away is answered as such.
  let page = await readLog(context.log, run_id, { after_seq, limit: pageEvents });
  const { writer, signal, left } = open(context, request.reply, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
  try {
    while (page.length > 0 && !signal.aborted) {
      for (const entry of page) if (types === null || types.has(entry.type)) writer.write(`${entry.text}\n`);
      after_seq = page.at(-1)?.seq ?? after_seq;
      if (page.at(-1)?.type === 'run_end') break;
      page = [];
      if (writer.full && !(await writer.drained(signal))) return writer.cut();
      page = await readLog(context.log, run_id, { after_seq, limit: pageEvents });
    }
    if (signal.aborted) writer.cut();
  } catch (error) {
    context.deps.logger?.warn({ run_id, error }, 'a log was cut short');
    writer.cut();
  } finally {
    left();
  }
}

const pageEvents = 100;

function eventFrame({ seq, type, text }: LogEntry): string {
  return `id: ${seq}\nevent: ${type}\ndata: ${text}\n\n`;
}

interface Opened {
  readonly writer: StreamWriter;
  /** Aborts when the reader goes or the server closes. */
  readonly signal: AbortSignal;
  /** Ends the response if nothing else has. */
  readonly left: () => void;
}

function open(context: ApiContext, reply: FastifyReply, head: Readonly<Record<string, string>>): Opened {
  const { settings, streams } = context;
  reply.hijack();
  const { raw } = reply;
  const abort = new AbortController();
  raw.once('close', () => abort.abort());
  raw.writeHead(200, head);
  const writer = createStreamWriter(raw, settings);
  const leave = streams.open(() => {
    abort.abort();
    // A reader that does not read its end is not waited for.
    setTimeout(() => raw.destroy(), settings.closeGraceMs).unref();
  });
  raw.once('close', leave);
  return { writer, signal: abort.signal, left: () => writer.end({ close: streams.closing }) };
}
