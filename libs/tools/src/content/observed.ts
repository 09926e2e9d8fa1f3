/** What a tool gave as bytes, as an observation: text for the model, and beside it what is no text. */
import { createHash } from 'node:crypto';
import { isImage } from '@treadle/core';
import type { ToolAttachment } from '@treadle/engine';
import { decodeText } from './decode.ts';
import { imageType, type MediaType } from './media.ts';

export interface Observed {
  readonly content: string;
  readonly attachments: readonly ToolAttachment[];
}

/** An image is looked at; text is read; anything else, and text that can be read only in part, is kept beside and named by its hash. */
export function observed(bytes: Uint8Array, media: MediaType): Observed {
  const image = imageType(bytes);
  if (image !== null) return { content: `[image: ${image}, ${bytes.length} bytes]`, attachments: [{ media_type: image, bytes }] };
  const decoded = decodeText(bytes, media);
  if (decoded === null) return kept(bytes, media.type);
  if (decoded.exact) return { content: decoded.text, attachments: [] };
  const { content, attachments } = kept(bytes, media.type);
  return { content: `${decoded.text}\n${content}`, attachments };
}

/** What was called an image and is none is not passed on as one. `what`: what it is beside its kind, e.g. where it came from. */
export function kept(bytes: Uint8Array, media_type: string, what = 'not text'): Observed {
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { content: `[${what}: ${media_type}, ${bytes.length} bytes, kept as blob ${sha256}]`, attachments: [{ media_type: isImage({ media_type }) && imageType(bytes) === null ? 'application/octet-stream' : media_type, bytes }] };
}
