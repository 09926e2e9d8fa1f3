import sharp from 'sharp';
import { expect, test } from 'vitest';
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
