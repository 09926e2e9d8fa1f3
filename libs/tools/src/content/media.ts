/** What bytes are, by their first few: what was said of their kind is not trusted. */
const images: readonly { readonly media_type: string; readonly head: readonly number[] }[] = [
  { media_type: 'image/png', head: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] },
  { media_type: 'image/jpeg', head: [0xff, 0xd8, 0xff] },
  { media_type: 'image/gif', head: [0x47, 0x49, 0x46, 0x38] },
];
const webp: readonly (number | null)[] = [0x52, 0x49, 0x46, 0x46, null, null, null, null, 0x57, 0x45, 0x42, 0x50];

/** Of the kinds that models look at; null for everything else. */
export function imageType(bytes: Uint8Array): string | null {
  if (webp.every((byte, index) => byte === null || bytes[index] === byte)) return 'image/webp';
  return images.find(({ head }) => head.every((byte, index) => bytes[index] === byte))?.media_type ?? null;
}

export interface MediaType { readonly type: string; readonly charset: string | null }

/** Of a `content-type` header or an MCP `mimeType`; nothing said is `application/octet-stream`. */
export function mediaTypeOf(header: string | null | undefined): MediaType {
  const [type = '', ...parameters] = (header ?? '').split(';').map((part) => part.trim());
  const charset = parameters.map((each) => /^charset="?([^"]+)"?$/i.exec(each)?.[1]).find((each) => each !== undefined);
  return { type: /^[\w.+-]+\/[\w.+-]+$/.test(type) ? type.toLowerCase() : 'application/octet-stream', charset: charset ?? null };
}
