/**
 * The way out for requests whose address somebody else had a word in: a model, a configuration, a user, a redirect.
 *
 * 1  A name is resolved once, by the request itself; every address it has must be public, and the connection goes to one of
 *    those very addresses. What the name stands for a moment later does not matter.
 * 2  Nothing is followed: a redirect is answered as it is, and whoever follows it asks again.
 * 3  Only origins of `allow` may be inside. The list names `scheme://host:port`; another port of the host is another origin.
 * 4  Every request has a connection of its own, so each is checked, and none meets a connection that the other side has given up.
 * 5  An error says by `sent: false` that nothing of the request has left this machine.
 *
 * Nothing outlives a request: when promise and body have ended, no listener is left on the signal.
 */
import type { LookupAddress } from 'node:dns';
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { insideOf } from './addresses.ts';
import { resolvedByNameServers, resolvedBySystem } from './resolve.ts';
import { bodyOf, headersOf } from './response-body.ts';

export interface EgressOptions {
  /** Origins that may lie inside. */
  readonly allow: readonly string[];
  /** All addresses of a name; default: what name servers say, of an origin of `allow` what the system's resolver says. */
  readonly resolve?: (hostname: string) => Promise<readonly LookupAddress[]>;
}

/** A request that was refused here, or whose connection never came to be. The message is for people and models alike. */
export class NotSent extends TypeError {
  readonly sent = false;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'NotSent';
  }
}

/**
 * A `fetch` that keeps to the rules above. Takes text and bytes as a body. Fails as the global one does (`TypeError`, on abort the
 * signal's reason), before anything was sent with `NotSent`.
 */
export function createEgress(options: EgressOptions): typeof fetch {
  const allowed = new Set(options.allow.map((origin) => new URL(origin).origin));
  const go = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const url = checkedUrl(input);
    const free = allowed.has(url.origin);
    const resolve = options.resolve ?? (free ? resolvedBySystem : (hostname: string) => resolvedByNameServers(hostname));
    init.signal?.throwIfAborted();
    const literal = url.hostname.replace(/^\[(.*)\]$/, '$1');
    // Node asks no resolver about a literal address. The URL parser has read decimal, octal and hexadecimal forms as what they are.
    if (!free && isIP(literal) !== 0) refuse(url, insideOf(literal));
    const { body } = init;
    if (body !== undefined && body !== null && typeof body !== 'string' && !(body instanceof Uint8Array)) throw new TypeError('only text and bytes can be sent');
    const request = begun(url, { method: init.method ?? 'GET', headers: () => headersFor(init, body ?? undefined), lookup: checkedLookup(url, free, resolve) });
    return exchange(request, body ?? undefined, init.signal ?? undefined);
  };
  return go as typeof fetch;
}

function checkedUrl(input: string | URL | Request): URL {
  const text = String(input instanceof Request ? input.url : input);
  const url = URL.parse(text);
  if (url === null) throw new NotSent('the address is no URL');
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new NotSent(`only http and https are allowed, not ${url.protocol.slice(0, -1)}`);
  if (url.username !== '' || url.password !== '') throw new NotSent('an address with a user name or password is not allowed');
  return url;
}

function headersFor({ headers }: RequestInit, body: string | Uint8Array | undefined): Record<string, string> {
  return { ...Object.fromEntries(new Headers(headers)), connection: 'close', ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }) };
}

interface Beginning { readonly method: string; readonly headers: () => Record<string, string>; readonly lookup: LookupFunction }

/** Without the error's own words: those of a header that cannot be sent quote its value. */
function begun(url: URL, { method, headers, lookup }: Beginning): ClientRequest {
  try {
    return (url.protocol === 'https:' ? https : http).request(url, { agent: false, method, headers: headers(), lookup });
  } catch (error) {
    throw new NotSent('the request has a method or a header that cannot be sent', { cause: error });
  }
}

/** Says what the address is, not what it resolved to: the text may reach a model. */
function refuse(url: URL, inside: string | null): void {
  if (inside !== null) throw new NotSent(`${url.hostname} is not a public address (${inside}), and egress.allow does not list ${url.origin}`);
}

function checkedLookup(url: URL, free: boolean, resolve: NonNullable<EgressOptions['resolve']>): LookupFunction {
  return (hostname, { all }, done) => {
    resolve(hostname).then((found) => {
      if (found.length === 0) throw new NotSent(`${hostname} has no address`);
      if (!free) for (const { address } of found) refuse(url, insideOf(address));
      return found;
    }).then(
      (found) => all === true ? done(null, [...found]) : done(null, found[0]?.address ?? '', found[0]?.family),
      (error: Error) => done(error, ''),
    );
  };
}

/** Statuses whose responses have no body. */
const bodiless = new Set([204, 205, 304]);

function exchange(request: ClientRequest, body: string | Uint8Array | undefined, signal: AbortSignal | undefined): Promise<Response> {
  return new Promise<Response>((resolve, reject) => {
    let [connected, answered] = [false, false];
    request.on('socket', (socket) => socket.once(request.protocol === 'https:' ? 'secureConnect' : 'connect', () => { connected = true; }));
    let onAbort = (reason: unknown): void => reject(asError(reason));
    const aborted = (): void => {
      onAbort(signal?.reason);
      request.destroy();
    };
    const over = (): void => signal?.removeEventListener('abort', aborted);
    signal?.addEventListener('abort', aborted, { once: true });
    request.on('error', (error) => {
      over();
      reject(error instanceof NotSent ? error : connected ? new TypeError(`the connection broke: ${textOf(error)}`, { cause: error }) : new NotSent(`no connection: ${textOf(error)}`, { cause: error }));
    });
    // An answer that wants another protocol ends so, and with nothing else.
    request.on('close', () => {
      if (answered) return;
      over();
      reject(new TypeError('the connection was closed without an answer'));
    });
    request.on('response', (message: IncomingMessage) => {
      answered = true;
      try {
        const read = bodyOf(message, over);
        onAbort = read.fail;
        const status = message.statusCode ?? 0;
        if (status < 200 || status > 599) throw new RangeError(`${status} is no status`);
        if (bodiless.has(status)) message.resume();
        resolve(new Response(bodiless.has(status) ? null : read.stream, { status, statusText: message.statusMessage ?? '', headers: headersOf(message) }));
      } catch (error) {
        over();
        request.destroy();
        reject(new TypeError(`the answer cannot be read: ${textOf(error)}`, { cause: error }));
      }
    });
    request.end(body);
  });
}

/** An error of several attempts has no message of its own. */
function textOf(error: unknown): string {
  const { message, code, errors } = error as { readonly message?: string; readonly code?: string; readonly errors?: readonly Error[] };
  if (message !== undefined && message !== '') return message;
  return errors?.map((each) => each.message).join('; ') ?? code ?? String(error);
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new DOMException('This operation was aborted', 'AbortError');
}
