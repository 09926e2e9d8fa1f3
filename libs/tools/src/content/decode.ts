/**
 * Bytes as text, where they are text. Strict servers refuse a request with half a character in it, and a store may choke on what
 * is no text at all, so what cannot be read is never passed on as it is.
 */
import type { MediaType } from './media.ts';

/** `exact`: the bytes can be made from the text again. */
export interface DecodedText { readonly text: string; readonly exact: boolean }

const marks: readonly { readonly head: readonly number[]; readonly charset: string }[] = [
  { head: [0xef, 0xbb, 0xbf], charset: 'utf-8' }, { head: [0xff, 0xfe], charset: 'utf-16le' }, { head: [0xfe, 0xff], charset: 'utf-16be' },
];

/** By their mark, else by the charset that was named, else as UTF-8. Null for bytes that nobody calls text and that are none. */
export function decodeText(bytes: Uint8Array, { type, charset }: MediaType): DecodedText | null {
  const mark = marks.find(({ head }) => head.every((byte, index) => bytes[index] === byte))?.charset;
  for (const label of [mark, charset, 'utf-8']) {
    const text = label === undefined || label === null ? null : exactly(bytes, label);
    if (text !== null) return { text, exact: true };
  }
  return isTextual(type) ? { text: new TextDecoder('utf-8').decode(bytes), exact: false } : null;
}

function exactly(bytes: Uint8Array, label: string): string | null {
  try {
    return new TextDecoder(label, { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** Whether somebody calls it text. */
function isTextual(type: string): boolean {
  return type.startsWith('text/') || /[/+](json|xml|yaml)$/.test(type) || type === 'application/javascript';
}
