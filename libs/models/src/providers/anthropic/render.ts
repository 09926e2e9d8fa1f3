/**
 * A request as `/v1/messages` takes it. Consecutive messages of one side become one, every call's result stands first in the user
 * message right behind it, nothing is empty, and the last word is the user's: newer models refuse to go on with an assistant's text.
 */
import type { Message, ModelRequest, ToolDefinition } from '@treadle/core';
import { withLegalNames } from '../../request/argument-names.ts';
import { wireId, wireName, wireNames, type WireNames } from '../../request/names.ts';
import { plainSchema } from '../../request/plain-schema.ts';
import { resultImages, type WireImage } from '../../request/images.ts';
import { userParts, type UserPart } from '../../request/user-parts.ts';
import { hostText, resultText } from '../../request/words.ts';
import { laidOut, type AnthropicThinking, type Origin } from './thinking.ts';

export interface AnthropicText { readonly type: 'text'; readonly text: string }

export interface AnthropicToolUse { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly input: Readonly<Record<string, unknown>> }

export interface AnthropicToolResult {
  readonly type: 'tool_result';
  readonly tool_use_id: string;
  readonly content: readonly (AnthropicText | AnthropicImage)[];
  readonly is_error?: true;
}

export interface AnthropicImage { readonly type: 'image'; readonly source: { readonly type: 'base64'; readonly media_type: string; readonly data: string } }

export type AnthropicBlock = AnthropicText | AnthropicToolUse | AnthropicToolResult | AnthropicImage | AnthropicThinking;

export interface AnthropicMessage { readonly role: 'user' | 'assistant'; readonly content: readonly AnthropicBlock[] }

export interface AnthropicTool { readonly name: string; readonly description: string; readonly input_schema: Readonly<Record<string, unknown>> }

export interface AnthropicRequest {
  readonly model: string;
  readonly max_tokens: number;
  readonly system?: string;
  readonly messages: readonly AnthropicMessage[];
  readonly tools?: readonly AnthropicTool[];
  readonly tool_choice?: { readonly type: 'none' };
  readonly stream: true;
}

const longestId = 64;

export function render(request: ModelRequest): AnthropicRequest {
  const { model, system, messages, tools } = request;
  const how: Rendering = { names: wireNames(tools), images: model.supports_images, origin: { name: model.name, model: model.model } };
  return {
    model: model.model, max_tokens: model.max_output_tokens,
    ...(system.trim() === '' ? {} : { system }),
    messages: framed(merged(messages, how)),
    ...offered(tools, messages, how.names),
    stream: true,
  };
}

/** A conversation with calls is refused where no tools are named: then theirs are, and none may be called. */
function offered(tools: readonly ToolDefinition[], messages: readonly Message[], names: WireNames): Pick<AnthropicRequest, 'tools' | 'tool_choice'> {
  if (tools.length > 0) return { tools: tools.map(renderTool) };
  const called = new Set(messages.flatMap((message) => (message.role === 'assistant' ? message.calls.map((call) => wireName(call.tool_name, names)) : [])));
  if (called.size === 0) return {};
  return { tools: [...called].map((name) => ({ name, description: 'No longer there.', input_schema: { type: 'object', properties: {} } })), tool_choice: { type: 'none' } };
}

interface Rendering { readonly names: WireNames; readonly images: boolean; readonly origin: Origin }

/** The wire has turns, not messages. */
function merged(messages: readonly Message[], how: Rendering): AnthropicMessage[] {
  const turns: { role: 'user' | 'assistant'; content: AnthropicBlock[] }[] = [];
  for (const message of messages) {
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const last = turns.at(-1);
    if (last?.role === role) add(last.content, message, how);
    else turns.push({ role, content: [...blocksOf(message, how)] });
  }
  return turns.filter((turn) => turn.content.length > 0);
}

/** Text right behind results makes models end their turn with nothing, so what steers goes into the last result. */
function add(turn: AnthropicBlock[], message: Message, how: Rendering): void {
  const last = turn.at(-1);
  if (message.role === 'host' && message.note === 'steer' && last?.type === 'tool_result') {
    turn[turn.length - 1] = { ...last, content: [...last.content, { type: 'text', text: hostText(message) }] };
    return;
  }
  turn.push(...blocksOf(message, how));
}

function blocksOf(message: Message, how: Rendering): readonly AnthropicBlock[] {
  switch (message.role) {
    case 'user': return userParts(message.content, how.images).map(renderPart);
    case 'host': return [{ type: 'text', text: hostText(message) }];
    case 'assistant': return assistantBlocks(message, how);
    case 'tool': return [{
      type: 'tool_result', tool_use_id: wireId(message.tool_use_id, longestId), content: [{ type: 'text', text: resultText(message.content) }, ...resultImages(message).map(renderImage)],
      ...(message.is_error ? { is_error: true } : {}),
    }];
  }
}

/**
 * With its thinking where that is the asked model's own and nothing of the reply has changed since; else text, then calls. What a
 * model said behind a call goes in front of it: between a call and its result nothing may stand.
 */
function assistantBlocks(message: Extract<Message, { role: 'assistant' }>, { names, origin }: Rendering): readonly AnthropicBlock[] {
  const calls = message.calls.map((call): AnthropicToolUse => ({
    type: 'tool_use', id: wireId(call.tool_use_id, longestId), name: wireName(call.tool_name, names), input: call.tool_input,
  }));
  const layout = laidOut(message, origin);
  if (layout === null) return [...textBlocks(message.text), ...calls];
  return [...layout.flatMap((block): readonly AnthropicBlock[] => (block.type === 'text' ? textBlocks(block.text) : [block])), ...calls];
}

function textBlocks(text: string): readonly AnthropicText[] {
  const trimmed = text.trimEnd();
  return trimmed === '' ? [] : [{ type: 'text', text: trimmed }];
}

function renderPart(part: UserPart): AnthropicBlock {
  return part.type === 'text' ? part : renderImage(part);
}

function renderImage({ media_type, data }: WireImage): AnthropicImage {
  return { type: 'image', source: { type: 'base64', media_type, data } };
}

/** A conversation begins and ends with the user. */
function framed(turns: readonly AnthropicMessage[]): readonly AnthropicMessage[] {
  const said = (text: string): AnthropicMessage => ({ role: 'user', content: [{ type: 'text', text }] });
  return [
    ...(turns.at(0)?.role === 'assistant' ? [said('(the beginning of the conversation was left out)')] : []), ...turns,
    ...(turns.at(-1)?.role === 'assistant' ? [said('Continue.')] : []),
  ];
}

function renderTool(tool: ToolDefinition): AnthropicTool {
  return { name: tool.wire_name, description: tool.description, input_schema: withLegalNames(plainSchema(tool.input_schema)) };
}
