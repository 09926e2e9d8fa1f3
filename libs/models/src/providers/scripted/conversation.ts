/**
 * What the stand-in knows: the last question, and what tools have answered since. All of it is read from the request, so the
 * same conversation always gets the same reply, on any worker.
 */
import type { Content, Message, ModelRequest } from '@treadle/core';

export interface Answered {
  readonly tool_name: string;
  readonly tool_input: Readonly<Record<string, unknown>>;
  readonly content: string;
  readonly is_error: boolean;
}

export interface Conversation {
  readonly question: string;
  /** What the user added while it was working, in order. */
  readonly steered: readonly string[];
  /** Calls that have their result, in order. */
  readonly answered: readonly Answered[];
}

export function readConversation(request: ModelRequest): Conversation {
  const { messages } = request;
  const asked = messages.findLastIndex((message) => message.role === 'user');
  const since = messages.slice(asked + 1);
  const question = messages[asked];
  return {
    question: question?.role === 'user' ? textOf(question.content) : '',
    steered: since.flatMap((message) => (message.role === 'host' && message.note === 'steer' ? [message.content] : [])),
    answered: answeredCalls(since),
  };
}

function answeredCalls(messages: readonly Message[]): readonly Answered[] {
  const inputs = new Map(messages.flatMap((message) => (
    message.role === 'assistant' ? message.calls.map((call) => [call.tool_use_id, call.tool_input] as const) : [])));
  return messages.flatMap((message) => (message.role !== 'tool' ? [] : [{
    tool_name: message.tool_name, tool_input: inputs.get(message.tool_use_id) ?? {}, content: message.content, is_error: message.is_error,
  }]));
}

function textOf(content: Content): string {
  if (typeof content === 'string') return content;
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
}
