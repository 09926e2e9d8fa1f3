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

/** Everything of every run. Ends with a slash. */
export function runsFolder(prefix: string): string {
  return `${prefix}runs/`;
}

/** Everything of one run. Ends with a slash. */
export function runFolder(prefix: string, run_id: string): string {
  return `${runsFolder(prefix)}${named(run_id)}/`;
}

/** The run whose object this is, and what the object is called in the run's folder; null for strangers. */
export function readRunKey(prefix: string, key: string): { readonly run_id: string; readonly name: string } | null {
  const [, run_id = '', name = ''] = /^([^/]+)\/(.+)$/.exec(key.slice(runsFolder(prefix).length)) ?? [];
  return isId('run', run_id) ? { run_id, name } : null;
}

/** All schedules. Ends with a slash. */
export function schedulesFolder(prefix: string): string {
  return `${prefix}schedules/`;
}

/** Everything of one schedule. Ends with a slash. */
export function scheduleFolder(prefix: string, schedule_id: string): string {
  if (!isId('sch', schedule_id)) throw new RangeError('not the id of a schedule');
  return `${schedulesFolder(prefix)}${schedule_id}/`;
}

/** Each version has a key of its own, so that a write that comes late overwrites no later one. */
export function scheduleKey(prefix: string, schedule_id: string, version: number): string {
  if (!isSeq(version)) throw new RangeError(`not a version: ${version}`);
  return `${scheduleFolder(prefix, schedule_id)}${digits(version)}.json`;
}

export function scheduleRemovalKey(prefix: string, schedule_id: string): string {
  return `${scheduleFolder(prefix, schedule_id)}deleted.json`;
}

/** Null for strangers; `version` null for a removal. */
export function readScheduleKey(prefix: string, key: string): { readonly id: string; readonly version: number | null } | null {
  const [, id = '', name = ''] = /^([^/]+)\/(\d{12}|deleted)\.json$/.exec(key.slice(schedulesFolder(prefix).length)) ?? [];
  return isId('sch', id) ? { id, version: name === 'deleted' ? null : Number(name) } : null;
}

/** Where removals lie: beside the runs, since of a removed run nothing is left there. */
export function removalsFolder(prefix: string): string {
  return `${prefix}deleted/`;
}

/** Sorts as the run's id does. */
export function removalKey(prefix: string, run_id: string): string {
  return `${removalsFolder(prefix)}${named(run_id)}.json`;
}

export interface IndexPlace { readonly tenant: string; readonly day: string }

/** Where the ended runs of a tenant's day are listed. Ends with a slash. */
export function indexFolder(prefix: string, { tenant, day }: IndexPlace): string {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(day)) throw new RangeError('expected a day such as 2026-11-30');
  return `${prefix}index/${asPart(tenant)}/${day}/`;
}

/** The day comes from the run's id, so that whoever knows run and tenant knows the key. */
export function indexKey(prefix: string, tenant: string, run_id: string): string {
  return `${indexFolder(prefix, { tenant, day: dayOf(run_id) })}${named(run_id)}`;
}

const lastDayMs = Date.UTC(9999, 11, 31);

/** When an id was minted: a UUIDv7 begins with its time. */
export function dayOf(run_id: string): string {
  const ms = Number.parseInt(named(run_id).slice('run_'.length, 'run_'.length + 12), 16);
  return new Date(Math.min(ms, lastDayMs)).toISOString().slice(0, 10);
}

/** A name as one part of a key. */
function asPart(name: string): string {
  if (name === '') throw new RangeError('a tenant has a name');
  return [...Buffer.from(name)].map((byte) => {
    const char = String.fromCharCode(byte);
    return /[A-Za-z0-9_-]/.test(char) ? char : `~${byte.toString(16).padStart(2, '0')}`;
  }).join('');
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

function named(run_id: string): string {
  if (!isId('run', run_id)) throw new RangeError('not the id of a run');
  return run_id;
}

function isSeq(seq: number): boolean {
  return Number.isSafeInteger(seq) && seq >= 1 && seq <= maxSeq;
}

function digits(seq: number): string {
  return String(seq).padStart(seqDigits, '0');
}
