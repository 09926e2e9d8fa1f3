import { expect, test } from 'vitest';
import { lenientBody } from './lenient-body.ts';

const loose = '{"jsonrpc":"2.0","id":3,"result":{},"error":null}';
const strict = '{"jsonrpc":"2.0","id":3,"result":{}}';

async function* cut(text: string, size: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size);
}

async function read(type: string, text: string, maxBytes = 1000): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of lenientBody(type, cut(text, 7), maxBytes)) parts.push(part);
  return Buffer.concat(parts).toString();
}

test.each([
  ['application/json', loose, strict], ['application/json; charset=utf-8', 'not JSON', 'not JSON'],
  ['text/event-stream', `event: message\r\ndata: ${loose}\r\n\r\n: still here\n`, `event: message\ndata: ${strict}\n\n: still here\n`],
  ['text/event-stream', `data:${loose}\n\n`, `data:${strict}\n\n`],
  // Carriage returns alone may end its lines, too, and a stream may break off in one: both are for the SDK to read.
  ['text/event-stream', `data: ${loose}\r\r`, `data: ${loose}\r\r`],
  ['text/plain', loose, loose],
])('a body of %s: %j', async (type, body, expected) => {
  expect(await read(type, body)).toBe(expected);
});

test.each(['application/json', 'text/event-stream'])('a body of %s is not kept beyond its bound, whatever stands between', async (type) => {
  const filler = type === 'application/json' ? '\n\n'.repeat(20) : 'x'.repeat(40);
  await expect(read(type, filler, 30)).rejects.toThrow('a message is longer than 30 bytes');
});
