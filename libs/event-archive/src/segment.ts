/** A segment as bytes: encoded events, each followed by one newline. The same events are always the same bytes. */
import { decodeEvent } from '@treadle/core';
import type { Segment } from '@treadle/engine';
import { ObjectsFailed } from './objects.ts';

/**
 * 64 MiB. A sealed range is written as it is or never, so this stands far above what a sensible number of events comes to;
 * who seals chooses that number such that it is not reached.
 */
export const maxSegmentBytes = 64 * 1024 * 1024;

/** Throws `RangeError` unless the events are exactly the range's, one line each, and `ObjectsFailed` above 64 MiB. */
export function encodeSegment(segment: Segment): Buffer {
  const { events, first_seq, last_seq } = segment;
  if (events.length !== last_seq - first_seq + 1) throw new RangeError(`${events.length} events for the range ${first_seq} to ${last_seq}`);
  for (const [index, line] of events.entries()) {
    if (line.includes('\n') || seqOf(line) !== first_seq + index) throw new RangeError(`event ${first_seq + index} is not what stands at its place`);
  }
  const bytes = Buffer.from(`${events.join('\n')}\n`);
  if (bytes.length > maxSegmentBytes) throw new ObjectsFailed('refused', `a segment of ${bytes.length} bytes, more than ${maxSegmentBytes}`);
  return bytes;
}

/** The lines of a segment. Throws `ObjectsFailed` (refused) where they are not what the key says. */
export function decodeSegment(range: { readonly key: string; readonly first_seq: number; readonly last_seq: number }, bytes: Uint8Array): readonly string[] {
  const lines = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString().split('\n');
  const closed = lines.pop() === '';
  const whole = closed && lines.length === range.last_seq - range.first_seq + 1
    && placed(lines[0], range.first_seq) && placed(lines.at(-1), range.last_seq);
  if (!whole) throw new ObjectsFailed('refused', `${range.key} is damaged`);
  return lines;
}

function placed(line: string | undefined, seq: number): boolean {
  try {
    return line !== undefined && seqOf(line) === seq;
  } catch {
    return false;
  }
}

/** The codec puts `seq` second; parsing whole events only to count them would cost as much as everything else here. */
function seqOf(line: string): number {
  const found = /^\{"type":"[a-z_]+","seq":(\d+),/.exec(line);
  return found === null ? decodeEvent(line).seq : Number(found[1]);
}
