/**
 * Replies as each wire writes them, byte for byte: for the cases that are about odd or broken streams. Whole and proper ones are
 * the model server's own.
 */
import { raw, sse, type Delivery, type DialectName, type WholeReply } from '@treadle/testkit';

export type Wire = DialectName;
export const wires: readonly Wire[] = ['ollama', 'openai', 'anthropic'];

/** What is said, in order. Arguments that are a string are sent as they are: broken JSON too. */
export type Part = { readonly text: string } | { readonly id: string; readonly name: string; readonly args: unknown };

/** `open`: the stream ends without a word; else with an error frame of this text. */
export type End = 'whole' | 'open' | { readonly error: string };

/** Of every whole reply here. */
export const spokenUsage = { input_tokens: 20, output_tokens: 5 };

/** The frames of a reply, one by one. */
export function frames(wire: Wire, parts: readonly Part[], end: End = 'whole'): string[] {
  switch (wire) {
    case 'ollama': return ollamaFrames(parts, end);
    case 'openai': return openaiFrames(parts, end);
    case 'anthropic': return anthropicFrames(parts, end);
  }
}

/** The same as a reply. */
export function spoken(wire: Wire, parts: readonly Part[], end: End = 'whole', delivery: Delivery = {}): WholeReply {
  return raw(frames(wire, parts, end), delivery);
}

export function bytesOf(reply: WholeReply): Buffer {
  return Buffer.concat(reply.type === 'raw' ? [...reply.chunks] : []);
}

// Ollama: a JSON object per line.

/** The last line of a reply. */
export const doneLine = { done: true, done_reason: 'stop', prompt_eval_count: spokenUsage.input_tokens, eval_count: spokenUsage.output_tokens };

/** A reply of exactly these lines. */
export function lines(...values: readonly (object | string)[]): WholeReply {
  return raw(values.map((value) => typeof value === 'string' ? value : `${JSON.stringify(value)}\n`));
}

/** One line of a reply's message. */
export function said(message: object): object {
  return { message: { role: 'assistant', ...message }, done: false };
}

function ollamaFrames(parts: readonly Part[], end: End): string[] {
  const own = parts.map((part) => said('text' in part ? { content: part.text } : { content: '', tool_calls: [{ id: part.id, function: { name: part.name, arguments: part.args } }] }));
  const last = end === 'whole' ? [doneLine] : end === 'open' ? [] : [end];
  return [...own, ...last].map((line) => `${JSON.stringify(line)}\n`);
}

// OpenAI: a chunk per event.

/** A reply of exactly these events; `[DONE]` is one that must be said. */
export function chunks(...values: readonly (object | string)[]): WholeReply {
  return raw(values.map((value) => sse(value)));
}

export function delta(own: object, finish_reason: string | null = null): object {
  return { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: own, finish_reason }] };
}

export const usageChunk = { choices: [], usage: { prompt_tokens: spokenUsage.input_tokens, completion_tokens: spokenUsage.output_tokens, total_tokens: 25 } };

function openaiFrames(parts: readonly Part[], end: End): string[] {
  const calls = parts.filter((part) => 'name' in part);
  const own = parts.map((part) => delta('text' in part ? { content: part.text } : {
    tool_calls: [{ index: calls.indexOf(part), id: part.id, type: 'function', function: { name: part.name, arguments: jsonOf(part.args) } }],
  }));
  const last = end === 'whole' ? [delta({}, calls.length > 0 ? 'tool_calls' : 'stop'), usageChunk, '[DONE]']
    : end === 'open' ? [] : [{ error: { message: end.error, type: 'server_error', param: null, code: null } }];
  return [delta({ role: 'assistant', content: '' }), ...own, ...last].map((value) => sse(value));
}

// Anthropic: named events; each part is a block.

/** A reply of exactly these events. */
export function events(...values: readonly { readonly type: string; readonly [field: string]: unknown }[]): WholeReply {
  return raw(values.map((value) => sse(value, value.type)));
}

export const messageStart = { type: 'message_start', message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, usage: { input_tokens: spokenUsage.input_tokens, output_tokens: 1 } } };

/** One block, from its start to its stop. */
export function block(index: number, start: object, ...deltas: readonly object[]): { readonly type: string; readonly [field: string]: unknown }[] {
  return [
    { type: 'content_block_start', index, content_block: start }, ...deltas.map((own) => ({ type: 'content_block_delta', index, delta: own })),
    { type: 'content_block_stop', index },
  ];
}

export const messageEnd = (stop_reason: string) => [
  { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: spokenUsage.output_tokens } }, { type: 'message_stop' }];

function anthropicFrames(parts: readonly Part[], end: End): string[] {
  const own = parts.flatMap((part, index) => 'text' in part
    ? block(index, { type: 'text', text: '' }, { type: 'text_delta', text: part.text })
    : block(index, { type: 'tool_use', id: part.id, name: part.name, input: {} }, { type: 'input_json_delta', partial_json: jsonOf(part.args) }));
  // Where a reply breaks off, its last block is not at its end either.
  const last = end === 'whole' ? messageEnd(parts.some((part) => 'name' in part) ? 'tool_use' : 'end_turn')
    : end === 'open' ? [] : [{ type: 'error', error: { type: 'api_error', message: end.error } }];
  return [messageStart, ...(end === 'whole' ? own : own.slice(0, -1)), ...last].map((value) => sse(value, value.type));
}

function jsonOf(args: unknown): string {
  return typeof args === 'string' ? args : JSON.stringify(args);
}
