/**
 * What an MCP tool answers, as text for the model and what is no text beside it. Lenient: a tool that ran must not fail for how it
 * words its answer.
 */
import { z } from 'zod';
import { imageType, mediaTypeOf } from '../content/media.ts';
import { kept, observed, type Observed } from '../content/observed.ts';

/** Nothing of it is certain: that it came at all says that the tool has run. */
export const callResultSchema = z.looseObject({ content: z.unknown().optional(), structuredContent: z.unknown().optional(), isError: z.unknown().optional() });

export interface CallResult { readonly content?: unknown; readonly structuredContent?: unknown; readonly isError?: unknown }

/** Some servers write what they mean by true otherwise. */
export function saysError({ isError }: CallResult): boolean {
  return isError === true || isError === 'true' || isError === 1;
}

/**
 * Parts by line, in their order: text as it is, structured content as JSON where there is no text, everything else as a short note of
 * what it is. Images and other bytes stand beside.
 */
export function observationOf(result: CallResult): Observed {
  const { content: given, structuredContent: structured } = result;
  const parts = (Array.isArray(given) ? given : given === undefined || given === null ? [] : [given]).map(partOf);
  const hasText = parts.some((part) => part.isText && part.content !== '');
  if (!hasText && structured !== undefined && structured !== null) parts.unshift(asJson(structured));
  const content = parts.map((part) => part.content).filter((each) => each !== '').join('\n');
  return { content: content === '' ? '(no result)' : content, attachments: parts.flatMap((part) => part.attachments) };
}

interface Part extends Observed { readonly isText: boolean }

function asJson(value: unknown): Part {
  try {
    return text(JSON.stringify(value) ?? '');
  } catch {
    return note('structured content left out: it is nested too deeply');
  }
}

function partOf(part: unknown): Part {
  if (typeof part === 'string') return text(part);
  const { type, text: said, mimeType, data, uri, name, resource } = fieldsOf(part);
  if (type === 'text') return text(typeof said === 'string' ? said : '');
  if (type === 'image' || type === 'audio') return bytes(type, data, mimeType);
  if (type === 'resource_link') return note(`link to ${stringOf(name) ?? ''} ${stringOf(uri) ?? ''}`);
  if (type === 'resource') return embedded(resource);
  return note('a part of an unknown kind left out');
}

/** An embedded resource may carry text, which is what the tool wanted to say; or bytes, which may be text as well. */
function embedded(resource: unknown): Part {
  const { text: said, uri, blob, mimeType } = fieldsOf(resource);
  if (typeof said === 'string') return text(said);
  const name = `resource ${stringOf(uri) ?? ''}`.trimEnd();
  if (blob === undefined) return note(`${name} left out: there is nothing in it`);
  const raw = base64(blob);
  if (raw === null) return note(`${name} left out: it cannot be read`);
  const seen = observed(raw, mediaTypeOf(stringOf(mimeType)));
  return seen.attachments.length === 0 ? text(seen.content) : { isText: false, ...(imageType(raw) === null ? kept(raw, mediaTypeOf(stringOf(mimeType)).type, name) : seen) };
}

/** What is called an image and is none that a model takes is kept like any other bytes. */
function bytes(type: 'image' | 'audio', data: unknown, mimeType: unknown): Part {
  const raw = base64(data);
  if (raw === null) return note(`${type} left out: it cannot be read`);
  const image = imageType(raw);
  if (image !== null) return { isText: false, ...observed(raw, mediaTypeOf(image)) };
  return { isText: false, ...kept(raw, mediaTypeOf(stringOf(mimeType)).type, type === 'image' ? 'no image that can be shown' : type) };
}

/**
 * Null for what is no base64, and for nothing. The decoder passes over what it does not know; where that is more than line ends, it
 * is no base64. (A pattern is for short ones alone: over megabytes it would hold up every other run of this worker.)
 */
function base64(data: unknown): Uint8Array | null {
  if (typeof data !== 'string' || (data.length < 65_536 && !/^[A-Za-z0-9+/_\s-]*={0,2}\s*$/.test(data))) return null;
  const bytes = Buffer.from(data, 'base64');
  const expected = Math.floor(data.length * 3 / 4);
  return bytes.length === 0 || bytes.length < expected - 3 - expected / 20 ? null : bytes;
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? value as Record<string, unknown> : {};
}

function stringOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function text(content: string): Part {
  return { isText: true, content, attachments: [] };
}

function note(content: string): Part {
  return { isText: false, content: `[${content}]`, attachments: [] };
}
