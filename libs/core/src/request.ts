/**
 * What a model is sent, made from the state alone. Providers render it for their wires.
 *
 * C6  Always valid: every call has its one result right behind it, in the order of the calls; a user message is there;
 *     no empty text; no lone surrogate; names are legal.
 */
import { actionPrompt } from './action.ts';
import type { ModelSpec, ToolDefinition } from './agent-spec.ts';
import { withoutImages } from './images.ts';
import type { Message } from './message.ts';
import { own } from './own.ts';
import { specOf, type RunState } from './state.ts';
import { utf8Length } from './well-formed.ts';

/** What a request can be sent without: pictures (notes stand in their places), and the wish to be told the usage while streaming. */
export const droppableFeatures = ['images', 'stream_options'] as const;
export type DroppableFeature = (typeof droppableFeatures)[number];

export interface ModelRequest {
  /** Its `max_output_tokens` is what this request asks for. */
  readonly model: ModelSpec;
  /** Soul and instructions; never anything a tool said. */
  readonly system: string;
  readonly messages: readonly Message[];
  readonly tools: readonly ToolDefinition[];
  /** Pixels of an image's longer side at most; null or absent = as it is. */
  readonly image_side?: number | null;
  /** What this model has refused before. */
  readonly without?: readonly DroppableFeature[];
}

export function modelRequest(state: RunState, model: ModelSpec): ModelRequest {
  const { protocol } = specOf(state);
  const messages = sendable(state.transcript.messages);
  const without = own(state.dropped, model.name) ?? [];
  return {
    model: { ...model, max_output_tokens: outputLimit(state, model), supports_images: model.supports_images && !without.includes('images') }, system: systemText(state),
    messages: protocol === 'json_action' ? messages.map(asText) : model.supports_tools ? messages : messages.map(withoutCalls),
    tools: protocol === 'native' && model.supports_tools ? state.tools ?? [] : [],
    image_side: state.image_side, ...(without.length === 0 ? {} : { without }),
  };
}

/** Tokens. More room after a cut tool call, up to half of the window; never more than the model has said it takes. */
export function outputLimit({ output_room, output_caps }: RunState, model: ModelSpec): number {
  const most = Math.max(model.max_output_tokens, Math.floor(model.context_window / 2));
  const wanted = output_room === 1 ? model.max_output_tokens : Math.min(model.max_output_tokens * output_room, most);
  return Math.min(wanted, own(output_caps, model.name) ?? wanted);
}

function systemText(state: RunState): string {
  const { soul, instructions, protocol } = specOf(state);
  const parts = [soul ?? '', instructions, protocol === 'json_action' ? actionPrompt(state.tools ?? []) : ''];
  return parts.map((part) => part.trim()).filter((part) => part !== '').join('\n\n').toWellFormed();
}

/** Without tool calling, calls are the text in which they were made, and results are told by the host. */
function asText(message: Message): Message {
  if (message.role === 'assistant' && message.calls.length > 0) {
    const said = message.calls.map((call) => JSON.stringify({ skill_name: call.tool_name, arguments: call.tool_input })).join('\n');
    return { ...message, text: message.text.trim() === '' ? said : message.text, calls: [] };
  }
  if (message.role !== 'tool') return message;
  return { role: 'host', note: 'action_result', content: `Result of ${message.tool_name}: ${message.is_error ? 'ERROR: ' : ''}${saidOf(message)}` };
}

/** A result told as text has no images. */
function saidOf(message: Extract<Message, { role: 'tool' }>): string {
  return message.images === undefined ? message.content : withoutImages(message, '[Its images are not shown.]');
}

/** For a request without tools: what was called and answered is told as text. */
export function withoutCalls(message: Message): Message {
  if (message.role === 'tool') return { role: 'user', content: `[Result of ${message.tool_name}: ${saidOf(message)}]` };
  if (message.role !== 'assistant' || message.calls.length === 0) return message;
  return { ...message, calls: [], text: `${message.text}\n[called ${message.calls.map((call) => `${call.tool_name} ${JSON.stringify(call.tool_input)}`).join(', ')}]`.trim() };
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

/** Tokens of the whole request: one per four bytes, corrected by what the model's provider has counted before. */
export function estimateTokens(state: RunState, model: string): number {
  let bytes = utf8Length(systemText(state));
  for (const message of state.transcript.messages) bytes += textBytes(message);
  for (const tool of state.tools ?? []) bytes += toolBytes(tool);
  return Math.ceil(bytes / 4 * (own(state.calibration, model) ?? 1)) + imageTokens(state, model);
}

/** What of an estimate is images: a guess, since providers count them by their size. None for a model that is shown none. */
export function imageTokens(state: RunState, model: string): number {
  const sees = specOf(state).chain.models.some(({ name, supports_images }) => name === model && supports_images);
  if (!sees || own(state.dropped, model)?.includes('images') === true) return 0;
  const bytes = state.transcript.messages.reduce((sum, message) => sum + imageCount(message) * imageBytes, 0);
  return Math.ceil(bytes / 4 * (own(state.calibration, model) ?? 1));
}

/** An image counts as 768 tokens, as Ollama counts it. */
const imageBytes = 768 * 4;

/** Messages and tools never change: what was counted once is remembered as long as they live. */
const counted = new WeakMap<object, number>();

function remembered<T extends object>(value: T, count: (value: T) => number): number {
  const known = counted.get(value);
  if (known !== undefined) return known;
  const bytes = count(value);
  counted.set(value, bytes);
  return bytes;
}

function toolBytes(tool: ToolDefinition): number {
  return remembered(tool, ({ input_schema, description }) => utf8Length(JSON.stringify(input_schema)) + utf8Length(description));
}

/** Bytes of UTF-8 that a message brings to a request. */
export function messageBytes(message: Message): number {
  return textBytes(message) + imageCount(message) * imageBytes;
}

function imageCount(message: Message): number {
  if (message.role === 'tool') return message.images?.length ?? 0;
  return message.role === 'user' && typeof message.content !== 'string' ? message.content.filter((part) => part.type === 'image').length : 0;
}

function textBytes(message: Message): number {
  return remembered(message, bytesOfText);
}

function bytesOfText(message: Message): number {
  switch (message.role) {
    case 'user': return typeof message.content === 'string'
      ? utf8Length(message.content)
      : message.content.reduce((sum, part) => sum + (part.type === 'text' ? utf8Length(part.text) : 0), 0);
    case 'assistant': return utf8Length(message.text) + JSON.stringify(message.calls).length;
    case 'tool':
    case 'host': return utf8Length(message.content);
  }
}
