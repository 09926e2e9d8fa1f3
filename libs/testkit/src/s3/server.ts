/**
 * An S3 server for tests: one process, memory only, on 127.0.0.1, with the ways in which real stores differ and fail.
 *
 * It owns one listening socket and its connections; states: up, down (connections are reset), stopped.
 *
 * 1  A PUT is atomic: condition and write happen after its body has come, in one go.
 * 2  Each planned fault hits one request and is gone; `pending` says whether all were used.
 * 3  No signature is checked. That needs a real store.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { errorReply, getObject, listObjects, putObject, type S3Reply } from './bucket.ts';

export interface S3ServerOptions {
  /** What becomes of `If-None-Match: *`: obeyed, overlooked, or refused with 501. Default `enforced`. */
  readonly conditional?: 'enforced' | 'ignored' | 'unsupported';
  /** Requests with checksum headers or trailers are answered 501, as some stores do. */
  readonly refuseChecksums?: boolean;
  /** Bodies in signed chunks are answered 400, as some stores do. */
  readonly refuseChunked?: boolean;
  /** Most keys of one page of a listing, whatever was asked for. Default 1000. */
  readonly pageKeys?: number;
  /** How long each answer takes, ms. Default none. */
  readonly latencyMs?: number;
  /** To delete what is not there is answered 404, as some stores do. */
  readonly missesDeleted?: boolean;
  /** `StartAfter` of listings is overlooked, as some stores do. */
  readonly ignoreStartAfter?: boolean;
}

export interface S3Request {
  readonly method: string;
  /** The object's key, empty for requests about the bucket. */
  readonly key: string;
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface S3Server {
  readonly endpoint: string;
  readonly bucket: string;
  /** What is stored, by key; tests may look and change. */
  readonly objects: Map<string, Uint8Array>;
  /** Every request that was read, oldest first. */
  readonly requests: readonly S3Request[];
  /** The next `n` requests are answered with this status and change nothing. */
  failNext(n: number, status: number): void;
  /** The next `n` PUTs of objects are carried out and not answered: the connection is reset. */
  dropAnswer(n: number): void;
  /** The next `n` GETs of objects send half of the body and reset the connection. */
  cutBody(n: number): void;
  /** The next `n` GETs of objects send half of the body and then nothing, on a connection that stays open. */
  stallBody(n: number): void;
  /** The next `n` requests are never answered, on a connection that stays open. */
  hang(n: number): void;
  /**
   * From now on one of `every` requests goes wrong: in turn it is answered 500, carried out and not answered (the connection is reset),
   * or answered 503; or what `kinds` says, where `late` is carried out and answered after 20 s. Null ends it.
   */
  goWrong(every: number | null, kinds?: readonly Trouble[]): void;
  /** From now on every request is answered with this status and changes nothing. Null ends it. */
  answerOnly(status: number | null): void;
  /** Connections that are open now. */
  connections(): number;
  /** Planned faults that no request has met yet. */
  pending(): number;
  /** Connections, open and new ones, are reset. */
  down(): void;
  up(): void;
  stop(): Promise<void>;
}

/** A request is answered with an error, carried out and not answered, or carried out and answered late. */
export type Trouble = 500 | 503 | 'reset' | 'late';

const troubles: readonly Trouble[] = [500, 'reset', 503];
const lateMs = 20_000;

interface Faults {
  fail: number; status: number; drop: number; cut: number; stall: number; hang: number; down: boolean;
  every: number | null; kinds: readonly Trouble[]; asked: number; wrong: number; only: number | null;
}

const bucket = 'treadle-test';

const codes: Readonly<Record<number, string>> = {
  400: 'InvalidRequest', 403: 'InvalidAccessKeyId', 404: 'NoSuchBucket', 409: 'ConditionalRequestConflict', 429: 'TooManyRequests',
  500: 'InternalError', 501: 'NotImplemented', 503: 'SlowDown',
};

export async function startS3Server(options: S3ServerOptions = {}): Promise<S3Server> {
  const objects = new Map<string, Uint8Array>();
  const requests: S3Request[] = [];
  const faults: Faults = { fail: 0, status: 500, drop: 0, cut: 0, stall: 0, hang: 0, down: false, every: null, kinds: troubles, asked: 0, wrong: 0, only: null };
  const sockets = new Set<Socket>();

  const server = createServer((request, response) => {
    void answer({ request, response, objects, requests, faults, options }).catch(() => request.socket.destroy());
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
    if (faults.down) socket.resetAndDestroy();
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });

  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, bucket, objects, requests,
    failNext(n, status) { faults.fail = n; faults.status = status; },
    dropAnswer(n) { faults.drop = n; },
    cutBody(n) { faults.cut = n; },
    stallBody(n) { faults.stall = n; },
    hang(n) { faults.hang = n; },
    goWrong(every, kinds = troubles) { Object.assign(faults, { every, kinds }); },
    answerOnly(status) { faults.only = status; },
    pending: () => faults.fail + faults.drop + faults.cut + faults.stall + faults.hang,
    connections: () => sockets.size,
    down() {
      faults.down = true;
      for (const socket of sockets) socket.resetAndDestroy();
    },
    up() { faults.down = false; },
    async stop() {
      const closed = new Promise<void>((resolve) => { server.close(() => resolve()); });
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly objects: Map<string, Uint8Array>;
  readonly requests: S3Request[];
  readonly faults: Faults;
  readonly options: S3ServerOptions;
}

async function answer(exchange: Exchange): Promise<void> {
  const { request, response, faults } = exchange;
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk as Uint8Array);
  const url = new URL(request.url ?? '/', 'http://localhost');
  const [, name = '', key = ''] = /^\/([^/]*)\/?(.*)$/.exec(decodeURIComponent(url.pathname)) ?? [];
  const headers = Object.fromEntries(Object.entries(request.headers).map(([header, value]) => [header, String(value)]));
  const method = request.method ?? '';
  exchange.requests.push({ method, key, query: url.search, headers });

  if (take(faults, 'hang')) return;
  if (exchange.options.latencyMs !== undefined) await new Promise((resolve) => { setTimeout(resolve, exchange.options.latencyMs); });
  const trouble = troubleOf(faults);
  const status = faults.only ?? (take(faults, 'fail') ? faults.status : typeof trouble === 'number' ? trouble : null);
  if (status !== null) {
    send(response, errorReply(status, codes[status] ?? 'Fault', `<AWSAccessKeyId>${accessKeyOf(headers)}</AWSAccessKeyId>`));
    return;
  }
  const reply = name === bucket
    ? serve(exchange, { method, key, headers, query: url.searchParams, bytes: Buffer.concat(chunks) })
    : errorReply(404, 'NoSuchBucket');
  if (trouble === 'late') await new Promise((resolve) => { setTimeout(resolve, lateMs).unref(); });
  if (trouble === 'reset' || (method === 'PUT' && key !== '' && take(faults, 'drop'))) {
    request.socket.resetAndDestroy();
    return;
  }
  if (method === 'GET' && key !== '' && reply.status === 200) {
    if (take(faults, 'cut')) return sendHalf(response, reply, () => request.socket.resetAndDestroy());
    if (take(faults, 'stall')) return sendHalf(response, reply, () => undefined);
  }
  send(response, reply, method === 'HEAD');
}

interface Asked {
  readonly method: string;
  readonly key: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly bytes: Uint8Array;
}

function serve(exchange: Exchange, asked: Asked): S3Reply {
  const { objects, options } = exchange;
  const { method, key, headers, query } = asked;
  if (options.refuseChecksums === true && hasChecksum(headers)) return errorReply(501, 'NotImplemented');
  if (options.refuseChunked === true && isChunked(headers)) return errorReply(400, 'InvalidRequest');
  if (key === '') {
    if (method === 'PUT' || method === 'HEAD') return { status: 200 };
    if (method !== 'GET' || query.get('list-type') !== '2') return errorReply(501, 'NotImplemented');
    if (options.ignoreStartAfter === true) query.delete('start-after');
    if (options.pageKeys !== undefined) query.set('max-keys', String(options.pageKeys));
    return listObjects(objects, bucket, query);
  }
  switch (method) {
    case 'GET':
    case 'HEAD':
      return getObject(objects, key);
    case 'DELETE':
      return objects.delete(key) || options.missesDeleted !== true ? { status: 204 } : errorReply(404, 'NoSuchKey');
    case 'PUT': {
      const conditional = headers['if-none-match'] !== undefined;
      if (conditional && options.conditional === 'unsupported') return errorReply(501, 'NotImplemented');
      return putObject(objects, { key, bytes: asked.bytes, onlyNew: conditional && options.conditional !== 'ignored' });
    }
    default:
      return errorReply(405, 'MethodNotAllowed');
  }
}

function troubleOf(faults: Faults): Trouble | null {
  faults.asked++;
  if (faults.every === null || faults.asked % faults.every !== 0) return null;
  return faults.kinds[faults.wrong++ % faults.kinds.length] ?? null;
}

function take(faults: Faults, fault: 'fail' | 'drop' | 'cut' | 'stall' | 'hang'): boolean {
  if (faults[fault] === 0) return false;
  faults[fault] -= 1;
  return true;
}

function send(response: ServerResponse, reply: S3Reply, headersOnly = false): void {
  const body = Buffer.from(reply.body ?? '');
  response.writeHead(reply.status, { ...reply.headers, ...(reply.status === 204 ? {} : { 'content-length': String(body.length) }) });
  response.end(headersOnly ? undefined : body);
}

function sendHalf(response: ServerResponse, reply: S3Reply, then: () => void): void {
  const body = Buffer.from(reply.body ?? '');
  response.writeHead(reply.status, { ...reply.headers, 'content-length': String(body.length) });
  response.write(body.subarray(0, Math.floor(body.length / 2)), then);
}

function hasChecksum(headers: Readonly<Record<string, string>>): boolean {
  const named = Object.keys(headers).some((header) => header.startsWith('x-amz-checksum-') || header === 'x-amz-sdk-checksum-algorithm' || header === 'x-amz-trailer');
  return named || isChunked(headers);
}

function isChunked(headers: Readonly<Record<string, string>>): boolean {
  return (headers['x-amz-content-sha256'] ?? '').startsWith('STREAMING-') || (headers['content-encoding'] ?? '').includes('aws-chunked');
}

/** Real stores name the key in what they answer; clients must not pass it on. */
function accessKeyOf(headers: Readonly<Record<string, string>>): string {
  return /Credential=([^/]+)/.exec(headers['authorization'] ?? '')?.[1] ?? '';
}
