import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createMask } from './mask.ts';
import { mediaTypeOf } from './media.ts';
import { observed } from './observed.ts';

const bytes = (hex: string) => Buffer.from(hex.replaceAll(' ', ''), 'hex');
const sha = (value: Uint8Array) => createHash('sha256').update(value).digest('hex');

describe('bytes become text', () => {
  test.each<[string, Uint8Array, string | null, string]>([
    ['UTF-8', Buffer.from('grüße 🌍'), null, 'grüße 🌍'], ['UTF-8 with its mark', Buffer.from('\ufeffx'), 'text/plain', 'x'],
    ['UTF-16 of either order, by its mark', bytes('fffe 6800 e900'), 'application/octet-stream', 'hé'], ['the other order', bytes('feff 0068 00e9'), null, 'hé'],
    ['a named charset', bytes('6772fc df65'.replace(' ', '')), 'text/plain; charset=ISO-8859-1', 'grüße'], ['one that nobody knows', Buffer.from('plain'), 'text/plain; charset=klingon', 'plain'],
    ['NUL', Buffer.from('a\0b'), 'text/plain', 'a\0b'], ['nothing', new Uint8Array(0), 'text/plain', ''],
  ])('%s', (_name, value, type, content) => {
    expect(observed(value, mediaTypeOf(type))).toEqual({ content, attachments: [] });
  });
});

describe('bytes that are no text', () => {
  test.each<[string, string | null]>([['00fffe', null], ['00fffe', 'application/octet-stream'], ['d800', 'application/pdf'], ['c328', 'nonsense']])('%s (%s) are kept beside and named', (hex, type) => {
    const value = bytes(hex);
    const media_type = mediaTypeOf(type).type;
    expect(observed(value, mediaTypeOf(type))).toEqual({ content: `[not text: ${media_type}, ${value.length} bytes, kept as blob ${sha(value)}]`, attachments: [{ media_type, bytes: value }] });
  });

  test('of something called text are read as far as they can be, and kept', () => {
    const value = bytes('61 00 fffe 62');
    expect(observed(value, mediaTypeOf('text/html'))).toEqual({ content: `a\0\ufffd\ufffdb\n[not text: text/html, 5 bytes, kept as blob ${sha(value)}]`, attachments: [{ media_type: 'text/html', bytes: value }] });
  });

  test.each<[string, string]>([['89504e470d0a1a0a', 'image/png'], ['ffd8ffe0', 'image/jpeg'], ['474946383961', 'image/gif'], ['52494646 00000000 57454250', 'image/webp']])('%s are an image, whatever was said of them', (hex, media_type) => {
    const value = bytes(hex);
    expect(observed(value, mediaTypeOf('text/plain'))).toEqual({ content: `[image: ${media_type}, ${value.length} bytes]`, attachments: [{ media_type, bytes: value }] });
  });
});

describe('a mask', () => {
  const mask = createMask(['s3cret/"token', 's3cret', 'short', 'tiny']);
  test('hides secrets as text, JSON and URLs write them, and no short words', () => {
    expect(mask.text('a s3cret/"token b s3cret/\\"token c s3cret%2F%22token d s3cret e tiny short')).toBe('a [redacted] b [redacted] c [redacted] d [redacted] e tiny short');
  });

  test('hides them in bytes, and leaves other bytes alone', () => {
    const dirty = Buffer.concat([bytes('00ff'), Buffer.from('s3cret'), bytes('fe')]);
    const clean = bytes('00fffe');
    const masked = mask.result({ content: 's3cret', is_error: false, settled: true, attachments: [{ media_type: 'a/b', bytes: dirty }, { media_type: 'a/b', bytes: clean }] });
    expect(masked.content).toBe('[redacted]');
    expect(Buffer.from(masked.attachments![0]!.bytes).toString('latin1')).toBe('\x00\xff[redacted]\xfe');
    expect(masked.attachments![1]!.bytes).toBe(clean);
  });
});
