/** Requests as the cases read them: the same words for every wire. */
import type { ChatBody, RecordedRequest } from '@treadle/testkit';

export interface WireCall { readonly id: string; readonly name: string; readonly args: unknown }

export interface WireMessage {
  /** A result is a message of its own, of the role `tool`, wherever the wire puts it. */
  readonly role: string;
  readonly content: string;
  readonly calls: readonly WireCall[];
  /** Of a result: the id of its call. */
  readonly id?: unknown;
  /** Thoughts that are sent back, as the wire has them. */
  readonly thoughts: readonly unknown[];
}

interface Loose { readonly [field: string]: unknown }

export function messagesOf(request: RecordedRequest | undefined): readonly WireMessage[] {
  return request?.body === undefined || request.body === null ? [] : messagesIn(request.body);
}

/** By their shape alone: where content is a list of blocks, it is Anthropic's or has images. */
export function messagesIn(body: ChatBody): readonly WireMessage[] {
  const system = typeof body['system'] === 'string' ? [plain('system', body['system'])] : [];
  return [...system, ...(body.messages ?? []).flatMap(readMessage)];
}

function plain(role: string, content: string): WireMessage {
  return { role, content, calls: [], thoughts: [] };
}

function readMessage(message: Loose): WireMessage[] {
  const { role, content } = message;
  if (Array.isArray(content)) return readBlocks(String(role), content as readonly Loose[]);
  const read = { ...plain(String(role), typeof content === 'string' ? content : ''), calls: ((message['tool_calls'] ?? []) as readonly Loose[]).map(readCall) };
  return [role === 'tool' ? { ...read, id: message['tool_call_id'] } : read];
}

function readBlocks(role: string, blocks: readonly Loose[]): WireMessage[] {
  const of = (...types: readonly string[]): readonly Loose[] => blocks.filter((each) => types.includes(String(each['type'])));
  if (role === 'assistant') {
    return [{ role, content: textOf(blocks), thoughts: of('thinking', 'redacted_thinking'), calls: of('tool_use').map((use) => ({ id: String(use['id']), name: String(use['name']), args: use['input'] })) }];
  }
  return blocks.map((each): WireMessage => {
    if (each['type'] === 'tool_result') return { ...plain('tool', `${each['is_error'] === true ? 'ERROR: ' : ''}${textOf(each['content'])}`), id: each['tool_use_id'] };
    return plain(role, each['type'] === 'text' ? String(each['text']) : `[${String(each['type'])}]`);
  });
}

function textOf(content: unknown): string {
  if (!Array.isArray(content)) return String(content ?? '');
  return (content as readonly Loose[]).flatMap((each) => each['type'] === 'text' ? [String(each['text'])] : []).join('\n');
}

/** Arguments are an object, or the JSON text of one. */
function readCall(call: Loose): WireCall {
  const { name, arguments: args } = call['function'] as Loose;
  return { id: String(call['id']), name: String(name), args: typeof args === 'string' ? JSON.parse(args) as unknown : args };
}

/** Every picture of a request, wherever its wire puts it, in base64. */
export function picturesOf(request: RecordedRequest | undefined): string[] {
  return picturesIn(request?.body?.messages ?? []);
}

export function picturesIn(value: unknown): string[] {
  if (value === null || typeof value !== 'object') return [];
  const { type, source, image_url: url, images, ...rest } = value as Loose;
  if (type === 'image') return [String((source as Loose)['data'])];
  if (type === 'image_url') return [String((url as Loose)['url']).replace(/^data:[^,]*,/, '')];
  return [...(Array.isArray(images) ? images.map(String) : []), ...Object.values(Array.isArray(value) ? value : rest).flatMap(picturesIn)];
}

/** Calls of a request's history, in order. */
export function callsOf(request: RecordedRequest | undefined): WireCall[] {
  return messagesOf(request).flatMap((message) => message.calls);
}

/** Results of a request's history, in order. */
export function resultsOf(request: RecordedRequest | undefined): { id: unknown; content: string }[] {
  return messagesOf(request).filter((message) => message.role === 'tool').map(({ id, content }) => ({ id, content }));
}

/** How many results the conversation holds: where a script without memory knows how far it is. */
export function resultCount(body: ChatBody): number {
  return messagesIn(body).filter((message) => message.role === 'tool').length;
}
