/**
 * What a strict server of this wire refuses, as a pure function of the request. Real Ollama is more lenient than this; the
 * point is that what passes here passes everywhere.
 */
import { pairingProblems, type Step } from '../../strict/pairing.ts';
import { nameProblems, toolsProblems } from '../../strict/tools.ts';
import { imageProblems, isBlank, isObject, isPositiveInteger, surrogateProblems, type Json } from '../../strict/values.ts';
import type { ChatBody } from '../dialect.ts';

const roles = new Set<unknown>(['system', 'user', 'assistant', 'tool']);

export function problems(body: ChatBody): readonly string[] {
  const messages = body.messages as unknown;
  return [
    ...(typeof body.model === 'string' && body.model !== '' ? [] : ['model is missing']),
    ...(Array.isArray(messages) ? messagesProblems(messages) : ['messages is not a list']),
    ...toolsProblems(body['tools'], (tool) => ({ name: inside(tool)['name'], schema: inside(tool)['parameters'] })),
    ...settingsProblems(body),
    ...surrogateProblems(body),
  ];
}

/** Without these Ollama cuts the front of the conversation silently. */
function settingsProblems(body: ChatBody): string[] {
  const options = isObject(body['options']) ? body['options'] : {};
  return [
    ...(isPositiveInteger(options['num_ctx']) ? [] : ['options.num_ctx is missing']),
    ...(body['truncate'] === false ? [] : ['truncate is not false']),
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
  const { role, content, images } = message;
  const where = `messages[${index}]`;
  if (!roles.has(role)) return [`${where}: unknown role`];
  if (typeof content !== 'string') return [`${where}: content is not a string`];
  const calls = callsOf(message);
  return [
    ...(images === undefined ? [] : Array.isArray(images) ? images.flatMap((image) => imageProblems(image, where)) : [`${where}: images is not a list`]),
    ...(role !== 'tool' && isBlank(content) && images === undefined && calls.length === 0 ? [`${where}: empty text`] : []),
    ...(message['tool_calls'] !== undefined && !Array.isArray(message['tool_calls']) ? [`${where}: tool_calls is not a list`] : []),
    ...(role !== 'assistant' && calls.length > 0 ? [`${where}: a call that is not the assistant's`] : []),
    ...calls.flatMap((call) => callProblems(call, where)),
  ];
}

function callProblems(call: Json, where: string): string[] {
  const { id } = call;
  return [
    ...(typeof id === 'string' && id !== '' ? [] : [`${where}: a call without id`]),
    ...nameProblems(inside(call)['name'], where),
    ...(isObject(inside(call)['arguments']) ? [] : [`${where}: the arguments of call ${String(id)} are not an object`]),
  ];
}

function stepsOf(message: Json, index: number): Step[] {
  const where = `messages[${index}]`;
  if (message['role'] === 'tool') return [{ type: 'result', where, id: message['tool_call_id'], name: message['tool_name'] ?? null }];
  return [{ type: 'other', where }, ...callsOf(message).map((call): Step => ({ type: 'call', where, id: call['id'], name: inside(call)['name'] }))];
}

function callsOf(message: Json): readonly Json[] {
  const calls: unknown = message['tool_calls'];
  return Array.isArray(calls) ? calls.map((call) => isObject(call) ? call : {}) : [];
}

function inside(outer: Json): Json {
  return isObject(outer['function']) ? outer['function'] : {};
}
