/**
 * The archive over any store of objects.
 *
 * It owns what the store was found to do with conditional puts: unknown until the first write (or told), then fixed. A probe
 * that fails is forgotten, so that the next write asks again: a worker may start while its store is away.
 *
 * 1  Nothing is written before that is known: a store that ignores conditions would overwrite.
 * 2  Nothing is answered before it was read back.
 */
import { createHash } from 'node:crypto';
import type { Archive } from '@treadle/engine';
import { assertPrefix, blobKey, indexKey, runKey, segmentKey } from './keys.ts';
import { mergeSegments } from './merge.ts';
import { ObjectsFailed, type Capabilities, type ObjectStore } from './objects.ts';
import { probeObjects } from './probe.ts';
import { maxObjectBytes, putOnce, putOver } from './put.ts';
import { readEvents } from './read-events.ts';
import { readRemoval, removeRun } from './remove.ts';
import { allRuns, indexedRuns } from './runs.ts';
import { allSchedules, putSchedule, removeSchedule } from './schedules.ts';
import { createSegmentCache } from './segment-cache.ts';
import { encodeSegment } from './segment.ts';

export interface ArchiveOptions {
  /** Before every key, as it stands: `treadle/` is a folder, `treadle-` is not. Default empty. */
  readonly prefix?: string;
  /** What a probe at start found; without it the archive probes before its first write. */
  readonly capabilities?: Capabilities;
}

/** Of segments that were read lately. */
const maxCachedChars = 16 * 1024 * 1024;

/** What seals segments keeps to the same size: merged ones are no harder to read. */
const maxMergedBytes = 8 * 1024 * 1024;

/** Blobs and run documents are held to 64 MiB, segments too. Calls throw `ObjectsFailed`, `putSegment` also `ArchiveConflict`. */
export function createArchive(objects: ObjectStore, options: ArchiveOptions = {}): Archive {
  const prefix = options.prefix ?? '';
  assertPrefix(prefix);
  const cache = createSegmentCache(maxCachedChars);
  const known = rememberSuccess(async () => options.capabilities ?? objects.capabilities ?? await probeObjects(objects, prefix));

  return {
    async putSegment(segment) {
      const object = { key: segmentKey(prefix, segment), bytes: encodeSegment(segment) };
      const { conditionalPuts } = await known();
      await putOnce(objects, conditionalPuts, object);
    },

    async putRun({ run_id, tenant, document }) {
      // Before the document: what is found by no list is not kept either.
      await putOver(objects, indexKey(prefix, tenant, run_id), Buffer.from(run_id));
      await putOver(objects, runKey(prefix, run_id), bounded(Buffer.from(document)));
    },

    async putBlob(run_id, bytes) {
      const sha256 = sha256Of(bounded(bytes));
      // The key is made of the bytes, so overwriting changes nothing, and mends what had been damaged.
      await putOver(objects, blobKey(prefix, run_id, sha256), bytes);
      return sha256;
    },

    async getBlob(run_id, sha256) {
      const key = blobKey(prefix, run_id, sha256);
      const bytes = await objects.get(key, maxObjectBytes);
      if (bytes !== null && sha256Of(bytes) !== sha256) throw new ObjectsFailed('refused', `${key} is damaged`);
      return bytes;
    },

    events: (run_id, after_seq, limit) => readEvents({ objects, prefix, cache }, { run_id, after_seq, limit }),

    async getRun(run_id) {
      const bytes = await objects.get(runKey(prefix, run_id), maxObjectBytes);
      return bytes === null ? null : Buffer.from(bytes).toString();
    },

    async merge(run_id) {
      const { conditionalPuts } = await known();
      await mergeSegments(objects, { prefix, run_id, conditionalPuts, maxBytes: maxMergedBytes });
    },

    runs: () => allRuns(objects, prefix),
    runsOf: (tenant, day) => indexedRuns(objects, prefix, { tenant, day }),
    remove: (removal) => removeRun(objects, prefix, removal),
    removal: (run_id) => readRemoval(objects, prefix, run_id),

    putSchedule: (schedule) => putSchedule(objects, prefix, schedule),
    removeSchedule: (schedule) => removeSchedule(objects, prefix, schedule),
    schedules: () => allSchedules(objects, prefix),

    async check() {
      const report = await probeObjects(objects, prefix);
      if (report.leftover !== null) throw new ObjectsFailed('refused', `${report.leftover} cannot be removed`);
    },
  };
}

function bounded(bytes: Uint8Array): Uint8Array {
  if (bytes.length > maxObjectBytes) throw new ObjectsFailed('refused', `an object of ${bytes.length} bytes, more than ${maxObjectBytes}`);
  return bytes;
}

function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Asks once for all callers at the same time; an answer is kept, a failure is not. */
function rememberSuccess<T>(ask: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | null = null;
  return () => {
    answer ??= ask().catch((error: unknown) => {
      answer = null;
      throw error;
    });
    return answer;
  };
}
