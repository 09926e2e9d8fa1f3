/**
 * Names failures of the connection itself: what `node:http`, undici and the vendors' clients throw. The same for every provider.
 */
import type { ErrorType } from '@treadle/core';

/** `connecting` until the status line has come. */
export type Stage = 'connecting' | 'streaming';

export interface TransportFailure { readonly error_type: ErrorType; readonly detail: string }

const causesLooked = 5;

const timeoutCodes = new Set(['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT', 'ESOCKETTIMEDOUT']);
const socketCodes = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET', 'ECONNABORTED', 'ERR_STREAM_PREMATURE_CLOSE']);
const connectCodes = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL', 'EHOSTDOWN']);
const addressCodes = new Set(['ERR_INVALID_URL', 'ERR_INVALID_PROTOCOL', 'ERR_UNESCAPED_CHARACTERS', 'ERR_INVALID_CHAR']);
const tlsConfig = /^(CERT_|ERR_TLS_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO_SELF_SIGNED|HOSTNAME_MISMATCH|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG)/;
const notHttp = /^HPE_/;

interface Layer { readonly name: string; readonly message: string; readonly code: string }

/** Null when it is no failure of the connection. */
export function classifyTransport(error: unknown, stage: Stage): TransportFailure | null {
  const layers = causes(error);
  const error_type = nameOf(layers, stage);
  return error_type === null ? null : { error_type, detail: describe(layers) };
}

/** Timeouts before aborts, since a timed-out signal aborts; "terminated" is what undici says once the headers are there. */
function nameOf(layers: readonly Layer[], stage: Stage): ErrorType | null {
  const has = (test: (layer: Layer) => boolean): boolean => layers.some(test);
  if (has((layer) => layer.name === 'TimeoutError' || timeoutCodes.has(layer.code))) return 'timeout';
  if (has((layer) => layer.name === 'AbortError' || layer.name === 'APIUserAbortError')) return 'aborted';
  // A key with a line feed in it, say.
  if (has((layer) => /invalid header value/i.test(layer.message))) return 'invalid_request';
  if (has((layer) => layer.message === 'bad port' || addressCodes.has(layer.code))) return 'invalid_request';
  const underway = stage === 'streaming' || has((layer) => layer.message === 'terminated');
  const broken = has((layer) => socketCodes.has(layer.code) || notHttp.test(layer.code));
  if (has((layer) => layer.message === 'terminated') || (underway && broken)) return 'stream_interrupted';
  if (has((layer) => tlsConfig.test(layer.code) || /wrong version number/i.test(layer.message))) return 'tls_invalid';
  if (underway && has((layer) => layer.code.startsWith('ERR_SSL_'))) return 'stream_interrupted';
  if (broken || has((layer) => connectCodes.has(layer.code) || layer.code === 'EPROTO' || layer.code.startsWith('ERR_SSL_'))) return 'connect_failed';
  return null;
}

/** The error and what caused it, at most five deep; of several attempts at once (Node tries all addresses) the first. */
function causes(error: unknown): readonly Layer[] {
  const layers: Layer[] = [];
  let at: unknown = error;
  while (at !== null && typeof at === 'object' && layers.length <= causesLooked) {
    const layer = at as { name?: unknown; message?: unknown; code?: unknown; cause?: unknown; errors?: unknown };
    layers.push({ name: text(layer.name), message: text(layer.message), code: text(layer.code) });
    const several: unknown = Array.isArray(layer.errors) ? layer.errors[0] : undefined;
    at = layer.cause ?? several ?? null;
  }
  return layers;
}

function describe(layers: readonly Layer[]): string {
  const said = layers.map((layer) => (layer.message === '' ? layer.code : layer.message)).filter((part) => part !== '');
  return [...new Set(said)].join(': ');
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
