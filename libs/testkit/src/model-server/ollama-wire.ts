/**
 * Ollama's wire, server side: NDJSON lines of a chat reply, and the small endpoints beside it.
 */
import type { ScriptedCall, ScriptedMessage, WholeReply } from './replies.ts';

/** A model the server says it has. */
export interface ServedModel {
  readonly name: string;
  /** Tokens. */
  readonly context_length: number;
  readonly capabilities: readonly string[];
}

const createdAt = '2026-01-01T00:00:00Z';

/** The body of a streamed reply, a chunk per line. `promptBytes` stands in for the tokens where the script names none. */
export function chatChunks(reply: WholeReply, model: string, promptBytes: number): readonly Uint8Array[] {
  if (reply.type === 'raw') return reply.chunks;
  return chatLines(reply.message, model, promptBytes).map((line) => Buffer.from(`${JSON.stringify(line)}\n`));
}

/** The same reply as one object, for `stream: false`. */
export function chatObject(message: ScriptedMessage, model: string, promptBytes: number): unknown {
  return { ...lastLine(message, model, promptBytes), message: { role: 'assistant', content: message.text ?? '', ...thinkingOf(message), ...callsOf(message) } };
}

function chatLines(message: ScriptedMessage, model: string, promptBytes: number): unknown[] {
  const line = (rest: object): unknown => ({ model, created_at: createdAt, message: { role: 'assistant', content: '', ...rest }, done: false });
  const lines: unknown[] = [];
  if (message.thinking !== undefined) lines.push(line({ thinking: message.thinking }));
  for (const content of pieces(message.text ?? '', message.pieces ?? 3)) lines.push(line({ content }));
  if ((message.calls ?? []).length > 0) lines.push(line(callsOf(message)));
  lines.push(lastLine(message, model, promptBytes));
  return lines;
}

function lastLine(message: ScriptedMessage, model: string, promptBytes: number): object {
  const counted = message.usage === undefined
    ? { prompt: Math.ceil(promptBytes / 4), output: Math.ceil(JSON.stringify(message).length / 4) }
    : message.usage;
  return {
    model, created_at: createdAt, message: { role: 'assistant', content: '' }, done: true, done_reason: message.done_reason ?? 'stop',
    total_duration: 1_000_000, load_duration: 0,
    ...(counted === null ? {} : { prompt_eval_count: counted.prompt, eval_count: counted.output, eval_duration: 1_000_000 }),
  };
}

function thinkingOf(message: ScriptedMessage): object {
  return message.thinking === undefined ? {} : { thinking: message.thinking };
}

function callsOf(message: ScriptedMessage): object {
  const calls = message.calls ?? [];
  return calls.length === 0 ? {} : { tool_calls: calls.map(callOf) };
}

function callOf(call: ScriptedCall, index: number): unknown {
  return { ...(call.id === null ? {} : { id: call.id }), function: { index, name: call.name, arguments: call.args } };
}

/** By code points, so that a piece never holds half a character. */
function pieces(text: string, count: number): string[] {
  const characters = [...text];
  const size = Math.max(1, Math.ceil(characters.length / Math.max(1, count)));
  const found: string[] = [];
  for (let start = 0; start < characters.length; start += size) found.push(characters.slice(start, start + size).join(''));
  return found;
}

export function tags(models: readonly ServedModel[]): unknown {
  return { models: models.map((model) => ({ name: model.name, model: model.name, modified_at: createdAt, size: 1, digest: 'sha256:0', details: {}, capabilities: model.capabilities })) };
}

export function show(model: ServedModel): unknown {
  return {
    details: { family: 'scripted' }, capabilities: model.capabilities, parameters: '',
    model_info: { 'general.architecture': 'scripted', 'scripted.context_length': model.context_length },
  };
}
