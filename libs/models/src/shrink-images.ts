/**
 * Images of a request made smaller, for a model that has refused larger ones. The log keeps them as they came.
 */
import type { Message, ModelRequest } from '@treadle/core';

/** An image that unpacks to more is sent as it is. */
const mostPixels = 100_000_000;

/** The request with its images within `image_side`. An image that cannot be read stays as it is: the provider says what is wrong with it. */
export async function withSmallerImages(request: ModelRequest): Promise<ModelRequest> {
  const side = request.image_side ?? null;
  if (side === null) return request;
  return { ...request, messages: await Promise.all(request.messages.map((message) => shrunk(message, side))) };
}

async function shrunk(message: Message, side: number): Promise<Message> {
  if (message.role !== 'user' || typeof message.content === 'string') return message;
  const content = await Promise.all(message.content.map(async (part) => part.type === 'image' ? { ...part, ...await smaller(part, side) } : part));
  return { ...message, content };
}

async function smaller(image: { readonly media_type: string; readonly data: string }, side: number): Promise<{ media_type: string; data: string }> {
  // Loaded on use: most processes never see an image.
  const { default: sharp } = await import('sharp');
  try {
    const bytes = await sharp(Buffer.from(image.data, 'base64'), { limitInputPixels: mostPixels })
      .rotate().resize({ width: side, height: side, fit: 'inside', withoutEnlargement: true }).jpeg({ quality: 80 }).toBuffer();
    return { media_type: 'image/jpeg', data: bytes.toString('base64') };
  } catch {
    return image;
  }
}
