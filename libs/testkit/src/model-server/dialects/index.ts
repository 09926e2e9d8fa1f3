import { anthropic } from './anthropic/index.ts';
import type { ChatBody, Dialect, DialectName } from './dialect.ts';
import { ollama } from './ollama/index.ts';
import { openai } from './openai/index.ts';

export const dialects: Readonly<Record<DialectName, Dialect>> = { ollama, openai, anthropic };

/** Every reason why a strict server of this wire refuses the request's body, in words; empty when it is valid. */
export function strictValidator(body: unknown, dialect: DialectName): readonly string[] {
  if (body === null || typeof body !== 'object' || Array.isArray(body)) return [`${dialect}: the body is not an object`];
  return dialects[dialect].problems(body as ChatBody);
}

export type { ChatBody, ChatMessage, Dialect, DialectName, ServedModel } from './dialect.ts';
