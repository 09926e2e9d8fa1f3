/**
 * What a model is sent, made from the state alone. Providers render it for their wires.
 *
 * C6  Always valid: every call has its one result right behind it, in the order of the calls; a user message is there;
 *     no empty text; no lone surrogate; names are legal.
 */
import type { ModelSpec, ToolDefinition } from './agent-spec.ts';
import type { Message } from './message.ts';
import { specOf, type RunState } from './state.ts';
import { utf8Length } from './well-formed.ts';

export interface ModelRequest {
  readonly model: ModelSpec;
  /** Soul and instructions; never anything a tool said. */
  readonly system: string;
  readonly messages: readonly Message[];
  readonly tools: readonly ToolDefinition[];
}

export function modelRequest(state: RunState, model: ModelSpec): ModelRequest {
  return { model, system: systemText(state), messages: sendable(state.transcript.messages), tools: model.supports_tools ? state.tools ?? [] : [] };
}

function systemText(state: RunState): string {
  const { soul, instructions } = specOf(state);
  return [soul ?? '', instructions].map((part) => part.trim()).filter((part) => part !== '').join('\n\n').toWellFormed();
}

/** Leaves out what says nothing, and gives a call that has no result behind it one that says so. */
function sendable(messages: readonly Message[]): readonly Message[] {
  const sent: Message[] = [];
  messages.forEach((message, index) => {
    if (isEmpty(message)) return;
    sent.push(message);
    if (message.role === 'assistant' && message.calls.length > 0) sent.push(...missingResults(message, messages.slice(index + 1)));
  });
  return sent;
}

function isEmpty(message: Message): boolean {
  if (message.role === 'assistant') return message.text.trim() === '' && message.calls.length === 0;
  if (message.role === 'user') return typeof message.content === 'string' ? message.content.trim() === '' : message.content.length === 0;
  return message.role === 'host' && message.content.trim() === '';
}

function missingResults(reply: Extract<Message, { role: 'assistant' }>, later: readonly Message[]): Message[] {
  const answered = new Set<string>();
  for (const message of later) {
    if (message.role !== 'tool') break;
    answered.add(message.tool_use_id);
  }
  return reply.calls.filter((call) => !answered.has(call.tool_use_id)).map((call) => ({
    role: 'tool', tool_use_id: call.tool_use_id, tool_name: call.tool_name, content: 'There is no result of this call.', is_error: true }));
}

/** Tokens, as one per four bytes of what is sent; calibrated by providers' counts in a later release. */
export function estimateTokens(state: RunState): number {
  let bytes = utf8Length(systemText(state));
  for (const message of state.transcript.messages) bytes += messageBytes(message);
  for (const tool of state.tools ?? []) bytes += JSON.stringify(tool.input_schema).length + tool.description.length;
  return Math.ceil(bytes / 4);
}

function messageBytes(message: Message): number {
  switch (message.role) {
    case 'user': return typeof message.content === 'string'
      ? utf8Length(message.content)
      : message.content.reduce((sum, part) => sum + (part.type === 'text' ? utf8Length(part.text) : 768 * 4), 0);
    case 'assistant': return utf8Length(message.text) + JSON.stringify(message.calls).length;
    case 'tool':
    case 'host': return utf8Length(message.content);
  }
}
