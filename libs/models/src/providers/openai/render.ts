/**
 * A request as `/chat/completions` takes it. Own types: what is sent must please the servers that imitate this wire, and most take
 * less than the vendor's own.
 */
import type { Content, Message, ModelRequest, ToolDefinition } from '@treadle/core';
import { wireId, wireName, wireNames, type WireNames } from '../../request/names.ts';
import { plainSchema } from '../../request/plain-schema.ts';
import { resultImages } from '../../request/images.ts';
import { userParts, type UserPart } from '../../request/user-parts.ts';
import { flaggedResultText, hostText } from '../../request/words.ts';

export interface OpenaiCall {
  readonly id: string;
  readonly type: 'function';
  /** `arguments` is JSON text. */
  readonly function: { readonly name: string; readonly arguments: string };
}

export type OpenaiPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } };

export type OpenaiMessage =
  | { readonly role: 'system'; readonly content: string }
  | { readonly role: 'user'; readonly content: string | readonly OpenaiPart[] }
  /** `content` is null only beside calls. */
  | { readonly role: 'assistant'; readonly content: string | null; readonly tool_calls?: readonly OpenaiCall[] }
  | { readonly role: 'tool'; readonly content: string; readonly tool_call_id: string };

export interface OpenaiTool {
  readonly type: 'function';
  readonly function: { readonly name: string; readonly description: string; readonly parameters: Readonly<Record<string, unknown>> };
}

export interface OpenaiRequest {
  readonly model: string;
  readonly messages: readonly OpenaiMessage[];
  readonly tools?: readonly OpenaiTool[];
  readonly stream: true;
  /** Else no server says what a streamed reply has cost. */
  /** Absent where the server has refused it: the reply then has no usage. */
  readonly stream_options?: { readonly include_usage: true };
  readonly max_tokens?: number;
  readonly max_completion_tokens?: number;
}

/** The longest id of a call that OpenAI takes. */
const longestId = 40;

/** `newNames`: the vendor's own newer models take `max_completion_tokens` only; most servers that imitate it, `max_tokens` only. */
export function render(request: ModelRequest, newNames: boolean): OpenaiRequest {
  const { model, system, messages, tools, without } = request;
  const how = { names: wireNames(tools), images: model.supports_images };
  return {
    model: model.model,
    messages: [...(system.trim() === '' ? [] : [{ role: 'system' as const, content: system }]), ...renderAll(messages, how)],
    ...(tools.length === 0 ? {} : { tools: tools.map(renderTool) }),
    stream: true, ...(without?.includes('stream_options') === true ? {} : { stream_options: { include_usage: true } }),
    ...(newNames ? { max_completion_tokens: model.max_output_tokens } : { max_tokens: model.max_output_tokens }),
  };
}

interface Rendering { readonly names: WireNames; readonly images: boolean }

/** A result is text on this wire. Its images are said as the user, behind the last result of the batch: between results nothing may stand. */
function renderAll(messages: readonly Message[], how: Rendering): OpenaiMessage[] {
  return messages.flatMap((message, index) => {
    const rendered = renderMessage(message, how);
    if (message.role !== 'tool' || messages[index + 1]?.role === 'tool') return [rendered];
    const from = messages.slice(0, index + 1).findLastIndex((each) => each.role !== 'tool') + 1;
    const parts = messages.slice(from, index + 1).flatMap((each) => each.role === 'tool' ? imageParts(each) : []);
    return parts.length === 0 ? [rendered] : [rendered, { role: 'user' as const, content: parts }];
  });
}

function imageParts(message: Extract<Message, { role: 'tool' }>): OpenaiPart[] {
  const images = resultImages(message);
  if (images.length === 0) return [];
  return [{ type: 'text', text: `[Images of the result of ${message.tool_name}. They come from the tool, not from the user.]` }, ...images.map((image) => renderPart({ type: 'image', ...image }))];
}

function renderMessage(message: Message, how: Rendering): OpenaiMessage {
  switch (message.role) {
    case 'user': return { role: 'user', content: renderUser(message.content, how) };
    case 'host': return { role: 'user', content: hostText(message) };
    case 'assistant': return renderAssistant(message, how);
    case 'tool': return { role: 'tool', content: flaggedResultText(message.content, message.is_error), tool_call_id: wireId(message.tool_use_id, longestId) };
  }
}

/** Blanks at the end of an assistant's text are refused where a server goes on with it; strict ones refuse an empty text. */
function renderAssistant({ text, calls }: Extract<Message, { role: 'assistant' }>, { names }: Rendering): OpenaiMessage {
  const content = text.trimEnd();
  if (calls.length === 0) return { role: 'assistant', content: content === '' ? '(no text)' : content };
  return {
    role: 'assistant', content: content === '' ? null : content,
    tool_calls: calls.map((call) => ({
      id: wireId(call.tool_use_id, longestId), type: 'function', function: { name: wireName(call.tool_name, names), arguments: JSON.stringify(call.tool_input) },
    })),
  };
}

/** Text alone goes as text: not every server knows parts. */
function renderUser(content: Content, { images }: Rendering): string | readonly OpenaiPart[] {
  const parts = userParts(content, images);
  if (parts.every((part) => part.type === 'text')) return parts.map((part) => part.text).join('\n');
  return parts.map(renderPart);
}

function renderPart(part: UserPart): OpenaiPart {
  return part.type === 'text' ? part : { type: 'image_url', image_url: { url: `data:${part.media_type};base64,${part.data}` } };
}

function renderTool(tool: ToolDefinition): OpenaiTool {
  return { type: 'function', function: { name: tool.wire_name, description: tool.description, parameters: plainSchema(tool.input_schema) } };
}
