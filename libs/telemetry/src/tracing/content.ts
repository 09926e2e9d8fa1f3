/**
 * What was said, as attributes of a span: for those who have asked for it. JSON of the conventions' form; known secrets are masked first
 * and then it is cut, so that no piece of one is left at the edge.
 */
import { capText, type Content, type Message, type ModelReply, type ModelRequest } from '@treadle/core';

/** Bytes of one text, and of all messages of one attribute. Of a longer conversation the newest messages stay. */
export const mostTextBytes = 4096;
export const mostContentBytes = 32_768;

type Part = Readonly<Record<string, unknown>>;
interface Said { readonly role: string; readonly parts: readonly Part[]; readonly finish_reason?: string }

export type Mask = (text: string) => string;

export function systemJson(system: string, mask: Mask): string {
  return JSON.stringify([textPart(system, mask)]);
}

export function inputJson({ messages }: ModelRequest, mask: Mask): string {
  return JSON.stringify(fitting(messages.toReversed(), (message) => saidIn(message, mask)).toReversed());
}

export function outputJson({ text, calls, finish }: ModelReply, mask: Mask): string {
  const parts = fitting([...(text === '' ? [] : [text]), ...calls], (part) => typeof part === 'string' ? textPart(part, mask) : callPart({ id: part.provider_id ?? '', name: part.name, input: part.input }, mask));
  return JSON.stringify([{ role: 'assistant', parts, finish_reason: finish } satisfies Said]);
}

/** For the names around them. */
const wrapping = 100;

/** The first of them, as many as an attribute takes. */
function fitting<From, To>(all: readonly From[], made: (each: From) => To): To[] {
  const kept: To[] = [];
  let bytes = wrapping;
  for (const each of all) {
    const one = made(each);
    bytes += Buffer.byteLength(JSON.stringify(one)) + 1;
    if (bytes > mostContentBytes) break;
    kept.push(one);
  }
  return kept;
}

/** Arguments of a call, or its result. */
export function valueJson(value: unknown, mask: Mask): string {
  return cut(mask(typeof value === 'string' ? value : JSON.stringify(value)));
}

function saidIn(message: Message, mask: Mask): Said {
  switch (message.role) {
    case 'user': return { role: 'user', parts: partsOf(message.content, mask) };
    case 'host': return { role: 'user', parts: [textPart(message.content, mask)] };
    case 'assistant': return {
      role: 'assistant', parts: [
        ...(message.text === '' ? [] : [textPart(message.text, mask)]),
        ...message.calls.map((call) => callPart({ id: call.tool_use_id, name: call.tool_name, input: call.tool_input }, mask)),
      ],
    };
    case 'tool': return { role: 'tool', parts: [{ type: 'tool_call_response', id: message.tool_use_id, response: cut(mask(message.content)) }] };
  }
}

/** Pictures are named and left out. */
function partsOf(said: Content, mask: Mask): Part[] {
  if (typeof said === 'string') return [textPart(said, mask)];
  return said.map((part) => part.type === 'text' ? textPart(part.text, mask) : { type: 'blob', mime_type: part.media_type, modality: 'image' });
}

function textPart(text: string, mask: Mask): Part {
  return { type: 'text', content: cut(mask(text)) };
}

function callPart(call: { readonly id: string; readonly name: string; readonly input: unknown }, mask: Mask): Part {
  return { type: 'tool_call', id: call.id, name: call.name, arguments: valueJson(call.input, mask) };
}

function cut(text: string): string {
  return capText(text, mostTextBytes).text;
}
