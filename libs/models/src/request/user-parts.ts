/** What a user said, as parts that any wire can take: no blank text, no image that is none, never nothing at all. */
import type { Content } from '@treadle/core';
import { imageOf, type WireImage } from './images.ts';

export type UserPart = { readonly type: 'text'; readonly text: string } | ({ readonly type: 'image' } & WireImage);

export function userParts(content: Content, takesImages: boolean): readonly UserPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content.trim() === '' ? nothingSaid : content }];
  const parts: UserPart[] = [];
  for (const part of content) {
    if (part.type === 'text') {
      if (part.text.trim() !== '') parts.push(part);
      continue;
    }
    const image = takesImages ? imageOf(part.data) : null;
    if (image !== null) parts.push({ type: 'image', ...image });
    else parts.push({ type: 'text', text: takesImages ? '[An image that could not be read was left out.]' : '[An image was left out: this model takes none.]' });
  }
  return parts.length === 0 ? [{ type: 'text', text: nothingSaid }] : parts;
}

const nothingSaid = '(empty message)';
