/** The wire of Anthropic's messages, server side: blocks that start, grow and stop between the events of the message. */
import type { ScriptedCall, ScriptedMessage } from '../../replies.ts';
import { cutText, piecesOfText, tokensOf, type Asked, type SideAnswer, type SideRequest } from '../dialect.ts';
import { sse } from '../sse.ts';
import { sealed, signatureOf } from './signature.ts';

/** A block, and the deltas it comes in; the streamed one starts empty. */
interface Block { readonly whole: object; readonly start: object; readonly deltas: readonly object[] }

export function pieces(message: ScriptedMessage, asked: Asked): readonly string[] {
  const event = (type: string, rest: object = {}): string => sse({ type, ...rest }, type);
  const blocks = blocksOf(message, asked).flatMap(({ start, deltas }, index) => [
    event('content_block_start', { index, content_block: start }),
    ...(index === 0 ? [event('ping')] : []),
    ...deltas.map((delta) => event('content_block_delta', { index, delta })),
    event('content_block_stop', { index }),
  ]);
  const usage = usageOf(message, asked);
  return [
    event('message_start', { message: { ...shell(asked), content: [], stop_reason: null, stop_sequence: null, ...(usage === null ? {} : { usage: { ...usage, output_tokens: 1 } }) } }),
    ...blocks,
    event('message_delta', { delta: { stop_reason: stopReason(message), stop_sequence: null }, ...(usage === null ? {} : { usage }) }),
    event('message_stop'),
  ];
}

export function whole(message: ScriptedMessage, asked: Asked): unknown {
  const usage = usageOf(message, asked);
  return {
    ...shell(asked), content: blocksOf(message, asked).map((block) => block.whole), stop_reason: stopReason(message), stop_sequence: null,
    ...(usage === null ? {} : { usage }),
  };
}

function shell(asked: Asked): object {
  return { id: `msg_${asked.index}`, type: 'message', role: 'assistant', model: asked.body.model };
}

function blocksOf(message: ScriptedMessage, asked: Asked): Block[] {
  const count = message.pieces ?? piecesOfText;
  const model = asked.body.model ?? '';
  const { thinking, redacted_thinking: redacted, text } = message;
  const data = redacted === undefined ? null : { type: 'redacted_thinking', data: sealed(model, redacted) };
  return [
    ...(thinking === undefined ? [] : [thinkingBlock(thinking, signatureOf(model, thinking), count)]),
    ...(data === null ? [] : [{ whole: data, start: data, deltas: [] }]),
    ...(text === undefined ? [] : [{ whole: { type: 'text', text }, start: { type: 'text', text: '' }, deltas: cutText(text, count).map((piece) => ({ type: 'text_delta', text: piece })) }]),
    ...(message.calls ?? []).map((call) => callBlock(call, count)),
  ];
}

function thinkingBlock(thinking: string, signature: string, count: number): Block {
  return {
    whole: { type: 'thinking', thinking, signature },
    start: { type: 'thinking', thinking: '', signature: '' },
    deltas: [...cutText(thinking, count).map((piece) => ({ type: 'thinking_delta', thinking: piece })), { type: 'signature_delta', signature }],
  };
}

/** Arguments that are a string are the JSON text as the model wrote it, whether it is JSON or not. */
function callBlock(call: ScriptedCall, count: number): Block {
  const { name, args } = call;
  const own = { type: 'tool_use', ...(call.id === null ? {} : { id: call.id }), name };
  const json = args === undefined ? '' : typeof args === 'string' ? args : JSON.stringify(args);
  return {
    whole: { ...own, ...(args === undefined ? {} : { input: args }) },
    start: { ...own, input: {} },
    deltas: ['', ...cutText(json, count)].map((partial_json) => ({ type: 'input_json_delta', partial_json })),
  };
}

const stopReasons: Readonly<Record<string, string>> = { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use' };

function stopReason({ done_reason: reason, calls = [] }: ScriptedMessage): string {
  if (reason === undefined) return calls.length > 0 ? 'tool_use' : 'end_turn';
  return stopReasons[reason] ?? reason;
}

function usageOf(message: ScriptedMessage, asked: Asked): object | null {
  const tokens = tokensOf(message, asked);
  return tokens === null ? null : {
    input_tokens: tokens.prompt - tokens.cached, cache_creation_input_tokens: 0, cache_read_input_tokens: tokens.cached, output_tokens: tokens.output,
  };
}

const types: Readonly<Record<number, string>> = {
  401: 'authentication_error', 402: 'billing_error', 403: 'permission_error', 404: 'not_found_error', 409: 'conflict_error', 413: 'request_too_large',
  429: 'rate_limit_error', 504: 'timeout_error', 529: 'overloaded_error',
};

export function errorBody(status: number, message: string): unknown {
  return { type: 'error', error: { type: types[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error'), message }, request_id: 'req_scripted' };
}

export function beside({ what, headers, models }: SideRequest): SideAnswer | null {
  if (what !== 'GET /v1/models' || headers['anthropic-version'] === undefined) return null;
  const data = models.map(({ name, context_length }) => ({ type: 'model', id: name, display_name: name, created_at: '2026-01-01T00:00:00Z', max_input_tokens: context_length }));
  return { status: 200, body: { data, has_more: false, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null } };
}
