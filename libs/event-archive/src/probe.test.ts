import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { archivedSegment, freshRunId, startS3Server, type S3Server, type S3ServerOptions } from '@treadle/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { createArchive, createFileObjects, createS3Objects, ObjectsFailed, probeObjects, type ObjectStore } from './index.ts';

const stops: (() => Promise<void>)[] = [];
afterEach(async () => { for (const stop of stops.splice(0)) await stop(); });

async function start(options: S3ServerOptions): Promise<{ server: S3Server; objects: ObjectStore }> {
  const server = await startS3Server(options);
  const objects = createS3Objects({ endpoint: server.endpoint, bucket: server.bucket, credentials: { accessKeyId: 'a', secretAccessKey: 'b' }, maxAttempts: 2 });
  stops.push(async () => {
    objects.close();
    await server.stop();
  });
  return { server, objects };
}

describe('the probe', () => {
  it.each(['enforced', 'ignored', 'unsupported'] as const)('finds that conditions are %s, and leaves nothing behind', async (conditional) => {
    const { server, objects } = await start({ conditional });
    expect(await probeObjects(objects, 'x/')).toEqual({ conditionalPuts: conditional, leftover: null });
    expect([...server.objects.keys()]).toEqual([]);
    expect(server.requests.filter(({ method }) => method === 'PUT').every(({ key }) => key.startsWith('x/probe/'))).toBe(true);
  });

  it('finds that files are created once', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'treadle-probe-'));
    stops.push(() => rm(directory, { recursive: true }));
    expect(await probeObjects(createFileObjects(directory))).toEqual({ conditionalPuts: 'enforced', leftover: null });
    expect(await readdir(directory)).toEqual(['.tmp']);
  });

  it('is not misled by a lost answer to its first write', async () => {
    const { server, objects } = await start({ conditional: 'enforced' });
    server.dropAnswer(1);
    expect(await probeObjects(objects)).toMatchObject({ conditionalPuts: 'enforced' });
    expect(server.pending()).toBe(0);
  });

  it('fails where the store may not be written, read, listed or is away', async () => {
    const { server, objects } = await start({});
    server.failNext(20, 403);
    await expect(probeObjects(objects)).rejects.toMatchObject({ kind: 'refused' });
    server.failNext(0, 403);
    server.down();
    await expect(createArchive(objects).check()).rejects.toMatchObject({ kind: 'unavailable' });
  });

  it('tolerates that nothing may be removed, which a check reports', async () => {
    const { server, objects } = await start({});
    server.objects.delete = () => false;
    const report = await probeObjects(objects);
    expect(report.conditionalPuts).toBe('enforced');
    expect(server.objects.has(report.leftover ?? '')).toBe(true);
    await expect(createArchive(objects).check()).rejects.toThrow(ObjectsFailed);
  });

  it('is done once for many first writes, and not at all where the answer is given', async () => {
    const { server, objects } = await start({});
    const probed = (): number => new Set(server.requests.flatMap(({ key }) => (key.startsWith('probe/') ? [key] : []))).size;
    const capabilities = await probeObjects(objects);
    const run_id = freshRunId();
    await createArchive(objects, { capabilities }).putSegment(archivedSegment(run_id, 1, 1));
    expect(probed()).toBe(1);
    const archive = createArchive(objects);
    await Promise.all([2, 3, 4].map((seq) => archive.putSegment(archivedSegment(run_id, seq, seq))));
    expect(probed()).toBe(2);
  });

  it('stays inside its prefix', () => {
    expect(() => createArchive(createFileObjects('unused'), { prefix: '../up/' })).toThrow(ObjectsFailed);
  });
});
