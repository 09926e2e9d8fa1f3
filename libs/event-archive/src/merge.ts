/**
 * Merging the segments of an ended run into as few as their size allows.
 *
 * 1  Parts are deleted only after the segment that replaces them was read back (`putOnce`) and holds their very lines.
 * 2  Every state in between is a log that readers understand: merged segments overlap their parts. So this may stop anywhere, and
 *    the same call later goes on from what is there, and where somebody else merges the same run it begins anew.
 * 3  A segment that says something else than another about the same event is a second history: nothing is deleted, and it throws.
 */
import { ArchiveConflict } from '@treadle/engine';
import { readSegmentKey, segmentKey, segmentsFolder, type SegmentKey } from './keys.ts';
import { ObjectsFailed, type ConditionalPuts, type ObjectStore } from './objects.ts';
import { maxObjectBytes, putOnce } from './put.ts';
import { decodeSegment, encodeSegment } from './segment.ts';

export interface Merging {
  readonly prefix: string;
  readonly run_id: string;
  readonly conditionalPuts: ConditionalPuts;
  /** A merged segment gets no larger; one that is larger by itself stays as it is. */
  readonly maxBytes: number;
}

/** Consecutive parts that will be one segment. */
interface Group { readonly first_seq: number; readonly lines: string[]; bytes: number; readonly parts: SegmentKey[] }

const tries = 3;

/** Throws `ObjectsFailed`, and `ArchiveConflict` for a second history. */
export async function mergeSegments(objects: ObjectStore, merging: Merging): Promise<void> {
  for (let left = tries; left > 0; left--) {
    if (await mergedAsListed(objects, merging)) return;
  }
  throw new ObjectsFailed('unavailable', `segments of ${merging.run_id} vanish while they are merged`);
}

/** False where a part is gone that was there when they were listed. */
async function mergedAsListed(objects: ObjectStore, merging: Merging): Promise<boolean> {
  const segments = await segmentsOf(objects, merging);
  if (segments.length < 2) return true;
  let group: Group | null = null;
  for (const part of coverOf(segments, merging.run_id)) {
    const lines = await linesOf(objects, part);
    if (lines === null) return false;
    if (group !== null && takes(group, part, lines, merging.maxBytes)) continue;
    if (group !== null) await replaceParts(objects, merging, { group, segments });
    group = { first_seq: part.first_seq, lines: [...lines], bytes: bytesOf(lines), parts: [part] };
  }
  if (group !== null) await replaceParts(objects, merging, { group, segments });
  return true;
}

async function segmentsOf(objects: ObjectStore, { prefix, run_id }: Merging): Promise<SegmentKey[]> {
  const folder = segmentsFolder(prefix, run_id);
  const found: SegmentKey[] = [];
  for await (const key of objects.list(folder, '')) {
    const segment = readSegmentKey(folder, key);
    if (segment !== null) found.push(segment);
  }
  return found;
}

/** The segments that lead from the first event to the last with the fewest steps. They come in the order of their first events. */
function coverOf(segments: readonly SegmentKey[], run_id: string): SegmentKey[] {
  const cover: SegmentKey[] = [];
  let last = 0;
  let at = 0;
  while (at < segments.length) {
    let best: SegmentKey | null = null;
    for (let segment = segments[at]; segment !== undefined && segment.first_seq <= last + 1; segment = segments[++at]) {
      if (segment.last_seq > (best?.last_seq ?? last)) best = segment;
    }
    if (best === null && at < segments.length) throw new ObjectsFailed('refused', `the segments of ${run_id} leave a gap after event ${last}`);
    if (best !== null) cover.push(best);
    last = best?.last_seq ?? last;
  }
  return cover;
}

/** Adds a part to the group, if it belongs there and there is room. */
function takes(group: Group, part: SegmentKey, lines: readonly string[], maxBytes: number): boolean {
  const overlap = group.first_seq + group.lines.length - part.first_seq;
  if (part.first_seq < group.first_seq) return false;
  assertSame(part, lines.slice(0, overlap), group.lines.slice(part.first_seq - group.first_seq));
  const added = lines.slice(overlap);
  const bytes = bytesOf(added);
  if (group.bytes + bytes > maxBytes) return false;
  for (const line of added) group.lines.push(line);
  group.bytes += bytes;
  group.parts.push(part);
  return true;
}

async function replaceParts(objects: ObjectStore, merging: Merging, { group, segments }: { readonly group: Group; readonly segments: readonly SegmentKey[] }): Promise<void> {
  const { first_seq, lines, parts } = group;
  const range = { run_id: merging.run_id, first_seq, last_seq: first_seq + lines.length - 1 };
  const key = segmentKey(merging.prefix, range);
  if (!parts.some((part) => part.key === key)) await putOnce(objects, merging.conditionalPuts, { key, bytes: encodeSegment({ ...range, events: lines }) });
  const inside = segments.filter((segment) => segment.key !== key && segment.first_seq >= first_seq && segment.last_seq <= range.last_seq);
  // Left by a merge that was interrupted, or by whoever wrote the same range again: what they say was not compared yet.
  for (const left of inside.filter((segment) => !parts.includes(segment))) {
    const said = await linesOf(objects, left);
    if (said !== null) assertSame(left, said, lines.slice(left.first_seq - first_seq, left.last_seq - first_seq + 1));
  }
  for (const segment of inside) await objects.delete(segment.key);
}

async function linesOf(objects: ObjectStore, segment: SegmentKey): Promise<readonly string[] | null> {
  const bytes = await objects.get(segment.key, maxObjectBytes);
  return bytes === null ? null : decodeSegment(segment, bytes);
}

function assertSame(segment: SegmentKey, said: readonly string[], known: readonly string[]): void {
  if (said.length !== known.length || said.some((line, index) => line !== known[index])) throw new ArchiveConflict(segment.key);
}

function bytesOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
}
