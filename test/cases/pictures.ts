/** Real pictures, as a user may send them. */
import { crc32, deflateSync } from 'node:zlib';

/** A PNG all black, in base64. */
export function png(width: number, height: number): string {
  return pngOf(width, height, deflateSync(Buffer.alloc((width + 1) * height)));
}

/** One of which nothing can be packed: about as many bytes as pixels. */
export function noise(width: number, height: number): string {
  const pixels = Buffer.alloc((width + 1) * height);
  let state = 1;
  for (let at = 0; at < pixels.length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    // The first byte of a line says how it is filtered: not at all.
    pixels[at] = at % (width + 1) === 0 ? 0 : state >>> 24;
  }
  return pngOf(width, height, deflateSync(pixels, { level: 1 }));
}

function pngOf(width: number, height: number, packed: Buffer): string {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = 8;
  const parts = [chunk('IHDR', header), chunk('IDAT', packed), chunk('IEND', Buffer.alloc(0))];
  return Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), ...parts]).toString('base64');
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  return Buffer.concat([uint32(data.length), body, uint32(crc32(body))]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
