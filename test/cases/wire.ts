/** Ollama's wire as the cases write and read it. */
import { raw, type ChatMessage, type Delivery, type RecordedRequest, type WholeReply } from '@treadle/testkit';

/** The last line of a reply. */
export const doneLine = { done: true, done_reason: 'stop', prompt_eval_count: 20, eval_count: 5 };

/** A reply of exactly these lines. */
export function lines(...values: readonly (object | string)[]): WholeReply {
  return raw(values.map((value) => typeof value === 'string' ? value : `${JSON.stringify(value)}\n`));
}

/** One line of a reply's message. */
export function said(message: object): object {
  return { message: { role: 'assistant', ...message }, done: false };
}

/** The same bytes, cut at these offsets. */
export function recut(reply: WholeReply, cutAt: NonNullable<Delivery['cutAt']>): WholeReply {
  return { ...reply, delivery: { ...reply.delivery, cutAt } };
}

export function bytesOf(reply: WholeReply): number {
  return reply.type === 'raw' ? reply.chunks.reduce((sum, chunk) => sum + chunk.length, 0) : 0;
}

export interface WireCall { readonly id: string; readonly name: string; readonly args: unknown }

export function messagesOf(request: RecordedRequest | undefined): readonly ChatMessage[] {
  return request?.body?.messages ?? [];
}

/** Calls of a request's history, in order. */
export function callsOf(request: RecordedRequest | undefined): WireCall[] {
  return messagesOf(request).flatMap((message) => ((message['tool_calls'] ?? []) as { id: string; function: { name: string; arguments: unknown } }[])
    .map((call) => ({ id: call.id, name: call.function.name, args: call.function.arguments })));
}

/** Results of a request's history, in order. */
export function resultsOf(request: RecordedRequest | undefined): { id: unknown; content: string }[] {
  return messagesOf(request).filter((message) => message.role === 'tool').map((message) => ({ id: message['tool_call_id'], content: String(message.content) }));
}

/** How many results the conversation holds: where a script without memory knows how far it is. */
export function resultCount(body: { readonly messages?: readonly ChatMessage[] }): number {
  return (body.messages ?? []).filter((message) => message.role === 'tool').length;
}
