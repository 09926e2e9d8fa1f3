import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { withSmallerImages } from './shrink-images.ts';

const model = { name: 'm', provider: 'ollama', model: 'm', context_window: 1000, max_output_tokens: 10, supports_tools: true, supports_images: true };
const request = (data: string, image_side: number | null) => ({
  model, system: '', tools: [], image_side, messages: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'look' }, { type: 'image' as const, media_type: 'image/png', data }] }] });

async function sizeOf(sent: Awaited<ReturnType<typeof withSmallerImages>>): Promise<{ width: number; height: number; format: string }> {
  const [message] = sent.messages;
  const part = message?.role === 'user' && typeof message.content !== 'string' ? message.content[1] : undefined;
  if (part?.type !== 'image') throw new Error('no image');
  const { width, height, format } = await sharp(Buffer.from(part.data, 'base64')).metadata();
  return { width, height, format };
}

test('C45: an image is sent within the size that the model takes, its shape kept', async () => {
  const wide = (await sharp({ create: { width: 9000, height: 100, channels: 3, background: 'red' } }).png().toBuffer()).toString('base64');
  expect(await sizeOf(await withSmallerImages(request(wide, 1568)))).toEqual({ width: 1568, height: 17, format: 'jpeg' });
  expect(await sizeOf(await withSmallerImages(request(wide, null)))).toEqual({ width: 9000, height: 100, format: 'png' });
});

test('a small one is not enlarged, and what cannot be read stays as it is', async () => {
  const small = (await sharp({ create: { width: 20, height: 10, channels: 3, background: 'red' } }).png().toBuffer()).toString('base64');
  expect(await sizeOf(await withSmallerImages(request(small, 768)))).toMatchObject({ width: 20, height: 10 });
  const broken = request('bm8gaW1hZ2U=', 768);
  expect((await withSmallerImages(broken)).messages).toEqual(broken.messages);
});

describe('images of a tool', () => {
  const noise = (side: number) => Buffer.from(Array.from({ length: side * side * 3 }, (_, index) => (Math.imul(index + 1, 2_654_435_761) >>> 13) & 0xff));
  const imageOf = (bytes: Buffer, media_type = 'image/png') => ({ blob: 'b'.repeat(64), media_type, bytes: bytes.length, data: bytes.toString('base64') });
  const requestOf = (images: ReturnType<typeof imageOf>[], image_side: number | null = null) => ({
    model, system: '', tools: [], image_side, messages: [{ role: 'tool' as const, tool_use_id: 'c1', tool_name: 't', content: 'text', is_error: false, images }] });
  async function sent(request: ReturnType<typeof requestOf>) {
    const [message] = (await withSmallerImages(request)).messages;
    if (message?.role !== 'tool') throw new Error('no result');
    return { content: message.content, sizes: await Promise.all((message.images ?? []).map(async ({ data, media_type }) => {
      const { width, height, format } = await sharp(Buffer.from(data!, 'base64')).metadata();
      return `${width}x${height} ${format} ${media_type}`;
    })) };
  }

  test('C45: are within what providers take before they are sent', async () => {
    const wide = await sharp({ create: { width: 9000, height: 100, channels: 3, background: 'red' } }).png().toBuffer();
    const heavy = await sharp(noise(1200), { raw: { width: 1200, height: 1200, channels: 3 } }).png({ compressionLevel: 0 }).toBuffer();
    const small = await sharp({ create: { width: 20, height: 10, channels: 4, background: 'red' } }).webp().toBuffer();
    expect(heavy.length).toBeGreaterThan(4_000_000);
    expect(await sent(requestOf([imageOf(wide), imageOf(heavy), imageOf(small)]))).toEqual({ content: 'text', sizes: ['1568x17 jpeg image/jpeg', '1200x1200 jpeg image/jpeg', '20x10 webp image/webp'] });
    expect(await sent(requestOf([imageOf(wide)], 768))).toEqual({ content: 'text', sizes: ['768x9 jpeg image/jpeg'] });
  });

  test('C45: that cannot be read are said in words', async () => {
    const broken = (await sharp(noise(100), { raw: { width: 100, height: 100, channels: 3 } }).png().toBuffer()).subarray(0, 500);
    expect(await sent(requestOf([imageOf(broken), imageOf(Buffer.from('no image'))]))).toEqual({ content: 'text\n[2 images of this result left out: too large, or not to be read.]', sizes: [] });
  });
});
