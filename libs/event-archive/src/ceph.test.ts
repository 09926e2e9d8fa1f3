/** The archive on Ceph's gateway. Where Ceph is not installed it is skipped; `npm run test:ceph` installs it and skips nothing. */
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { ArchiveConflict } from '@treadle/engine';
import { archiveConformance, archivedEvents, archivedSegment, freshRunId, isCephInstalled, startCeph, type CephServer } from '@treadle/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createArchive, createS3Objects, probeObjects, type ObjectStore } from './index.ts';

const installed = isCephInstalled();
const bucket = 'treadle-test';

async function startWithBucket(): Promise<CephServer> {
  const ceph = await startCeph();
  const client = new S3Client({ endpoint: ceph.endpoint, region: 'us-east-1', forcePathStyle: true, credentials: ceph.credentials });
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  client.destroy();
  return ceph;
}

it.runIf(process.env['CEPH_REQUIRED'] === '1')('Ceph is installed', () => { expect(installed).toBe(true); });

describe.skipIf(!installed)('on Ceph', () => {
  archiveConformance('the gateway of Ceph', async () => {
    const ceph = await startWithBucket();
    const objects = createS3Objects({ endpoint: ceph.endpoint, bucket, credentials: ceph.credentials });
    return { archive: createArchive(objects, { prefix: 'some/prefix-' }), stop: async () => { objects.close(); await ceph.stop(); } };
  });

  describe('what it does', () => {
    let ceph: CephServer;
    let objects: ObjectStore;
    beforeAll(async () => {
      ceph = await startWithBucket();
      objects = createS3Objects({ endpoint: ceph.endpoint, bucket, credentials: ceph.credentials });
    }, 120_000);
    afterAll(async () => {
      objects.close();
      await ceph.stop();
    });

    it('is found by the probe: conditions are enforced', async () => {
      expect(await probeObjects(objects, 'x/')).toEqual({ conditionalPuts: 'enforced', leftover: null });
    });

    it('lets one of many histories win', async () => {
      const archive = createArchive(objects);
      const run_id = freshRunId();
      const writers = await Promise.allSettled(Array.from({ length: 10 }, (_, n) => archive.putSegment(archivedSegment(run_id, 1, 2, `history ${n}`))));
      const winners = writers.flatMap((writer, n) => writer.status === 'fulfilled' ? [n] : []);
      expect(winners).toHaveLength(1);
      expect(writers.filter((writer) => writer.status === 'rejected' && writer.reason instanceof ArchiveConflict)).toHaveLength(9);
      expect(await archive.events(run_id, 0, 10)).toEqual(archivedEvents(run_id, 1, 2, `history ${winners[0]}`));
    });

    it('refuses a wrong secret, which is told as refused', async () => {
      const stranger = createS3Objects({ endpoint: ceph.endpoint, bucket, credentials: { ...ceph.credentials, secretAccessKey: 'wrong' } });
      await expect(stranger.put('a', Buffer.from('x'), 'create')).rejects.toMatchObject({ kind: 'refused' });
      stranger.close();
    });
  });
});
