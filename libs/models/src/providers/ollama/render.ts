/**
 * A request as Ollama's `/api/chat` takes it, made from core's messages. Own types: the npm ones lack ids, `truncate` and `shift`.
 */
import type { Content, Message, ModelRequest, ToolDefinition } from '@treadle/core';
import { wireName, wireNames, type WireNames } from '../../request/names.ts';
import { resolvableSchema } from '../../request/schema.ts';
import { resultImages } from '../../request/images.ts';
import { userParts } from '../../request/user-parts.ts';
import { flaggedResultText, hostText } from '../../request/words.ts';

export interface OllamaCall {
  readonly id: string;
  readonly function: { readonly index: number; readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };
}

export interface OllamaMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string;
  readonly images?: readonly string[];
  readonly tool_calls?: readonly OllamaCall[];
  readonly tool_name?: string;
  readonly tool_call_id?: string;
}

export interface OllamaTool {
  readonly type: 'function';
  readonly function: { readonly name: string; readonly description: string; readonly parameters: Readonly<Record<string, unknown>> };
}

export interface OllamaRequest {
  readonly model: string;
  readonly messages: readonly OllamaMessage[];
  readonly tools?: readonly OllamaTool[];
  readonly stream: true;
  /** Else the server drops the oldest messages without a sign, system prompt's tools and all. */
  readonly truncate: false;
  /** Else it drops the beginning while it generates; with false the reply ends as `length`. Old servers ignore it. */
  readonly shift: false;
  readonly options: { readonly num_ctx: number; readonly num_predict: number };
}

export function render(request: ModelRequest): OllamaRequest {
  const { model, system, messages, tools } = request;
  const names = wireNames(tools);
  const rendered = messages.map((message) => renderMessage(message, { names, images: model.supports_images }));
  return {
    model: model.model,
    messages: [...(system.trim() === '' ? [] : [{ role: 'system' as const, content: system }]), ...trimmedAtTheEnd(rendered)],
    ...(tools.length === 0 ? {} : { tools: tools.map(renderTool) }),
    stream: true, truncate: false, shift: false,
    options: { num_ctx: model.context_window, num_predict: model.max_output_tokens },
  };
}

interface Rendering { readonly names: WireNames; readonly images: boolean }

function renderMessage(message: Message, how: Rendering): OllamaMessage {
  switch (message.role) {
    case 'user': return renderUser(message.content, how);
    case 'host': return { role: 'user', content: hostText(message) };
    case 'assistant': return {
      role: 'assistant', content: message.text,
      ...(message.calls.length === 0 ? {} : {
        tool_calls: message.calls.map((call, index) => ({
          id: call.tool_use_id, function: { index, name: wireName(call.tool_name, how.names), arguments: call.tool_input },
        })),
      }),
    };
    case 'tool': return {
      role: 'tool', content: flaggedResultText(message.content, message.is_error), ...shown(resultImages(message).map(({ data }) => data)),
      tool_name: wireName(message.tool_name, how.names), tool_call_id: message.tool_use_id,
    };
  }
}

function renderUser(content: Content, how: Rendering): OllamaMessage {
  const parts = userParts(content, how.images);
  const images = parts.flatMap((part) => (part.type === 'image' ? [part.data] : []));
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  return { role: 'user', content: texts.join('\n'), ...shown(images) };
}

function shown(images: readonly string[]): Pick<OllamaMessage, 'images'> {
  return images.length === 0 ? {} : { images };
}

/** A conversation that ends with the assistant's text is continued, and strict servers want that text without blanks at its end. */
function trimmedAtTheEnd(messages: readonly OllamaMessage[]): readonly OllamaMessage[] {
  const place = messages.findLastIndex((message) => message.role === 'assistant');
  return messages.map((message, index) => (index === place ? { ...message, content: message.content.trimEnd() } : message));
}

function renderTool(tool: ToolDefinition): OllamaTool {
  return { type: 'function', function: { name: tool.wire_name, description: tool.description, parameters: resolvableSchema(tool.input_schema) } };
}
