/** The strict validator's rules about single values: strings, images, schema references. */
import { imageSize } from 'image-size';

export type Json = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Json {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

export function isBlank(value: unknown): boolean {
  return typeof value === 'string' && value.trim() === '';
}

export function isPositiveInteger(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) > 0;
}

/** Fields that the wire does not know. */
export function fieldProblems(value: Json, known: ReadonlySet<string>, where: string): string[] {
  return Object.keys(value).filter((key) => !known.has(key)).map((key) => `${where}: unknown field ${key}`);
}

/** Lone surrogates, in values and in keys. */
export function surrogateProblems(value: unknown, path = 'body'): string[] {
  if (typeof value === 'string') return value.isWellFormed() ? [] : [`${path}: lone surrogate`];
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, item]) => [
    ...(key.isWellFormed() ? [] : [`${path}: lone surrogate in a key`]),
    ...surrogateProblems(item, `${path}.${key}`),
  ]);
}

/** Base64 without a prefix, at most 5 MB. */
export function imageProblems(image: unknown, where: string): string[] {
  if (typeof image !== 'string' || image === '') return [`${where}: an image is not a string`];
  if (image.length > 5 * 1024 * 1024) return [`${where}: image exceeds 5 MB maximum`];
  return image.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(image) ? [] : [`${where}: an image is not base64`];
}

/** Of an image that is good base64: what it really is, and that no side is longer than `most` pixels. */
export function pictureProblems(image: string, { mediaType, most, where }: { readonly mediaType: string; readonly most: number; readonly where: string }): string[] {
  const found = pictureOf(Buffer.from(image, 'base64'));
  if (found === null) return [`${where}: Could not process image`];
  const { type, width, height } = found;
  return [
    ...(mediaType === `image/${type === 'jpg' ? 'jpeg' : type}` ? [] : [`${where}: it is said to be ${mediaType}, but is ${type}`]),
    ...(Math.max(width, height) > most ? [`${where}: image dimensions exceed max allowed size: ${most} pixels`] : []),
  ];
}

function pictureOf(bytes: Buffer): { readonly type: string; readonly width: number; readonly height: number } | null {
  try {
    const { type = '', width, height } = imageSize(bytes);
    return ['png', 'jpg', 'gif', 'webp'].includes(type) ? { type, width, height } : null;
  } catch {
    return null;
  }
}

/** References that lead nowhere. */
export function schemaProblems(schema: unknown, where: string): string[] {
  return references(schema)
    .filter((reference) => !resolves(schema, reference))
    .map((reference) => `${where}: reference ${reference} does not resolve`);
}

function references(value: unknown): string[] {
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, item]) => (key === '$ref' && typeof item === 'string' ? [item] : references(item)));
}

function resolves(root: unknown, reference: string): boolean {
  if (reference === '#') return true;
  if (!reference.startsWith('#/')) return false;
  let at: unknown = root;
  for (const part of decodeURIComponent(reference.slice(2)).split('/')) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (at === null || typeof at !== 'object' || !Object.hasOwn(at, key)) return false;
    at = (at as Record<string, unknown>)[key];
  }
  return true;
}
