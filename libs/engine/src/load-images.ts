/**
 * Images of tool results, put into a request from the archive when it is sent: the transcript holds their names alone. What cannot
 * be shown is said in words where it would stand, so that a model never takes a note for a picture it has seen.
 */
import { withoutImages, type Message, type ModelRequest, type ToolImage } from '@treadle/core';
import type { Archive } from './ports/archive.ts';

/** Of one request, the newest first: every provider takes so many, and a worker's memory is shared by all its turns. */
const most = { images: 10, bytes: 24 * 1024 * 1024 } as const;
const loadMs = 5000;

type Result = Extract<Message, { role: 'tool' }>;

export async function withImages(archive: Pick<Archive, 'getBlob'>, run_id: string, request: ModelRequest): Promise<ModelRequest> {
  if (!request.messages.some((message) => message.role === 'tool' && message.images !== undefined)) return request;
  const chosen = request.model.supports_images ? newest(request.messages) : new Set<ToolImage>();
  const messages = await Promise.all(request.messages.map(async (message) => {
    if (message.role !== 'tool' || message.images === undefined) return message;
    const loaded = await Promise.all(message.images.filter((image) => chosen.has(image)).map((image) => load(archive, run_id, image)));
    const shown = loaded.filter((image) => image !== null);
    const why = !request.model.supports_images ? 'this model takes none' : shown.length < loaded.length ? 'they cannot be had now' : 'there are newer ones';
    return withShown(message, shown, why);
  }));
  return { ...request, messages };
}

function withShown(message: Result, shown: readonly ToolImage[], why: string): Result {
  const missing = (message.images ?? []).length - shown.length;
  const { images: _, ...rest } = missing === 0 ? message : { ...message, content: withoutImages(message, `[${missing} image${missing === 1 ? '' : 's'} of this result left out: ${why}.]`) };
  return shown.length === 0 ? rest : { ...rest, images: shown };
}

function newest(messages: readonly Message[]): Set<ToolImage> {
  const chosen = new Set<ToolImage>();
  let bytes = 0;
  for (const image of messages.toReversed().flatMap((message) => message.role === 'tool' ? message.images ?? [] : [])) {
    bytes += image.bytes;
    if (chosen.size === most.images || bytes > most.bytes) break;
    chosen.add(image);
  }
  return chosen;
}

/** An archive that is away or slow must not hold up a turn. */
async function load(archive: Pick<Archive, 'getBlob'>, run_id: string, image: ToolImage): Promise<ToolImage | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => { timer = setTimeout(resolve, loadMs, null); });
  const bytes = await Promise.race([archive.getBlob(run_id, image.blob).catch(() => null), late]).finally(() => { clearTimeout(timer); });
  return bytes === null ? null : { ...image, data: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64') };
}
