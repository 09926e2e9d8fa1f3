/** Whatever goes wrong, wherever: one `Problem`, nothing of the inside. */
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ApiLogger } from '../dependencies.ts';
import { notFound, Problem, problemType, unavailable, type ProblemCode } from '../problem.ts';
import { ArchiveUnavailable, storeUnavailable } from '../store/unavailable.ts';

export function answerErrors(app: FastifyInstance, logger: ApiLogger | undefined): void {
  app.setErrorHandler((error, request, reply) => {
    const problem = problemOf(error);
    // What is not built yet is nobody's fault.
    if (problem.statusCode >= 500 && problem.code !== 'not_supported') logFault(logger, { error, request, problem });
    return answer(reply, problem);
  });
  const paths = knownPaths(app);
  app.setNotFoundHandler((request, reply) => answer(reply, notFoundOr405(request, paths)));
}

/** For faults before routing (an URL that cannot be decoded, an id that is far too long). */
export function answerFrameworkError(error: unknown, reply: FastifyReply): void {
  void answer(reply, problemOf(error));
}

/** For what is not even HTTP, or does not arrive; there is only the socket. */
export function answerClientError(error: Error & { readonly code?: string }, socket: Socket): void {
  // As node's own listener does: an answer that has begun must not get another one into its middle.
  const answering = (socket as Socket & { readonly _httpMessage?: ServerResponse })._httpMessage?.headersSent === true;
  if (error.code === 'ECONNRESET' || !socket.writable || answering) {
    socket.destroy();
    return;
  }
  const { status, detail } = ofParser[error.code ?? ''] ?? { status: 400, detail: 'This is not a valid HTTP request.' };
  const text = JSON.stringify(new Problem({ status, code: 'invalid_request', detail }).body());
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: ${problemType}\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`);
  // Time to read it, for those who are still sending; and no more.
  setTimeout(() => socket.destroy(), lingerMs).unref();
}

const lingerMs = 1000;

const ofParser: Record<string, { readonly status: number; readonly detail: string }> = {
  HPE_HEADER_OVERFLOW: { status: 431, detail: 'The head of the request is too large.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, detail: 'The request did not arrive in time.' },
};

/** `Expect` with anything but `100-continue`, which node answers itself. */
export function answerExpectation(_request: IncomingMessage, response: ServerResponse): void {
  const text = JSON.stringify(new Problem({ status: 417, code: 'invalid_request', detail: 'Expect: only 100-continue can be met.' }).body());
  response.writeHead(417, { 'content-type': problemType, 'content-length': Buffer.byteLength(text), connection: 'close' }).end(text);
}

export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof ArchiveUnavailable) return unavailable('The archive is away; please try again.');
  if (storeUnavailable(error) !== null) return unavailable('The store is away; please try again.');
  return ofFramework(error) ?? new Problem({ status: 500, code: 'internal', detail: 'Something went wrong on our side.' });
}

const byFrameworkCode: Record<string, { status: number; code: ProblemCode; detail: string }> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: { status: 415, code: 'unsupported_media_type', detail: 'Send application/json.' },
  FST_ERR_CTP_BODY_TOO_LARGE: { status: 413, code: 'body_too_large', detail: 'The body is too large.' },
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: { status: 400, code: 'invalid_request', detail: 'The body is not as long as its content-length says.' },
  FST_ERR_MAX_PARAM_LENGTH: { status: 404, code: 'not_found', detail: notFound().message },
  FST_ERR_BAD_URL: { status: 404, code: 'not_found', detail: notFound().message },
};

function ofFramework(error: unknown): Problem | null {
  if (!(error instanceof Error)) return null;
  const { code, statusCode } = error as Error & { code?: unknown; statusCode?: unknown };
  const known = typeof code === 'string' ? byFrameworkCode[code] : undefined;
  if (known !== undefined) return new Problem(known);
  if (typeof statusCode !== 'number' || statusCode < 400 || statusCode >= 500) return null;
  return new Problem({ status: statusCode, code: statusCode === 404 ? 'not_found' : 'invalid_request', detail: 'The request is not valid.' });
}

/** The only way an error leaves. As bytes, since fastify would add a charset to the type of a text. */
function answer(reply: FastifyReply, problem: Problem): FastifyReply {
  return reply.code(problem.statusCode).headers(problem.headers).header('content-type', problemType).header('cache-control', 'no-store')
    .send(Buffer.from(JSON.stringify(problem.body())));
}

function logFault(logger: ApiLogger | undefined, fault: { error: unknown; request: FastifyRequest; problem: Problem }): void {
  const { error, request, problem } = fault;
  const route = request.routeOptions.url ?? 'none';
  const fields = { request_id: request.id, method: request.method, route, code: problem.code, err: error };
  if (problem.code === 'internal') logger?.error(fields, 'a request failed');
  else logger?.warn(fields, 'a request could not be served');
}

interface KnownPath { readonly form: RegExp; readonly methods: Set<string> }

/** Collected as routes are added, so that a path that exists under another method is answered 405. */
function knownPaths(app: FastifyInstance): Map<string, KnownPath> {
  const paths = new Map<string, KnownPath>();
  app.addHook('onRoute', (route) => {
    if (route.url.includes('*')) return;
    const form = new RegExp(`^${route.url.replaceAll('.', '\\.').replaceAll(/:\w+/g, '[^/]+')}$`);
    const known = paths.get(route.url) ?? { form, methods: new Set<string>() };
    for (const method of [route.method].flat()) known.methods.add(method);
    paths.set(route.url, known);
  });
  return paths;
}

function notFoundOr405(request: FastifyRequest, paths: Map<string, KnownPath>): Problem {
  const path = request.url.split('?', 1)[0] ?? '';
  const methods = [...paths.values()].filter((known) => known.form.test(path)).flatMap((known) => [...known.methods]);
  if (methods.length === 0) return notFound();
  const allow = [...new Set(methods)].sort().join(', ');
  return new Problem({ status: 405, code: 'invalid_request', detail: `This path takes ${allow}.`, headers: { allow } });
}
