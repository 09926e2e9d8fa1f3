/**
 * Images as they may be sent: real base64 of a known image format, or nothing. The npm client's Node build reads a string that
 * names a file from the disk and sends it; `/bin/zsh` is valid base64, so the first bytes must be those of an image as well, and
 * the build for browsers, which never reads files, is the one that is used.
 */

const signatures: readonly (readonly number[])[] = [
  [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], // PNG
  [0xff, 0xd8, 0xff], // JPEG
  [0x47, 0x49, 0x46, 0x38], // GIF
  [0x52, 0x49, 0x46, 0x46], // WebP, in RIFF
];

/** Canonical base64 without a prefix; null for what is no image. */
export function imageBase64(data: string): string | null {
  const bare = data.replace(/^data:[\w.+-]+\/[\w.+-]+;base64,/, '').replaceAll(/\s/g, '');
  if (bare.length === 0 || bare.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(bare)) return null;
  const head = Buffer.from(bare.slice(0, 16), 'base64');
  return signatures.some((signature) => signature.every((byte, index) => head[index] === byte)) ? bare : null;
}
