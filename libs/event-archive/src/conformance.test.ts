import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { archiveConformance, createMemoryArchive, startOtherS3Server, startS3Server, type ArchiveUnderTest } from '@treadle/testkit';
import { createArchive, createFileObjects, createS3Objects, type S3Options } from './index.ts';

async function onFiles(): Promise<ArchiveUnderTest> {
  const directory = await mkdtemp(join(tmpdir(), 'treadle-archive-'));
  return { archive: createArchive(createFileObjects(directory)), stop: () => rm(directory, { recursive: true }) };
}

function onS3(start: () => Promise<{ readonly endpoint: string; readonly bucket: string; stop(): Promise<void> }>, client: Partial<S3Options> = {}): () => Promise<ArchiveUnderTest> {
  return async () => {
    const server = await start();
    const objects = createS3Objects({ endpoint: server.endpoint, bucket: server.bucket, credentials: { accessKeyId: 'test', secretAccessKey: 'test' }, ...client });
    const stop = async (): Promise<void> => {
      objects.close();
      await server.stop();
    };
    return { archive: createArchive(objects, { prefix: 'some/prefix-' }), stop };
  };
}

archiveConformance('the double in memory', async () => ({ archive: createMemoryArchive() }));
archiveConformance('files', onFiles);
archiveConformance('S3 that enforces conditions', onS3(() => startS3Server({ conditional: 'enforced' })));
archiveConformance('S3 that overlooks conditions', onS3(() => startS3Server({ conditional: 'ignored' })));
archiveConformance('S3 that refuses conditions', onS3(() => startS3Server({ conditional: 'unsupported' })));
archiveConformance('C65: S3 that refuses checksum headers', onS3(() => startS3Server({ refuseChecksums: true })));
archiveConformance('S3 that overlooks where a listing should start', onS3(() => startS3Server({ ignoreStartAfter: true })));
archiveConformance('S3 that refuses bodies in chunks', onS3(() => startS3Server({ refuseChunked: true })));
archiveConformance('S3 that lists two keys a page', onS3(() => startS3Server({ pageKeys: 2 })));
archiveConformance('S3 that lists two keys a page and overlooks where to start', onS3(() => startS3Server({ pageKeys: 2, ignoreStartAfter: true, conditional: 'unsupported' })));
archiveConformance('S3 that is slow', onS3(() => startS3Server({ latencyMs: 15 })));
for (const conditional of ['enforced', 'ignored', 'unsupported'] as const) {
  archiveConformance(`S3 of which every ninth request goes wrong, conditions ${conditional}`, onS3(async () => {
    const server = await startS3Server({ conditional });
    server.goWrong(9);
    return server;
  }, { maxAttempts: 8 }));
}
archiveConformance('S3 of another make (fauxqs)', onS3(startOtherS3Server));
