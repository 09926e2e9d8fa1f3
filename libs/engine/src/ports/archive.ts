/**
 * The port of the archive: events as immutable segments, blobs by hash.
 *
 * A1  `putSegment` answers when the very bytes can be read back. The same range again is harmless; other bytes under the
 *     same key throw `ArchiveConflict`, and nothing is overwritten.
 * A2  Reading accepts overlapping segments and gives each event once, in order.
 */

export interface Segment {
  readonly run_id: string;
  readonly first_seq: number;
  readonly last_seq: number;
  /** Encoded events, in order. */
  readonly events: readonly string[];
}

export interface Archive {
  putSegment(segment: Segment): Promise<void>;
  /** What an ended run came to, as the API shows it. */
  putRun(run_id: string, run: string): Promise<void>;
  /** Content-addressed; answers the sha256 in hex. */
  putBlob(run_id: string, bytes: Uint8Array): Promise<string>;
  getBlob(run_id: string, sha256: string): Promise<Uint8Array | null>;
  /** Events after `after_seq`, at most about `limit` (whole segments are read; the rest is cut). Empty when there are none. */
  events(run_id: string, after_seq: number, limit: number): Promise<readonly string[]>;
  getRun(run_id: string): Promise<string | null>;
  /** Writes, reads back and removes a probe; throws with what failed. */
  check(): Promise<void>;
}

/** The archive holds other bytes under a key that never changes: two histories of one run exist. */
export class ArchiveConflict extends Error {
  readonly code = 'state_lost';

  constructor(key: string) {
    super(`the archive holds other bytes under ${key}`);
    this.name = 'ArchiveConflict';
  }
}
