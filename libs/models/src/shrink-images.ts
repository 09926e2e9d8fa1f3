/**
 * Images of a request made smaller: a user's for a model that has refused them, since they are as he sent them; a tool's before
 * they are sent at all, since nobody has looked at them. The log keeps them as they came.
 */
import { withoutImages, type Message, type ModelRequest, type ToolImage } from '@treadle/core';
import { imageOf } from './request/images.ts';

/** An image that unpacks to more is not unpacked. */
const mostPixels = 100_000_000;

/** What every provider takes of one image: characters of base64, and pixels of the longer side. */
const most = { base64: 3_500_000, side: 2000 } as const;
/** Pixels of the longer side of what had to be shrunk: more is not looked at anyway. */
const usualSide = 1568;

/** The request with its images within what may be sent. A user's that cannot be read stays as it is: the provider says what is wrong with it. */
export async function withSmallerImages(request: ModelRequest): Promise<ModelRequest> {
  const side = request.image_side ?? null;
  const shows = (message: Message): boolean => message.role === 'tool' ? message.images !== undefined : side !== null && message.role === 'user';
  if (!request.messages.some(shows)) return request;
  return { ...request, messages: await Promise.all(request.messages.map((message) => shows(message) ? shrunk(message, side) : message)) };
}

async function shrunk(message: Message, side: number | null): Promise<Message> {
  if (message.role === 'tool') return fitting(message, side);
  if (message.role !== 'user' || typeof message.content === 'string' || side === null) return message;
  const content = await Promise.all(message.content.map(async (part) => part.type === 'image' ? { ...part, ...await smaller(part, side) } : part));
  return { ...message, content };
}

interface Image { readonly media_type: string; readonly data: string }

async function smaller(image: Image, side: number): Promise<Image> {
  return await resized(image, side) ?? image;
}

/** A tool's images: those that fit, those made to fit, and a note for the rest. */
async function fitting(message: Extract<Message, { role: 'tool' }>, side: number | null): Promise<Message> {
  const { images = [], ...rest } = message;
  const fit = (await Promise.all(images.map((image) => fitted(image, side)))).filter((image) => image !== null);
  const lost = images.length - fit.length;
  return {
    ...rest, ...(lost === 0 ? {} : { content: withoutImages(rest, `[${lost} image${lost === 1 ? '' : 's'} of this result left out: too large, or not to be read.]`) }),
    ...(fit.length === 0 ? {} : { images: fit }),
  };
}

async function fitted(image: ToolImage, side: number | null): Promise<ToolImage | null> {
  const { data } = image;
  const known = data === undefined ? null : imageOf(data);
  if (known === null) return null;
  if (side === null && known.data.length <= most.base64 && await isFit(known)) return { ...image, ...known };
  const made = await resized(known, side ?? usualSide);
  return made === null || made.data.length > most.base64 ? null : { ...image, ...made };
}

/** Whether it is small enough, and whole: providers refuse the beginning of an image as well. */
async function isFit({ data }: Image): Promise<boolean> {
  const { default: sharp } = await import('sharp');
  try {
    const image = sharp(Buffer.from(data, 'base64'), { limitInputPixels: mostPixels });
    const { width, height } = await image.metadata();
    if (Math.max(width, height) > most.side) return false;
    await image.resize(8, 8).raw().toBuffer();
    return true;
  } catch {
    return false;
  }
}

async function resized({ data }: Image, side: number): Promise<Image | null> {
  // Loaded on use: most processes never see an image.
  const { default: sharp } = await import('sharp');
  try {
    const bytes = await sharp(Buffer.from(data, 'base64'), { limitInputPixels: mostPixels })
      .rotate().resize({ width: side, height: side, fit: 'inside', withoutEnlargement: true }).jpeg({ quality: 80 }).toBuffer();
    return { media_type: 'image/jpeg', data: bytes.toString('base64') };
  } catch {
    return null;
  }
}
