/** What every `Archive` promises, through the port alone; the double and each real store are held to it. */
import { createHash, randomUUID } from 'node:crypto';
import { encodeEvent, idIn, type RunEvent } from '@treadle/core';
import { ArchiveConflict, type Archive, type Segment } from '@treadle/engine';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findingTests } from './archived-runs.ts';
import { scheduleTests } from './archived-schedules.ts';

export interface ArchiveUnderTest {
  readonly archive: Archive;
  /** Stops what `archive` needs. */
  readonly stop?: () => Promise<void>;
}

/** A run that no other test knows. */
export function freshRunId(): string {
  return idIn('run', 0, `${Date.now().toString(16).padStart(12, '0')}${randomUUID().replaceAll('-', '').slice(12)}`);
}

/** Encoded events of the run, as the codec writes them; `text` makes two histories differ. */
export function archivedEvents(run_id: string, first_seq: number, last_seq: number, text = 'grüße 🚂'): string[] {
  return Array.from({ length: last_seq - first_seq + 1 }, (_, index) => encodeEvent({
    type: 'assistant_text', seq: first_seq + index, ts: 1_700_000_000, run_id, turn_number: 1, epoch: 1,
    content: `${text} ${first_seq + index}`, is_final: false, attempt: 1,
  } satisfies RunEvent));
}

export function archivedSegment(run_id: string, first_seq: number, last_seq: number, text?: string): Segment {
  return { run_id, first_seq, last_seq, events: archivedEvents(run_id, first_seq, last_seq, text) };
}

export function archiveConformance(name: string, start: () => Promise<ArchiveUnderTest>): void {
  // Beside others of its file, most of which wait for answers; its own tests come one after the other.
  describe.concurrent('archive conformance', () => {
    describe(name, { concurrent: false }, () => {
      let running: ArchiveUnderTest | null = null;
      const archive = (): Archive => {
        if (running === null) throw new Error('the archive has not been started');
        return running.archive;
      };
      beforeAll(async () => { running = await start(); });
      afterAll(async () => { await running?.stop?.(); });

      it('gives a segment back byte for byte, from any seq, up to the limit', async () => {
        const run_id = freshRunId();
        const all = archivedEvents(run_id, 1, 5);
        await archive().putSegment(archivedSegment(run_id, 1, 5));
        expect(await archive().events(run_id, 0, 100)).toEqual(all);
        expect(await archive().events(run_id, 2, 100)).toEqual(all.slice(2));
        expect(await archive().events(run_id, 1, 2)).toEqual(all.slice(1, 3));
        expect(await archive().events(run_id, 5, 100)).toEqual([]);
      });

      it('has nothing of a run that it does not know', async () => {
        const run_id = freshRunId();
        expect(await archive().events(run_id, 0, 10)).toEqual([]);
        expect(await archive().getRun(run_id)).toBeNull();
        expect(await archive().getBlob(run_id, '0'.repeat(64))).toBeNull();
      });

      it('takes the same segment again', async () => {
        const run_id = freshRunId();
        await archive().putSegment(archivedSegment(run_id, 1, 3));
        await archive().putSegment(archivedSegment(run_id, 1, 3));
        expect(await archive().events(run_id, 0, 10)).toEqual(archivedEvents(run_id, 1, 3));
      });

      it('refuses other bytes under the same range and keeps the first', async () => {
        const run_id = freshRunId();
        await archive().putSegment(archivedSegment(run_id, 1, 3));
        await expect(archive().putSegment(archivedSegment(run_id, 1, 3, 'another history'))).rejects.toThrow(ArchiveConflict);
        expect(await archive().events(run_id, 0, 10)).toEqual(archivedEvents(run_id, 1, 3));
      });

      it('takes the same segment from many writers at once', async () => {
        const run_id = freshRunId();
        await Promise.all(Array.from({ length: 8 }, () => archive().putSegment(archivedSegment(run_id, 1, 2))));
        expect(await archive().events(run_id, 0, 10)).toEqual(archivedEvents(run_id, 1, 2));
      });

      it('reads across segments in order, and pages without a gap or a repeat', async () => {
        const run_id = freshRunId();
        for (const [first, last] of [[8, 11], [1, 3], [4, 4], [5, 7]] as const) await archive().putSegment(archivedSegment(run_id, first, last));
        const read: string[] = [];
        for (let page = await archive().events(run_id, 0, 2); page.length > 0; page = await archive().events(run_id, read.length, 2)) read.push(...page);
        expect(read).toEqual(archivedEvents(run_id, 1, 11));
      });

      it('gives each event once where segments overlap or were merged', async () => {
        const run_id = freshRunId();
        for (const [first, last] of [[1, 3], [2, 5], [6, 8], [6, 9], [1, 8]] as const) await archive().putSegment(archivedSegment(run_id, first, last));
        expect(await archive().events(run_id, 0, 100)).toEqual(archivedEvents(run_id, 1, 9));
        expect(await archive().events(run_id, 4, 3)).toEqual(archivedEvents(run_id, 5, 7));
        expect(await archive().events(run_id, 8, 3)).toEqual(archivedEvents(run_id, 9, 9));
      });

      it('ends before a gap instead of skipping it', async () => {
        const run_id = freshRunId();
        await archive().putSegment(archivedSegment(run_id, 1, 3));
        await archive().putSegment(archivedSegment(run_id, 5, 6));
        expect(await archive().events(run_id, 0, 100)).toEqual(archivedEvents(run_id, 1, 3));
        expect(await archive().events(run_id, 3, 100)).toEqual([]);
      });

      it('refuses a segment whose events are not those of its range', async () => {
        const run_id = freshRunId();
        const events = archivedEvents(run_id, 1, 3);
        await expect(archive().putSegment({ run_id, first_seq: 1, last_seq: 4, events })).rejects.toThrow(RangeError);
        await expect(archive().putSegment({ run_id, first_seq: 2, last_seq: 4, events })).rejects.toThrow(RangeError);
        await expect(archive().putSegment({ run_id, first_seq: 0, last_seq: 2, events })).rejects.toThrow(RangeError);
        await expect(archive().putSegment({ run_id: '../elsewhere', first_seq: 1, last_seq: 3, events })).rejects.toThrow(RangeError);
        expect(await archive().events(run_id, 0, 10)).toEqual([]);
      });

      it('keeps the latest document of an ended run', async () => {
        const run_id = freshRunId();
        for (const document of ['{"status":"completed"}', '{"status":"completed","more":"ö"}']) await archive().putRun({ run_id, tenant: 'acme', document });
        expect(await archive().getRun(run_id)).toBe('{"status":"completed","more":"ö"}');
      });

      it('names blobs by their content and gives them back, also twice and empty', async () => {
        const run_id = freshRunId();
        for (const bytes of [Uint8Array.from([0, 255, 10, 13, 128]), new Uint8Array(), new Uint8Array(300_000).fill(7)]) {
          const sha256 = await archive().putBlob(run_id, bytes);
          expect(sha256).toBe(createHash('sha256').update(bytes).digest('hex'));
          expect(await archive().putBlob(run_id, bytes)).toBe(sha256);
          const back = await archive().getBlob(run_id, sha256);
          expect(back !== null && Buffer.compare(back, bytes)).toBe(0);
        }
      });

      it('keeps the blobs of one run from another', async () => {
        const sha256 = await archive().putBlob(freshRunId(), Buffer.from('mine'));
        expect(await archive().getBlob(freshRunId(), sha256)).toBeNull();
      });

      findingTests(archive, { freshRunId, archivedSegment });
      scheduleTests(archive);

      it('finds nothing wrong with itself', async () => {
        await expect(archive().check()).resolves.toBeUndefined();
      });
    });
  });
}
