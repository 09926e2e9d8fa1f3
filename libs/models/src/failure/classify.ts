/**
 * Names what went wrong with a call, the same way on every wire: a wire only says what it saw (a refusal, an error in its stream,
 * an unreadable or a missing end), and this knows what the vendors mean by it. The order: our own clocks are the gateway's;
 * then the connection; then codes, texts and statuses, as `rules.ts` lists them.
 */
import type { DroppableFeature, ErrorType } from '@treadle/core';
import { HttpRefusal } from '../http/refusal.ts';
import { EarlyEnd, StreamedError, UnreadableReply } from '../http/stream-fault.ts';
import type { ProviderFailure } from '../provider.ts';
import { readErrorBody, type ErrorBody } from './error-body.ts';
import { retryAfterS } from './retry-after.ts';
import {
  billingStatuses, billingText, earlyTexts, exactCodes, lateTexts, longWindowText, resetText, statuses, statusOfType, windowStatuses, windowText, type TextRule,
} from './rules.ts';
import { allowedOutput, neverFits, roomForOutput } from './token-counts.ts';
import { classifyTransport, type Stage } from './transport.ts';

export interface FailureContext {
  readonly stage: Stage;
  /** Epoch milliseconds. */
  readonly nowMs: number;
  /** Whether the prompt nearly fills the model's window, by our own count: what a refusal without a word then means. */
  readonly promptFillsWindow: () => boolean;
}

export function classifyFailure(error: unknown, context: FailureContext): ProviderFailure {
  if (error instanceof HttpRefusal) return refusal(error, context);
  if (error instanceof StreamedError) return streamed(error, context);
  if (error instanceof UnreadableReply || error instanceof EarlyEnd) return failure('stream_interrupted', error.message, null);
  const transport = classifyTransport(error, context.stage);
  if (transport !== null) return failure(transport.error_type, transport.detail, null);
  return failure('unknown', error instanceof Error ? error.message : String(error), null);
}

function failure(error_type: ErrorType, detail: string, retry_after_s: number | null): ProviderFailure {
  return { error_type, detail, retry_after_s, usage: null };
}

function refusal(error: HttpRefusal, context: FailureContext): ProviderFailure {
  const body = readErrorBody(error.body);
  const status = error.status === 200 ? body.status : error.status;
  const detail = `HTTP ${error.status}: ${body.said === '' ? 'no text' : body.said}`;
  const retry_after_s = retryAfterS({ headers: error.headers, text: error.body, nowMs: context.nowMs, limited: status === 429 });
  const error_type = nameOf(body, status, { ...context, tellsWhen: retry_after_s !== null });
  const output_cap = error_type === 'output_cap_invalid' ? allowedOutput(body.text) : null;
  const feature = error_type === 'feature_unsupported' ? droppable(body.text) : null;
  return { ...failure(error_type, detail, retry_after_s), ...(output_cap === null ? {} : { output_cap }), ...(feature === null ? {} : { feature }) };
}

/** Tools and thinking cannot be left out without being asked for something else. */
function droppable(text: string): DroppableFeature | null {
  if (/stream_options|include_usage/i.test(text)) return 'stream_options';
  return /\bimages?\b|vision|multimodal|\bmedia\b/i.test(text) ? 'images' : null;
}

/** The status was 200, so what the frame says has to tell. */
function streamed(error: StreamedError, context: FailureContext): ProviderFailure {
  const body = readErrorBody(error.frame);
  const detail = `in the middle of the reply: ${body.said}`;
  const retry_after_s = retryAfterS({ headers: null, text: error.frame, nowMs: context.nowMs });
  return failure(nameOf(body, body.status, { ...context, tellsWhen: retry_after_s !== null }), detail, retry_after_s);
}

/** `tellsWhen`: it says when to come again. */
interface Evidence extends FailureContext { readonly tellsWhen: boolean }

function nameOf(body: ErrorBody, given: number | null, evidence: Evidence): ErrorType {
  const status = given ?? body.codes.map(statusOfCode).find((each) => each !== null) ?? null;
  const { text } = body;
  const { tellsWhen } = evidence;
  if (status === 401) return billingText.test(text) ? 'billing_exhausted' : 'auth_invalid';
  if (neverFits(text)) return 'context_overflow';
  if (status === 402 && tellsWhen) return 'quota_window';
  const exact = body.codes.find((code) => Object.hasOwn(exactCodes, code));
  if (exact !== undefined) return exactCodes[exact] as ErrorType;
  const room = roomForOutput(text);
  if (room !== null) return room >= leastRoom ? 'output_cap_invalid' : 'context_overflow';
  return byText(earlyTexts, text, status) ?? money(text, status, tellsWhen) ?? certainStatus(status)
    ?? byText(lateTexts, text, status) ?? byStatus(body, status, evidence);
}

/** Tokens. With less left for the reply the prompt is what has to become smaller. */
const leastRoom = 256;

/** Of an error without a status of its own: a status in letters, or the one that its kind goes with. */
function statusOfCode(code: string): number | null {
  if (/^[45]\d\d$/.test(code)) return Number(code);
  return Object.hasOwn(statusOfType, code) ? statusOfType[code] ?? null : null;
}

function byText(rules: readonly TextRule[], text: string, status: number | null): ErrorType | null {
  return rules.find((rule) => rule.text.test(text) && allows(rule.status, status))?.name ?? null;
}

function allows(allowed: readonly number[] | undefined, status: number | null): boolean {
  return allowed === undefined || status === null || allowed.includes(status);
}

/**
 * Money, a used-up window of time, or a rate: the same words mix in all three. A 429 that says when to come again is no matter
 * of money; one that speaks of days need not say when.
 */
function money(text: string, status: number | null, tellsWhen: boolean): ErrorType | null {
  const window = windowText.test(text) && resetText.test(text);
  if (status === 402) return window ? 'quota_window' : 'billing_exhausted';
  if (billingText.test(text) && allows(billingStatuses, status) && !(status === 429 && tellsWhen)) return 'billing_exhausted';
  if (status === 429 && longWindowText.test(text)) return 'quota_window';
  return window && (allows(windowStatuses, status) || (status === 500 && tellsWhen)) ? 'quota_window' : null;
}

/** These two say what they are, whatever their words are about. */
function certainStatus(status: number | null): ErrorType | null {
  return status === 403 || status === 413 ? statuses[status] ?? null : null;
}

function byStatus(body: ErrorBody, status: number | null, evidence: Evidence): ErrorType {
  if (status === null) return 'server_error';
  if (status === 400 && saysNothing(body) && evidence.promptFillsWindow()) return 'context_overflow';
  return statuses[status] ?? (status >= 500 ? 'server_error' : 'invalid_request');
}

function saysNothing({ said }: ErrorBody): boolean {
  return /^(\{\}|error|(400 )?bad request|invalid request|(invalid_request_error|\s)*)\.?$/i.test(said);
}
