/** What an MCP tool answers, as text for the model. Lenient: a tool that ran must not fail for how it words its answer. */
import { z } from 'zod';

export const callResultSchema = z.looseObject({
  content: z.array(z.unknown()).optional(),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().optional(),
});

export type CallResult = z.output<typeof callResultSchema>;

/** Text parts by line; structured content as JSON where there is no text; other parts as a short note in their place. */
export function resultText(result: CallResult): string {
  const parts = (result.content ?? []).map(partOf);
  const hasText = parts.some((part) => part.isText && part.text !== '');
  if (!hasText && result.structuredContent !== undefined) parts.unshift({ isText: true, text: JSON.stringify(result.structuredContent) });
  const text = parts.map((part) => part.text).filter((each) => each !== '').join('\n');
  return text === '' ? '(no result)' : text;
}

interface Part { readonly isText: boolean; readonly text: string }

function partOf(part: unknown): Part {
  const { type, text, mimeType, uri, name, resource } = typeof part === 'object' && part !== null ? part as Record<string, unknown> : {};
  if (type === 'text') return { isText: true, text: typeof text === 'string' ? text : '' };
  if (type === 'image' || type === 'audio') return note(`${type}${typeof mimeType === 'string' ? ` (${mimeType})` : ''} left out`);
  if (type === 'resource_link') return note(`link to ${String(name ?? '')} ${String(uri ?? '')}`);
  if (type === 'resource') return embedded(resource);
  return note('a part of an unknown kind left out');
}

/** An embedded resource may carry text, which is what the tool wanted to say. */
function embedded(resource: unknown): Part {
  const { text, uri } = typeof resource === 'object' && resource !== null ? resource as Record<string, unknown> : {};
  if (typeof text === 'string') return { isText: true, text };
  return note(`resource ${String(uri ?? '')} left out`);
}

function note(text: string): Part {
  return { isText: false, text: `[${text}]` };
}
