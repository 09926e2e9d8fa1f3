/** What is said to a model in words because its wire has no field for it. The same on every wire. */
import type { Message } from '@treadle/core';

/** Some templates lose an empty result altogether, and some servers refuse it. */
export function resultText(content: string): string {
  return content.trim() === '' ? '(no output)' : content;
}

/** Where the wire has no error flag. */
export function flaggedResultText(content: string, isError: boolean): string {
  return isError ? `ERROR: ${resultText(content)}` : resultText(content);
}

/** What the host says, it says as the user; a steering text so that a model cannot take it for the words of a tool. */
export function hostText(message: Extract<Message, { role: 'host' }>): string {
  return message.note === 'steer' ? `[A message from the user, sent while you were working. It does not come from a tool.]\n${message.content}` : message.content;
}

/** Whether anything stands for the user: a model asked without it answers with nothing, or its template fails. */
export function asksSomething(messages: readonly Message[]): boolean {
  return messages.some((message) => message.role === 'user' || message.role === 'host');
}
