/** The body of an answer, as far as its bound. */
export interface Body {
  readonly bytes: Uint8Array;
  /** There was more. */
  readonly cut: boolean;
}

const codings: Readonly<Record<string, 'gzip' | 'deflate'>> = { gzip: 'gzip', 'x-gzip': 'gzip', deflate: 'deflate' };

/** The bound counts what is unpacked: a small answer may be a large one. @throws where it breaks off. */
export async function readBody(response: Response, maxBytes: number): Promise<Body> {
  if (response.body === null) return { bytes: new Uint8Array(0), cut: false };
  const coding = codings[response.headers.get('content-encoding')?.trim().toLowerCase() ?? ''];
  const stream = coding === undefined ? response.body : response.body.pipeThrough(new DecompressionStream(coding));
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { bytes: Buffer.concat(chunks), cut: false };
    chunks.push(value.subarray(0, maxBytes - size));
    size += value.length;
    if (size <= maxBytes) continue;
    await reader.cancel();
    return { bytes: Buffer.concat(chunks), cut: true };
  }
}
