/**
 * Text as it may enter the log: no lone surrogate, and never longer than it may be. Strict servers refuse a request with
 * half a character in it, for ever, since it stays in the history.
 */

/**
 * JSON data whose strings and keys hold no lone surrogates. Depth is bounded; what lies deeper becomes null. Parts without a fault are the given ones, not
 * copies: a body of a million values would take seconds to copy.
 */
export function wellFormed<T>(value: T, depth = 64): T {
  return clean(value, depth) as T;
}

function clean(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (value === null || typeof value !== 'object') return value;
  if (depth === 0) return null;
  let changed = false;
  const cleaned = (item: unknown): unknown => {
    const clear = clean(item, depth - 1);
    changed ||= clear !== item;
    return clear;
  };
  if (Array.isArray(value)) {
    const items = value.map(cleaned);
    return changed ? items : value;
  }
  const keys = Object.keys(value);
  const items = keys.map((key) => cleaned((value as Readonly<Record<string, unknown>>)[key]));
  return changed || !keys.every((key) => key.isWellFormed()) ? Object.fromEntries(keys.map((key, at) => [key.toWellFormed(), items[at]])) : value;
}

/** Bytes of `text` in UTF-8; a lone surrogate counts as the three bytes of U+FFFD. */
export function utf8Length(text: string): number {
  let bytes = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code < 0x80) bytes += 1;
    else if (code < 0x800) bytes += 2;
    else if (code >= 0xd800 && code < 0xdc00 && isLow(text.charCodeAt(index + 1))) { bytes += 4; index++; }
    else bytes += 3;
  }
  return bytes;
}

export interface Capped { readonly text: string; readonly truncated_bytes: number }

/**
 * `text` within `max` bytes of UTF-8: head and tail kept, a note of what is missing between them, cut between characters.
 * The note itself fits into the limit; a limit too small for it gives the head alone.
 */
export function capText(text: string, max: number): Capped {
  const whole = text.toWellFormed();
  const bytes = utf8Length(whole);
  if (bytes <= max) return { text: whole, truncated_bytes: 0 };
  const room = max - utf8Length(missing(bytes));
  if (room < 2) return { text: prefix(whole, max), truncated_bytes: bytes - utf8Length(prefix(whole, max)) };
  const head = prefix(whole, Math.ceil(room * 0.7));
  const tail = suffix(whole, room - utf8Length(head));
  const gone = bytes - utf8Length(head) - utf8Length(tail);
  return { text: `${head}${missing(gone)}${tail}`, truncated_bytes: gone };
}

function missing(bytes: number): string {
  return `\n[… ${bytes} bytes left out …]\n`;
}

function prefix(text: string, max: number): string {
  let bytes = 0;
  let end = 0;
  for (const character of text) {
    bytes += utf8Length(character);
    if (bytes > max) break;
    end += character.length;
  }
  return text.slice(0, end);
}

function suffix(text: string, max: number): string {
  let bytes = 0;
  let start = text.length;
  while (start > 0) {
    const width = isLow(text.charCodeAt(start - 1)) && start > 1 ? 2 : 1;
    bytes += utf8Length(text.slice(start - width, start));
    if (bytes > max) break;
    start -= width;
  }
  return text.slice(start);
}

function isLow(code: number): boolean {
  return code >= 0xdc00 && code < 0xe000;
}
