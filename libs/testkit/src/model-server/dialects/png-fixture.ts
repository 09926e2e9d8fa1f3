/** The beginning of a PNG of this size, as base64: all that anybody reads of it here. */
export function png(width: number, height: number): string {
  const bytes = Buffer.alloc(33);
  bytes.write('89504e470d0a1a0a0000000d49484452', 'hex');
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  bytes[24] = 8;
  return bytes.toString('base64');
}
