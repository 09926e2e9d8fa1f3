/**
 * Writes one scripted reply to one response, with its silences, cuts and stalls.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { chatChunks, chatObject } from './ollama-wire.ts';
import type { CutPoint, ScriptedReply, WholeReply } from './replies.ts';

export interface Delivering {
  readonly response: ServerResponse;
  readonly model: string;
  readonly stream: boolean;
  readonly promptBytes: number;
}

export async function deliver(reply: ScriptedReply, to: Delivering): Promise<void> {
  switch (reply.type) {
    case 'status': {
      if (reply.delivery.delayMs !== undefined) await delay(reply.delivery.delayMs);
      to.response.writeHead(reply.status, reply.headers).end(reply.body);
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

async function sendWhole(reply: WholeReply, to: Delivering): Promise<void> {
  const { delayMs, chunkDelayMs, cutAt } = reply.delivery;
  if (delayMs !== undefined) await delay(delayMs);
  if (!to.stream && reply.type === 'message') {
    to.response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(chatObject(reply.message, to.model, to.promptBytes)));
    return;
  }
  begin(to);
  for (const chunk of recut(chatChunks(reply, to.model, to.promptBytes), cutAt)) {
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
  const whole = Buffer.concat(chatChunks(reply, to.model, to.promptBytes));
  const head = whole.subarray(0, upTo);
  if (head.length > 0) await new Promise<void>((resolve) => { to.response.write(head, () => resolve()); });
}

function begin(to: Delivering): void {
  to.response.writeHead(200, { 'content-type': 'application/x-ndjson' });
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
