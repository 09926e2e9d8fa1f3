/** Texts that no tool should return, made from a seed: the tool returns them, the test knows what must have become of them. */

/** The kinds, one after the other over the seeds. */
const kinds = [anyUnits, controls, loneSurrogates, asUtf16, pairs, jsonLike] as const;

/** Up to 400 UTF-16 code units, whole characters or not; never nothing. */
export function oddText(seed: number): string {
  const random = mulberry32(seed);
  const length = 1 + Math.floor(random() * 400);
  return kinds[seed % kinds.length]!(random, length);
}

function units(length: number, unit: () => number): string {
  return String.fromCharCode(...Array.from({ length }, unit));
}

function anyUnits(random: () => number, length: number): string {
  return units(length, () => Math.floor(random() * 0x10000));
}

/** NUL and everything else below a blank, DEL, the C1 block. */
function controls(random: () => number, length: number): string {
  return units(length, () => { const at = Math.floor(random() * 66); return at < 32 ? at : at + 95; });
}

function loneSurrogates(random: () => number, length: number): string {
  return units(length, () => 0xd800 + Math.floor(random() * 0x800));
}

/** What a program prints that takes the bytes of UTF-16 for Latin-1. */
function asUtf16(random: () => number, length: number): string {
  return units(length, () => random() < 0.5 ? 0 : Math.floor(random() * 256));
}

function pairs(random: () => number, length: number): string {
  return Array.from({ length: Math.ceil(length / 2) }, () => String.fromCodePoint(0x10000 + Math.floor(random() * 0x100000))).join('').slice(Math.floor(random() * 2));
}

function jsonLike(random: () => number, length: number): string {
  const pieces = ['"', '\\', '\\u', '\\ud83d', '{', '}', '\n', '\r', '\u2028', '\ufeff', '</s>', '\u0000', 'data: '];
  return Array.from({ length: Math.ceil(length / 4) }, () => pieces[Math.floor(random() * pieces.length)]!).join('');
}

/** A small generator that is the same everywhere. */
function mulberry32(seed: number): () => number {
  let state = seed + 0x9e3779b9;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
