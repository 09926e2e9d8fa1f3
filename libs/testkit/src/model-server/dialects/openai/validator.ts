/**
 * What a strict server of this wire refuses, as a pure function of the request: the rules of OpenAI and of the servers
 * compatible with it, together.
 */
import { pairingProblems, type Step } from '../../strict/pairing.ts';
import { choiceProblems, nameProblems, toolsProblems } from '../../strict/tools.ts';
import { fieldProblems, imageProblems, isBlank, isObject, isPositiveInteger, surrogateProblems, type Json } from '../../strict/values.ts';
import type { ChatBody } from '../dialect.ts';

const settings = new Set([
  'model', 'messages', 'tools', 'tool_choice', 'parallel_tool_calls', 'stream', 'stream_options', 'max_tokens', 'max_completion_tokens', 'temperature', 'top_p',
  'stop', 'seed', 'n', 'presence_penalty', 'frequency_penalty', 'response_format', 'user', 'reasoning_effort', 'metadata', 'store', 'prompt_cache_key',
]);

/** By role: the fields of its messages. `developer` is OpenAI's alone. */
const fields: Readonly<Record<string, ReadonlySet<string>>> = {
  system: new Set(['role', 'content', 'name']),
  user: new Set(['role', 'content', 'name']),
  assistant: new Set(['role', 'content', 'name', 'refusal', 'tool_calls']),
  tool: new Set(['role', 'content', 'tool_call_id']),
};

export function problems(body: ChatBody): readonly string[] {
  const messages = body.messages as unknown;
  return [
    ...(typeof body.model === 'string' && body.model !== '' ? [] : ['model is missing']),
    ...(Array.isArray(messages) ? messagesProblems(messages) : ['messages is not a list']),
    ...toolsProblems(body['tools'], toolOf),
    ...settingsProblems(body),
    ...fieldProblems(body, settings, 'body'),
    ...surrogateProblems(body),
  ];
}

function toolOf(tool: Json, where: string): { readonly name: unknown; readonly schema: unknown; readonly problems: readonly string[] } {
  const { name, parameters: schema } = inside(tool);
  return { name, schema, problems: [...(tool['type'] === 'function' ? [] : [`${where}: not of the type function`]), ...choiceProblems(schema, where)] };
}

function settingsProblems(body: ChatBody): string[] {
  const { tools, stream } = body;
  const set = (...keys: readonly string[]): string[] => keys.filter((key) => body[key] !== undefined);
  return [
    ...(Array.isArray(tools) && tools.length === 0 ? ['tools is an empty list'] : []),
    ...(tools === undefined ? set('tool_choice', 'parallel_tool_calls').map((key) => `${key} without tools`) : []),
    ...(stream === true ? [] : set('stream_options').map((key) => `${key} without stream`)),
    ...set('max_tokens', 'max_completion_tokens').filter((key) => !isPositiveInteger(body[key])).map((key) => `${key} is not a positive integer`),
    ...(set('max_tokens', 'max_completion_tokens').length > 1 ? ['max_tokens and max_completion_tokens at the same time'] : []),
  ];
}

function messagesProblems(messages: readonly unknown[]): string[] {
  if (!messages.every(isObject)) return ['a message is not an object'];
  return [
    ...(messages.some((message) => message['role'] === 'user') ? [] : ['there is no user message']),
    ...messages.flatMap(messageProblems),
    ...pairingProblems(messages.flatMap(stepsOf)),
  ];
}

function messageProblems(message: Json, index: number): string[] {
  const { role } = message;
  const where = `messages[${index}]`;
  const known = typeof role === 'string' && Object.hasOwn(fields, role) ? fields[role] : undefined;
  if (known === undefined) return [`${where}: unknown role`];
  return [
    ...fieldProblems(message, known, where),
    ...contentProblems(message, where),
    ...(role === 'assistant' ? assistantProblems(message, where) : []),
    ...(role === 'tool' && typeof message['tool_call_id'] !== 'string' ? [`${where}: a result without tool_call_id`] : []),
  ];
}

function contentProblems({ role, content, tool_calls: calls }: Json, where: string): string[] {
  if (content === null || content === undefined) return role === 'assistant' && calls !== undefined ? [] : [`${where}: content is missing`];
  if (typeof content === 'string') return isBlank(content) && role !== 'tool' ? [`${where}: empty text`] : [];
  if (!Array.isArray(content)) return [`${where}: content is neither a string nor a list`];
  if (content.length === 0) return [`${where}: content is an empty list`];
  return content.flatMap((part: unknown, index) => partProblems(part, String(role), `${where}.content[${index}]`));
}

function partProblems(part: unknown, role: string, where: string): string[] {
  if (!isObject(part)) return [`${where}: not an object`];
  if (part['type'] === 'text') return typeof part['text'] !== 'string' ? [`${where}: its text is not a string`] : isBlank(part['text']) ? [`${where}: empty text`] : [];
  if (part['type'] !== 'image_url' || role !== 'user') return [`${where}: unknown part`];
  const url = isObject(part['image_url']) ? part['image_url']['url'] : undefined;
  const inline = typeof url === 'string' && /^data:image\/(?:png|jpeg|gif|webp);base64,/.test(url) ? url.slice(url.indexOf(',') + 1) : undefined;
  return inline === undefined ? [`${where}: an image is not a data URL of a known type`] : imageProblems(inline, where);
}

function assistantProblems({ tool_calls: calls }: Json, where: string): string[] {
  if (calls === undefined) return [];
  if (!Array.isArray(calls) || calls.length === 0) return [`${where}: tool_calls is not a list of calls`];
  return calls.flatMap((call: unknown) => callProblems(isObject(call) ? call : {}, where));
}

function callProblems(call: Json, where: string): string[] {
  const { id } = call;
  return [
    ...(typeof id === 'string' && id !== '' ? [] : [`${where}: a call without id`]),
    ...(typeof id === 'string' && id.length > 40 ? [`${where}: call id ${id} has more than 40 characters`] : []),
    ...(call['type'] === 'function' ? [] : [`${where}: call ${String(id)} is not of the type function`]),
    ...nameProblems(inside(call)['name'], where),
    ...(isJsonObject(inside(call)['arguments']) ? [] : [`${where}: the arguments of call ${String(id)} are not an object as JSON text`]),
  ];
}

function isJsonObject(text: unknown): boolean {
  try {
    return typeof text === 'string' && isObject(JSON.parse(text));
  } catch {
    return false;
  }
}

function stepsOf(message: Json, index: number): Step[] {
  const where = `messages[${index}]`;
  if (message['role'] === 'tool') return [{ type: 'result', where, id: message['tool_call_id'] }];
  const calls: unknown = message['tool_calls'];
  return [
    { type: 'other', where },
    ...(Array.isArray(calls) ? calls.filter(isObject).map((call): Step => ({ type: 'call', where, id: call['id'], name: inside(call)['name'] })) : []),
  ];
}

function inside(outer: Json): Json {
  return isObject(outer['function']) ? outer['function'] : {};
}
