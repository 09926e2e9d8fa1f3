/**
 * A receiver of webhooks, outside of the product, that remembers every request byte for byte and judges it when it comes, with the library that
 * receivers use. How it answers is the test's business.
 */
import http from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Webhook } from 'standardwebhooks';

export interface Received {
  readonly id: string;
  /** What its header says, epoch seconds. */
  readonly timestamp: number;
  readonly receivedMs: number;
  readonly body: string;
  readonly headers: http.IncomingHttpHeaders;
  /** Why it is not accepted; null for a valid signature over the raw body, stamped just now. */
  readonly fault: string | null;
}

export type Answering = (response: http.ServerResponse, socket: Socket, received: Received, nth: number) => void;

export interface Receiver {
  readonly url: string;
  /** In order; `of` gives those of one id. */
  readonly received: readonly Received[];
  of(id: string): readonly Received[];
  stop(): Promise<void>;
}

/** `nth`: how many of this id had come before. */
export async function startReceiver(secret: string, answer: Answering): Promise<Receiver> {
  const received: Received[] = [];
  const counts = new Map<string, number>();
  const judge = new Webhook(secret);
  const server = http.createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => { parts.push(part); }).on('error', () => undefined).on('end', () => {
      const body = Buffer.concat(parts).toString();
      const id = String(request.headers['webhook-id']);
      const one: Received = { id, timestamp: Number(request.headers['webhook-timestamp']), receivedMs: Date.now(), body, headers: request.headers, fault: faultOf(judge, body, request.headers) };
      received.push(one);
      const nth = counts.get(id) ?? 0;
      counts.set(id, nth + 1);
      answer(response, request.socket, one, nth);
    });
  });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received, of: (id) => received.filter((each) => each.id === id),
    stop: () => new Promise((resolve) => { server.closeAllConnections(); server.close(() => { resolve(); }); }),
  };
}

function faultOf(judge: Webhook, body: string, headers: http.IncomingHttpHeaders): string | null {
  try {
    judge.verify(body, headers as Record<string, string>);
    return null;
  } catch (error) {
    return String(error);
  }
}

/** `whsec_` and 32 bytes. */
export function webhookSecret(letter: string): string {
  return `whsec_${Buffer.from(letter.repeat(32)).toString('base64')}`;
}
