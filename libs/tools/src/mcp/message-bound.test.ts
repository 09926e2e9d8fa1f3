import { expect, test } from 'vitest';
import { boundedMessages } from './message-bound.ts';

async function passed(text: string, maxBytes: number, cut: number): Promise<string> {
  let over = 0;
  let out = '';
  const chunks = Array.from({ length: Math.ceil(text.length / cut) }, (_, index) => Buffer.from(text.slice(index * cut, (index + 1) * cut)));
  try {
    for await (const chunk of boundedMessages(ReadableStream.from(chunks) as ReadableStream<Uint8Array>, maxBytes, () => { over += 1; })) out += Buffer.from(chunk).toString();
  } catch (error) {
    out += ` ${(error as Error).message}`;
  }
  expect(over).toBe(1);
  return out;
}

test.each([1, 2, 3, 7, 1000])('many messages of the allowed length pass, one that is longer does not, in pieces of %i', async (cut) => {
  for (const line of ['\n', '\r\n']) {
    const fits = `data: 1234${line}${line}`.repeat(5);
    expect(await passed(fits, 16, cut)).toBe(fits);
    expect(await passed(`${fits}data: 12345678901234567890${line}${line}`, 16, cut)).toMatch(/a message is longer than 16 bytes$/);
    expect(await passed(`data: 1${line}data: 2${line}data: 3${line}${line}`, 16, cut)).toMatch(/longer/);
  }
  expect(await passed('{"a":"0123456789abcdef"}', 16, cut)).toMatch(/longer/);
});
