/**
 * Bodies: JSON in UTF-8, bounded in bytes and in depth, with no lone surrogates left in them.
 *
 * A body that is too large is read to its end (up to `drainBytes`) and thrown away before it is refused: a client that is
 * still sending would otherwise see a broken connection and not the reason.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { wellFormed } from '@treadle/core';
import { invalidRequest, Problem } from '../problem.ts';

const maxDepth = 32;
const drainBytes = 64 * 1024 * 1024;

declare module 'fastify' {
  interface FastifyRequest {
    /** The body as it was parsed, before defaults: what an idempotency key is compared by. */
    rawBody: unknown;
  }
}

export function acceptJsonBodies(app: FastifyInstance, maxBodyBytes: number): void {
  app.decorateRequest('rawBody', undefined);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { bodyLimit: maxBodyBytes }, async (request: FastifyRequest, payload: IncomingMessage) => {
    checkEncoding(request.headers);
    // A route may take more than others do.
    const bytes = await readAll(payload, Math.max(maxBodyBytes, request.routeOptions.bodyLimit ?? 0));
    if (bytes.length === 0) return undefined;
    const body = parse(bytes);
    checkDepth(body);
    request.rawBody = wellFormed(body);
    return request.rawBody;
  });
  app.addContentTypeParser('*', async (request: FastifyRequest) => {
    if (request.headers['content-length'] === '0') return undefined;
    throw new Problem({ status: 415, code: 'unsupported_media_type', detail: 'Send application/json.' });
  });
}

async function readAll(payload: IncomingMessage, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let received = 0;
  try {
    for await (const chunk of payload as AsyncIterable<Buffer>) {
      received += chunk.length;
      if (received <= limit) chunks.push(chunk);
      else chunks.length = 0;
      if (received > limit + drainBytes) break;
    }
  } catch {
    // The client has gone, or was too slow and has its 408: nobody reads this.
    throw new Problem({ status: 400, code: 'invalid_request', detail: 'The body was cut off.' });
  }
  if (received > limit) throw new Problem({ status: 413, code: 'body_too_large', detail: `A body may have ${limit} bytes.` });
  return Buffer.concat(chunks);
}

function checkEncoding(headers: IncomingHttpHeaders): void {
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  if (encoding !== 'identity' && encoding !== '') throw new Problem({ status: 415, code: 'unsupported_media_type', detail: 'Send the body without a content-encoding.' });
  const charset = /;\s*charset\s*=\s*"?([^\s;"]*)/i.exec(headers['content-type'] ?? '')?.[1]?.toLowerCase() ?? 'utf-8';
  if (charset !== 'utf-8' && charset !== 'utf8') throw new Problem({ status: 415, code: 'unsupported_media_type', detail: 'Send the body in UTF-8.' });
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as unknown;
  } catch {
    throw new Problem({ status: 400, code: 'invalid_json', detail: 'The body is not JSON in UTF-8.' });
  }
}

/** Level by level, since a recursion would run out of stack on what it is meant to refuse. */
function checkDepth(body: unknown): void {
  let level = [body];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxDepth) throw invalidRequest([{ path: '', problem: `nested deeper than ${maxDepth} levels` }]);
    const objects = level.filter((value) => value !== null && typeof value === 'object');
    if (objects.some((value) => Object.hasOwn(value, '__proto__'))) throw invalidRequest([{ path: '__proto__', problem: 'unknown field' }]);
    level = objects.flatMap((value) => Object.values(value) as unknown[]);
  }
}
