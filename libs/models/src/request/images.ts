/**
 * Images as they may be sent: real base64 of a known image format, or nothing. What was said of their kind is not trusted: servers
 * refuse an image whose bytes are of another kind than its label. (Ollama's npm client, in its Node build, reads a string that names
 * a file from the disk and sends it; `/bin/zsh` is valid base64, so the first bytes must be those of an image as well.)
 */

import type { Message } from '@treadle/core';

export interface WireImage {
  readonly media_type: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp';
  /** Base64 without a prefix. */
  readonly data: string;
}

const kinds: readonly { readonly media_type: WireImage['media_type']; readonly head: readonly number[] }[] = [
  { media_type: 'image/png', head: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] },
  { media_type: 'image/jpeg', head: [0xff, 0xd8, 0xff] },
  { media_type: 'image/gif', head: [0x47, 0x49, 0x46, 0x38] },
  { media_type: 'image/webp', head: [0x52, 0x49, 0x46, 0x46] }, // in RIFF
];

/** Of a tool's result, as far as a model may see them. */
export function resultImages({ images = [] }: Extract<Message, { role: 'tool' }>): readonly WireImage[] {
  return images.flatMap(({ data }) => data === undefined ? [] : imageOf(data) ?? []);
}

/** Null for what is no image. */
export function imageOf(data: string): WireImage | null {
  const bare = data.replace(/^data:[\w.+-]+\/[\w.+-]+;base64,/, '').replaceAll(/\s/g, '');
  if (bare.length === 0 || bare.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(bare)) return null;
  const bytes = Buffer.from(bare.slice(0, 16), 'base64');
  const kind = kinds.find(({ head }) => head.every((byte, index) => bytes[index] === byte));
  return kind === undefined ? null : { media_type: kind.media_type, data: bare };
}
