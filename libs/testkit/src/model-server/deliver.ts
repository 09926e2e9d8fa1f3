/**
 * Writes one scripted reply to one response, with its silences, cuts and stalls.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Asked, Dialect } from './dialects/dialect.ts';
import type { CutPoint, ScriptedReply, WholeReply } from './replies.ts';

export interface Delivering {
  readonly response: ServerResponse;
  readonly dialect: Dialect;
  readonly asked: Asked;
}

export async function deliver(reply: ScriptedReply, to: Delivering): Promise<void> {
  switch (reply.type) {
    case 'status': {
      if (reply.delivery.delayMs !== undefined) await delay(reply.delivery.delayMs);
      to.response.writeHead(reply.status, reply.headers).end(reply.body);
      return;
    }
    case 'refusal': {
      if (reply.delivery.delayMs !== undefined) await delay(reply.delivery.delayMs);
      const body = JSON.stringify(to.dialect.errorBody(reply.status, reply.message));
      to.response.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers }).end(body);
      return;
    }
    case 'message':
    case 'raw': {
      await sendWhole(reply, to);
      return;
    }
    case 'stall': {
      await sendBeginning(reply.of, reply.after, to);
      return;
    }
    case 'cut': {
      await sendBeginning(reply.of, reply.after, to);
      if (reply.how === 'eof' && reply.after !== 'nothing') to.response.end();
      else to.response.socket?.resetAndDestroy();
    }
  }
}

/** The bytes of a reply's body, as the wire sends them to this request. */
export function bodyChunks(reply: WholeReply, dialect: Dialect, asked: Asked): readonly Uint8Array[] {
  if (reply.type === 'raw') return reply.chunks;
  if (!dialect.streams(asked.body)) return [Buffer.from(JSON.stringify(dialect.whole(reply.message, asked)))];
  const { lineEnd = '\n' } = reply.delivery;
  return dialect.pieces(reply.message, asked).map((piece) => Buffer.from(piece.replaceAll('\n', lineEnd)));
}

async function sendWhole(reply: WholeReply, to: Delivering): Promise<void> {
  const { delayMs, chunkDelayMs, cutAt } = reply.delivery;
  if (delayMs !== undefined) await delay(delayMs);
  begin(to);
  for (const chunk of recut(bodyChunks(reply, to.dialect, to.asked), cutAt)) {
    if (to.response.destroyed) return;
    if (!to.response.write(chunk)) await drained(to.response);
    if (chunkDelayMs !== undefined) await delay(chunkDelayMs);
  }
  to.response.end();
}

/** Awaits that the bytes have left, so that a reset behind them does not swallow them here. */
async function sendBeginning(reply: WholeReply, upTo: CutPoint, to: Delivering): Promise<void> {
  if (reply.delivery.delayMs !== undefined) await delay(reply.delivery.delayMs);
  if (upTo === 'nothing') return;
  begin(to);
  to.response.flushHeaders();
  if (upTo === 'headers' || upTo === 0) return;
  const head = Buffer.concat(bodyChunks(reply, to.dialect, to.asked)).subarray(0, upTo);
  if (head.length > 0) await new Promise<void>((resolve) => { to.response.write(head, () => resolve()); });
}

function begin(to: Delivering): void {
  to.response.writeHead(200, { 'content-type': to.dialect.streams(to.asked.body) ? to.dialect.streamType : 'application/json' });
}

/** Each chunk is a frame of its own on the wire, so the client sees just these boundaries. */
function recut(chunks: readonly Uint8Array[], cutAt: readonly number[] | 'every_byte' | undefined): readonly Uint8Array[] {
  if (cutAt === undefined) return chunks;
  const whole = Buffer.concat(chunks);
  const inside = cutAt === 'every_byte' ? whole.keys() : cutAt.filter((offset) => offset < whole.length);
  const edges = [...new Set([0, ...inside, whole.length])].sort((a, b) => a - b);
  return edges.slice(1).map((end, index) => whole.subarray(edges[index], end));
}

async function drained(response: ServerResponse): Promise<void> {
  await new Promise<void>((resolve) => {
    response.once('drain', resolve);
    response.once('close', resolve);
  });
}
