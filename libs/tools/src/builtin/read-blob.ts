/** `read_blob`: pages through what of a run was too large for the conversation, or is no text. */
import type { CallEnd } from '../kind.ts';
import type { BuiltinTool } from '../kinds/builtin.ts';

/** What a run has kept; null where this run has nothing under that hash. */
export interface BlobSource {
  getBlob(run_id: string, sha256: string): Promise<Uint8Array | null>;
}

const usualBytes = 16_384;
const mostBytes = 30_000;

export function readBlobTool(blobs: BlobSource): BuiltinTool {
  return {
    name: 'read_blob', description: 'Reads a part of something that this run has kept whole, named by its blob. Text comes as text, anything else as base64.',
    input_schema: {
      type: 'object', required: ['sha256'], additionalProperties: false,
      properties: {
        sha256: { type: 'string', pattern: '^[0-9a-f]{64}$', description: 'The blob: 64 hexadecimal digits.' },
        offset: { type: 'integer', minimum: 0, description: 'The first byte; default 0.' },
        limit: { type: 'integer', minimum: 1, maximum: mostBytes, description: `Bytes at most; default ${usualBytes}.` },
      },
    },
    effect: 'read', parallel: 'parallel', timeout_ms: null,
    async run({ run_id, input }, window): Promise<CallEnd> {
      window.begin();
      const { sha256, offset = 0, limit = usualBytes } = input as { sha256: string; offset?: number; limit?: number };
      // Checked against the schema before, but a pinned definition may be an older one.
      if (!/^[0-9a-f]{64}$/.test(sha256)) return { type: 'answered', is_error: true, content: 'A blob is named by 64 hexadecimal digits.' };
      const bytes = await blobs.getBlob(run_id, sha256);
      if (bytes === null) return { type: 'answered', is_error: true, content: `This run has no blob ${sha256}.` };
      return { type: 'answered', is_error: false, content: pageOf(bytes, offset, Math.min(limit, mostBytes)) };
    },
  };
}

/** Begins and ends between characters, so that pages joined are the whole. */
function pageOf(bytes: Uint8Array, offset: number, limit: number): string {
  if (offset >= bytes.length) return `[the blob has ${bytes.length} bytes; there is nothing from ${offset} on]`;
  const isText = isUtf8(bytes);
  const start = isText ? boundary(bytes, offset) : offset;
  const wanted = Math.min(start + limit, bytes.length);
  const before = isText ? boundary(bytes, wanted) : wanted;
  // A limit smaller than one character still gets on.
  const end = before > start ? before : isText ? boundaryAfter(bytes, wanted) : wanted;
  const page = bytes.subarray(start, end);
  const head = `[bytes ${start} to ${end} of ${bytes.length}${end < bytes.length ? `; go on at offset ${end}` : '; the end'}${isText ? '' : '; base64'}]`;
  return `${head}\n${isText ? new TextDecoder('utf-8', { ignoreBOM: true }).decode(page) : Buffer.from(page).toString('base64')}`;
}

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

function isInside(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** The beginning of the character that `at` lies in. */
function boundary(bytes: Uint8Array, at: number): number {
  let place = at;
  while (place > 0 && isInside(bytes[place])) place--;
  return place;
}

function boundaryAfter(bytes: Uint8Array, at: number): number {
  let place = at;
  while (isInside(bytes[place])) place++;
  return place;
}
