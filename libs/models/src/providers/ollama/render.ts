/**
 * A request as Ollama's `/api/chat` takes it, made from core's messages. Own types: the npm ones lack ids, `truncate` and `shift`.
 */
import type { ContentPart, Message, ModelRequest, ToolDefinition } from '@treadle/core';
import { imageBase64 } from './images.ts';
import { resolvableSchema } from './schema.ts';

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
  const names = new Map(tools.map((tool) => [tool.name, tool.wire_name]));
  const rendered = messages.map((message) => renderMessage(message, { names, images: model.supports_images }));
  return {
    model: model.model,
    messages: [...(system.trim() === '' ? [] : [{ role: 'system' as const, content: system }]), ...trimmedAtTheEnd(rendered)],
    ...(tools.length === 0 ? {} : { tools: tools.map(renderTool) }),
    stream: true, truncate: false, shift: false,
    options: { num_ctx: model.context_window, num_predict: model.max_output_tokens },
  };
}

interface Rendering { readonly names: ReadonlyMap<string, string>; readonly images: boolean }

function renderMessage(message: Message, how: Rendering): OllamaMessage {
  switch (message.role) {
    case 'user': return renderUser(message.content, how);
    case 'host': return { role: 'user', content: message.note === 'steer' ? outOfBand(message.content) : message.content };
    case 'assistant': return {
      role: 'assistant', content: message.text,
      ...(message.calls.length === 0 ? {} : {
        tool_calls: message.calls.map((call, index) => ({
          id: call.tool_use_id, function: { index, name: wireName(call.tool_name, how.names), arguments: call.tool_input },
        })),
      }),
    };
    case 'tool': return {
      role: 'tool', content: resultText(message.content, message.is_error),
      tool_name: wireName(message.tool_name, how.names), tool_call_id: message.tool_use_id,
    };
  }
}

/** The wire has no error flag; and some templates lose an empty result altogether. */
function resultText(content: string, isError: boolean): string {
  const text = content === '' ? '(no output)' : content;
  return isError ? `ERROR: ${text}` : text;
}

/** So that a model cannot take it for the words of a tool. */
function outOfBand(text: string): string {
  return `[A message from the user, sent while you were working. It does not come from a tool.]\n${text}`;
}

function renderUser(content: string | readonly ContentPart[], how: Rendering): OllamaMessage {
  if (typeof content === 'string') return { role: 'user', content };
  const texts: string[] = [];
  const images: string[] = [];
  for (const part of content) {
    if (part.type === 'text') {
      if (part.text.trim() !== '') texts.push(part.text);
      continue;
    }
    const image = how.images ? imageBase64(part.data) : null;
    if (image !== null) images.push(image);
    else texts.push(how.images ? '[An image that could not be read was left out.]' : '[An image was left out: this model takes none.]');
  }
  if (texts.length === 0 && images.length === 0) texts.push('(empty message)');
  return { role: 'user', content: texts.join('\n'), ...(images.length === 0 ? {} : { images }) };
}

/** A conversation that ends with the assistant's text is continued, and strict servers want that text without blanks at its end. */
function trimmedAtTheEnd(messages: readonly OllamaMessage[]): readonly OllamaMessage[] {
  const place = messages.findLastIndex((message) => message.role === 'assistant');
  return messages.map((message, index) => (index === place ? { ...message, content: message.content.trimEnd() } : message));
}

function renderTool(tool: ToolDefinition): OllamaTool {
  return { type: 'function', function: { name: tool.wire_name, description: tool.description, parameters: resolvableSchema(tool.input_schema) } };
}

/** The offered tool's wire name; a name that no tool has (invented, or gone since) made legal, always in the same way. */
function wireName(name: string, names: ReadonlyMap<string, string>): string {
  const known = names.get(name);
  if (known !== undefined) return known;
  const legal = name.replaceAll('/', '__').replaceAll(/[^a-zA-Z0-9_-]/gu, '_').slice(0, 64);
  return legal === '' ? 'unnamed_tool' : legal;
}
