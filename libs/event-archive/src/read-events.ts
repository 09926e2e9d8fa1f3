/**
 * Reads a run's events out of segments that may overlap, be merged, or vanish under the reader's hands (A2).
 *
 * 1  Events are answered without gap: what follows a missing seq is not answered.
 * 2  "No events" is answered only after a listing of all segments in which none was missing.
 */
import { beforeSegmentsFrom, readSegmentKey, segmentsFolder, type SegmentKey } from './keys.ts';
import { ObjectsFailed, type ObjectStore } from './objects.ts';
import { maxObjectBytes } from './put.ts';
import type { SegmentCache } from './segment-cache.ts';
import { decodeSegment } from './segment.ts';

/**
 * A segment that holds the next event may start anywhere before it. Looking back this many events nearly always finds it,
 * and never lists more than one page of keys too many; only a longer, merged segment costs a second listing.
 */
const lookBack = 1_000;

/** Events that are held at once end a read early, so that a large `limit` cannot fill the memory. */
const maxReadChars = 64 * 1024 * 1024;

export interface ReadRange {
  readonly run_id: string;
  readonly after_seq: number;
  readonly limit: number;
}

export interface ReadDeps { readonly objects: ObjectStore; readonly prefix: string; readonly cache: SegmentCache }

interface Passage { readonly events: readonly string[]; readonly vanished: boolean }

/** Throws `ObjectsFailed`. */
export async function readEvents({ objects, prefix, cache }: ReadDeps, range: ReadRange): Promise<readonly string[]> {
  if (range.limit < 1) return [];
  for (const from of [Math.max(0, range.after_seq - lookBack), 0, 0]) {
    const segments = await segmentsOf(objects, prefix, { ...range, from });
    const passage = await readAlong({ objects, prefix, cache }, segments, range);
    if (passage.events.length > 0) return passage.events;
    if (from === 0 && !passage.vanished) return [];
  }
  throw new ObjectsFailed('unavailable', `segments of ${range.run_id} vanish while they are read`);
}

/** Segments that start at `from` or later and hold any of the wanted events. */
async function segmentsOf(objects: ObjectStore, prefix: string, range: ReadRange & { readonly from: number }): Promise<readonly SegmentKey[]> {
  const folder = segmentsFolder(prefix, range.run_id);
  const found: SegmentKey[] = [];
  for await (const key of objects.list(folder, beforeSegmentsFrom(prefix, range.run_id, range.from))) {
    const segment = readSegmentKey(folder, key);
    if (segment === null || segment.last_seq <= range.after_seq) continue;
    if (segment.first_seq > range.after_seq + range.limit) break;
    found.push(segment);
  }
  return found;
}

async function readAlong({ objects, cache }: ReadDeps, segments: readonly SegmentKey[], range: ReadRange): Promise<Passage> {
  const open = new Set(segments);
  const events: string[] = [];
  let vanished = false;
  let charsRead = 0;
  while (events.length < range.limit && charsRead < maxReadChars) {
    const next = range.after_seq + events.length + 1;
    const segment = furthest(open, next);
    if (segment === null) break;
    open.delete(segment);
    const lines = await cache.lines(segment.key, async () => {
      const bytes = await objects.get(segment.key, maxObjectBytes);
      return bytes === null ? null : decodeSegment(segment, bytes);
    });
    if (lines === null) {
      vanished = true;
      continue;
    }
    const from = next - segment.first_seq;
    for (const line of lines.slice(from, from + range.limit - events.length)) {
      events.push(line);
      charsRead += line.length;
    }
  }
  return { events, vanished };
}

/** Of the segments that hold `seq`, the one that leads furthest: fewest reads. Those wholly before it are dropped. */
function furthest(segments: Set<SegmentKey>, seq: number): SegmentKey | null {
  let best: SegmentKey | null = null;
  for (const segment of segments) {
    if (segment.first_seq > seq) break;
    if (segment.last_seq < seq) segments.delete(segment);
    else if (best === null || segment.last_seq > best.last_seq) best = segment;
  }
  return best;
}
