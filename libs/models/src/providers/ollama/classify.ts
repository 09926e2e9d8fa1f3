/**
 * Names what Ollama, or a proxy in front of it, refuses with. Exact knowledge first, then texts in an order that matters, then
 * the status.
 */
import type { ErrorType } from '@treadle/core';
import { retryAfterS } from '../../failure/retry-after.ts';
import { classifyTransport, type Stage } from '../../failure/transport.ts';
import { HttpRefusal } from '../../http/refusal.ts';
import type { ProviderFailure } from '../../provider.ts';
import { StreamedError, UnreadableLine } from './lines.ts';

export interface ClassifyContext {
  readonly stage: Stage;
  /** Epoch milliseconds. */
  readonly nowMs: number;
}

export function classify(error: unknown, context: ClassifyContext): ProviderFailure {
  if (error instanceof HttpRefusal) return refusal(error, context);
  if (error instanceof StreamedError) return streamed(error, context);
  if (error instanceof UnreadableLine || isEarlyEnd(error)) return failure('stream_interrupted', error.message, null);
  const transport = classifyTransport(error, context.stage);
  if (transport !== null) return failure(transport.error_type, transport.detail, null);
  return failure('unknown', error instanceof Error ? error.message : String(error), null);
}

function failure(error_type: ErrorType, detail: string, retry_after_s: number | null): ProviderFailure {
  return { error_type, detail, retry_after_s, usage: null };
}

/** What the npm client says when a stream ends without its last line. */
function isEarlyEnd(error: unknown): error is Error {
  return error instanceof Error && error.message === 'Did not receive done or success response in stream.';
}

function refusal(error: HttpRefusal, context: ClassifyContext): ProviderFailure {
  const text = errorText(error.body);
  const detail = `HTTP ${error.status}: ${text === '' ? 'no text' : text}`;
  return failure(nameOf(error.status, text), detail, retryAfterS({ headers: error.headers, text: error.body, nowMs: context.nowMs }));
}

/** The status was 200, so the text alone tells. */
function streamed(error: StreamedError, context: ClassifyContext): ProviderFailure {
  const text = errorText(error.line);
  return failure(nameOf(null, text), `in the middle of the reply: ${text}`, retryAfterS({ headers: null, text: error.line, nowMs: context.nowMs }));
}

interface Rule {
  readonly name: ErrorType;
  readonly text: RegExp;
  /** Only under one of these; absent: under any. */
  readonly status?: readonly number[];
}

/**
 * The first that fits counts. Tools and parameters before overflow, since those texts speak of tokens too; overload before rate,
 * since an overloaded server must not cost a credential; overflow before models, since its texts name the model.
 */
const texts: readonly Rule[] = [
  { name: 'tool_call_malformed', text: /error parsing tool call|tool_use_failed|invalid tool call arguments/i },
  { name: 'image_too_large', text: /image.{0,40}(exceeds|too large)/i },
  { name: 'model_not_found', text: /does not support (chat|generate|completion)/i },
  { name: 'feature_unsupported', text: /does not support (tools|thinking|images?|vision|insert)|image input is not supported|missing data required for image input/i },
  { name: 'output_cap_invalid', text: /max_tokens.{0,60}(greater|exceeds|above|too large)/i },
  { name: 'overloaded', text: /server busy|maximum pending requests|loading model|model is loading|at capacity|overloaded|slow down/i },
  { name: 'quota_window', text: /(usage limit|quota|hourly|per day|daily|weekly).{0,200}(try again|wait|resets?|retry|regain access)/is, status: [402, 403, 429, 503] },
  { name: 'billing_exhausted', text: /insufficient (balance|credits?|quota)|credit balance|billing|payment required/i, status: [400, 402, 403, 429] },
  { name: 'context_overflow', text: /context (length|size|window)|context_length_exceeded|exceed_context_size|prompt (is )?too long|input length.{0,40}exceeds?|tokens? > \d+ maximum/i },
  { name: 'model_not_found', text: /model ["'`]?[^\n]{0,200}["'`]? not found|try pulling it first|no such model/i },
  { name: 'rate_limited', text: /rate limit|too many requests/i },
];

const statuses: Readonly<Record<number, ErrorType>> = {
  401: 'auth_invalid', 402: 'billing_exhausted', 403: 'access_denied', 408: 'timeout', 413: 'payload_too_large', 429: 'rate_limited',
  498: 'overloaded', 499: 'aborted', 503: 'overloaded', 504: 'timeout', 524: 'timeout', 529: 'overloaded',
};

/** 401 is certain whatever it says; everything else listens to the text first. */
function nameOf(status: number | null, text: string): ErrorType {
  if (status === 401) return 'auth_invalid';
  const rule = texts.find((each) => each.text.test(text) && (each.status === undefined || status === null || each.status.includes(status)));
  if (rule !== undefined) return rule.name;
  if (status === null) return 'server_error';
  return statuses[status] ?? (status >= 500 ? 'server_error' : 'invalid_request');
}

/** The words of an error body: `error` as text or as an object, a flat body, an HTML page, or the text itself. */
function errorText(body: string): string {
  const value = parse(body);
  const said = value === null ? body : wordsOf(value);
  if (/^\s*<(!doctype|html)/i.test(said)) {
    const title = /<title>([^<]{1,200})<\/title>/i.exec(said)?.[1];
    return `an HTML page${title === undefined ? '' : ` ("${title.trim()}")`}`;
  }
  return said.trim().slice(0, 2000);
}

function wordsOf(value: Readonly<Record<string, unknown>>): string {
  const { error, message } = value;
  if (typeof error === 'string') return error;
  if (error !== null && typeof error === 'object') {
    const { message: inner, type, code } = error as Record<string, unknown>;
    return [inner, type, code].filter((part) => typeof part === 'string' && part !== '').join(' ');
  }
  return typeof message === 'string' ? message : JSON.stringify(value);
}

function parse(body: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(body);
    return value !== null && typeof value === 'object' ? value as Record<string, unknown> : null;
  } catch {
    return null;
  }
}
