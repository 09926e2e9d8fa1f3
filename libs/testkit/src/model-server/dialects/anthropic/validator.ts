/** What a strict server of this wire refuses, as a pure function of the request. */
import { pairingProblems, type Step } from '../../strict/pairing.ts';
import { argumentProblems, choiceProblems, toolsProblems } from '../../strict/tools.ts';
import { fieldProblems, isBlank, isObject, isPositiveInteger, surrogateProblems, type Json } from '../../strict/values.ts';
import type { ChatBody } from '../dialect.ts';
import { blockProblems } from './blocks.ts';

const settings = new Set([
  'model', 'max_tokens', 'messages', 'system', 'tools', 'tool_choice', 'stream', 'stop_sequences', 'metadata', 'thinking', 'service_tier', 'output_config', 'context_management',
]);

export function problems(body: ChatBody): readonly string[] {
  const messages = body.messages as unknown;
  return [
    ...(typeof body.model === 'string' && body.model !== '' ? [] : ['model is missing']),
    ...(isPositiveInteger(body['max_tokens']) ? [] : ['max_tokens is missing']),
    ...(Array.isArray(messages) ? messagesProblems(messages, body) : ['messages is not a list']),
    ...systemProblems(body['system'], body.model ?? ''),
    ...toolsProblems(body['tools'], toolOf),
    ...(body['tool_choice'] !== undefined && body['tools'] === undefined ? ['tool_choice without tools'] : []),
    ...cacheProblems(body),
    ...fieldProblems(body, settings, 'body'),
    ...surrogateProblems(body),
  ];
}

const toolFields = new Set(['name', 'description', 'input_schema', 'type', 'cache_control', 'strict']);

function toolOf(tool: Json, where: string): { readonly name: unknown; readonly schema: unknown; readonly problems: readonly string[] } {
  const { name, input_schema: schema } = tool;
  return { name, schema, problems: [...choiceProblems(schema, where), ...argumentProblems(schema, where), ...fieldProblems(tool, toolFields, where)] };
}

function systemProblems(system: unknown, model: string): string[] {
  if (system === undefined) return [];
  if (typeof system === 'string') return isBlank(system) ? ['system: empty text'] : [];
  if (!Array.isArray(system)) return ['system is neither a string nor a list'];
  return system.flatMap((block: unknown, index) => blockProblems(block, { in: 'system', model, where: `system[${index}]`, images: 0 }));
}

/** At most four points of the request may be marked for the cache. */
function cacheProblems(body: ChatBody): string[] {
  const marks = (value: unknown): number => value === null || typeof value !== 'object' ? 0
    : Object.entries(value).reduce((sum, [key, item]) => sum + (key === 'cache_control' && item !== null ? 1 : marks(item)), 0);
  const count = marks(body.messages) + marks(body['system']) + marks(body['tools']);
  return count > 4 ? [`${count} blocks with cache_control, more than 4`] : [];
}

function messagesProblems(messages: readonly unknown[], body: ChatBody): string[] {
  if (!messages.every(isObject)) return ['a message is not an object'];
  const blocks = messages.flatMap(blocksOf);
  const used = blocks.some(({ type }) => type === 'tool_use' || type === 'tool_result');
  const images = blocks.flatMap((block) => [block, ...inner(block)]).filter(({ type }) => type === 'image').length;
  return [
    ...(messages[0]?.['role'] === 'user' ? [] : ['the first message is not the user\'s']),
    ...messages.flatMap((message, index) => messageProblems(message, { index, images, model: body.model ?? '' })),
    ...pairingProblems(stepsOf(messages)),
    ...endProblems(messages),
    ...thinkingProblems(messages, body['thinking']),
    ...(used && !(Array.isArray(body['tools']) && body['tools'].length > 0) ? ['there are calls, but no tools'] : []),
  ];
}

function messageProblems({ role, content, ...rest }: Json, { index, images, model }: { readonly index: number; readonly images: number; readonly model: string }): string[] {
  const where = `messages[${index}]`;
  if (role !== 'user' && role !== 'assistant') return [`${where}: unknown role`];
  const extra = fieldProblems(rest, new Set(), where);
  if (typeof content === 'string') return [...extra, ...(isBlank(content) ? [`${where}: empty text`] : [])];
  if (!Array.isArray(content)) return [...extra, `${where}: content is neither a string nor a list`];
  if (content.length === 0) return [...extra, `${where}: content is an empty list`];
  const called = content.findIndex((block) => isObject(block) && block['type'] === 'tool_use');
  const behind = called < 0 ? [] : content.slice(called).filter((block) => isObject(block) && block['type'] !== 'tool_use');
  return [
    ...extra,
    ...content.flatMap((block: unknown, place) => blockProblems(block, { in: role, model, images, where: `${where}.content[${place}]` })),
    ...(behind.length > 0 ? [`${where}: a block stands behind a call`] : []),
  ];
}

/** The end of what the assistant said last; and that it is not the end of all, which would be a prefill. */
function endProblems(messages: readonly Json[]): string[] {
  const last = messages.findLast((message) => message['role'] === 'assistant');
  const end = last === undefined ? undefined : blocksOf(last).at(-1);
  const text = end?.['type'] === 'text' ? end['text'] : undefined;
  return [
    ...(typeof text === 'string' && text.trim() !== '' && text !== text.trimEnd() ? ['the last text of the assistant ends in whitespace'] : []),
    ...(messages.at(-1)?.['role'] === 'assistant' ? ['the last message is the assistant\'s: prefill is not supported'] : []),
  ];
}

/**
 * With thinking on for every reply, the assistant's message that the last results belong to begins with its thought. (A model that
 * decides itself whether it thinks, `adaptive`, asks for none.)
 */
function thinkingProblems(messages: readonly Json[], thinking: unknown): string[] {
  if (!isObject(thinking) || thinking['type'] !== 'enabled') return [];
  const answers = messages.at(-1);
  const asked = messages.at(-2);
  if (answers === undefined || asked === undefined || !blocksOf(answers).some(({ type }) => type === 'tool_result')) return [];
  return ['thinking', 'redacted_thinking'].includes(String(blocksOf(asked)[0]?.['type'])) ? [] : ['a final assistant message must start with a thinking block'];
}

/** Results count only in the message right behind the calls, before anything else in it. */
function stepsOf(messages: readonly Json[]): Step[] {
  return messages.flatMap((message, index): Step[] => {
    const where = `messages[${index}]`;
    const isAnswer = message['role'] === 'user' && messages[index - 1]?.['role'] === 'assistant';
    return [
      ...(isAnswer ? [] : [{ type: 'other', where } as const]),
      ...blocksOf(message).flatMap((block): Step[] => {
        if (block['type'] === 'tool_use') return [{ type: 'call', where, id: block['id'], name: block['name'] }];
        if (block['type'] === 'tool_result') return [{ type: 'result', where, id: block['tool_use_id'] }];
        return message['role'] === 'user' ? [{ type: 'other', where }] : [];
      }),
    ];
  });
}

function blocksOf({ content }: Json): readonly Json[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return Array.isArray(content) ? content.filter(isObject) : [];
}

function inner({ content }: Json): readonly Json[] {
  return Array.isArray(content) ? content.filter(isObject) : [];
}
