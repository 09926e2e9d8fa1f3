/** The layout of the archive: every key is spelt here (contract, section 7). */
import { isId } from '@treadle/core';
import { ObjectsFailed } from './objects.ts';

/** Twelve digits, so that keys sort as numbers do. */
const seqDigits = 12;
const maxSeq = 10 ** seqDigits - 1;
const maxKeyBytes = 512;

export interface SegmentKey {
  readonly key: string;
  readonly first_seq: number;
  readonly last_seq: number;
}

/** Where a run's segments lie. Ends with a slash. */
export function segmentsFolder(prefix: string, run_id: string): string {
  return `${runFolder(prefix, run_id)}events/`;
}

export function segmentKey(prefix: string, range: { readonly run_id: string; readonly first_seq: number; readonly last_seq: number }): string {
  const { run_id, first_seq, last_seq } = range;
  if (!isSeq(first_seq) || !isSeq(last_seq) || last_seq < first_seq) throw new RangeError(`not a range of events: ${first_seq} to ${last_seq}`);
  return `${segmentsFolder(prefix, run_id)}${digits(first_seq)}-${digits(last_seq)}.jsonl`;
}

/** A key before every segment of the run that starts at `first_seq` or later, and after all others. */
export function beforeSegmentsFrom(prefix: string, run_id: string, first_seq: number): string {
  return `${segmentsFolder(prefix, run_id)}${digits(first_seq)}`;
}

/** Null for a key that is no segment's: strangers in the folder are left alone. */
export function readSegmentKey(folder: string, key: string): SegmentKey | null {
  const found = key.startsWith(folder) ? /^(\d{12})-(\d{12})\.jsonl$/.exec(key.slice(folder.length)) : null;
  if (found === null) return null;
  const range = { key, first_seq: Number(found[1]), last_seq: Number(found[2]) };
  return range.first_seq >= 1 && range.last_seq >= range.first_seq ? range : null;
}

export function runKey(prefix: string, run_id: string): string {
  return `${runFolder(prefix, run_id)}run.json`;
}

export function blobKey(prefix: string, run_id: string, sha256: string): string {
  if (!/^[0-9a-f]{64}$/.test(sha256)) throw new RangeError('a blob is named by 64 hex digits');
  return `${runFolder(prefix, run_id)}blobs/${sha256}`;
}

/** Beside the runs, never among them. */
export function probeFolder(prefix: string): string {
  return `${prefix}probe/`;
}

/**
 * Throws `ObjectsFailed` (refused) unless `key` is a plain relative path: no empty, `.` or `..` part, no backslash, no
 * control character, at most 512 bytes.
 */
export function assertKey(key: string): void {
  const plain = Buffer.byteLength(key) <= maxKeyBytes && key.isWellFormed() && !/[\p{Cc}\\]/u.test(key)
    && key.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
  if (!plain) throw new ObjectsFailed('refused', 'that is not a key');
}

/** Throws as `assertKey` does. The prefix is used as it stands: who wants a folder ends it with a slash. */
export function assertPrefix(prefix: string): void {
  assertKey(`${prefix}runs`);
}

function runFolder(prefix: string, run_id: string): string {
  if (!isId('run', run_id)) throw new RangeError('not the id of a run');
  return `${prefix}runs/${run_id}/`;
}

function isSeq(seq: number): boolean {
  return Number.isSafeInteger(seq) && seq >= 1 && seq <= maxSeq;
}

function digits(seq: number): string {
  return String(seq).padStart(seqDigits, '0');
}
