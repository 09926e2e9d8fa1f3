import { ArchiveConflict } from '@treadle/engine';
import { archivedEvents, archivedSegment, freshRunId, startS3Server, type S3Server, type S3ServerOptions } from '@treadle/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { createArchive, createS3Objects, ObjectsFailed, type ObjectStore, type S3Options } from './index.ts';
import { dayOf, segmentKey } from './keys.ts';
import { encodeSegment } from './segment.ts';

const open: { objects: ObjectStore; server: S3Server }[] = [];

afterEach(async () => {
  for (const { objects, server } of open.splice(0)) {
    objects.close();
    await server.stop();
  }
});

async function start(options: S3ServerOptions = {}, client: Partial<S3Options> = {}) {
  const server = await startS3Server(options);
  const objects = createS3Objects({
    endpoint: server.endpoint, bucket: server.bucket, credentials: { accessKeyId: 'AKIDOFTHISTEST', secretAccessKey: 'the-secret-of-this-test' }, ...client,
  });
  open.push({ objects, server });
  return { server, objects, archive: createArchive(objects) };
}

/** Puts objects straight into the server, as an archiver of another day did. */
function store(server: S3Server, run_id: string, ranges: readonly (readonly [number, number])[]): void {
  for (const [first, last] of ranges) {
    const segment = archivedSegment(run_id, first, last);
    server.objects.set(segmentKey('', segment), encodeSegment(segment));
  }
}

const conditions = ['enforced', 'ignored', 'unsupported'] as const;

describe.each(conditions)('writing where conditions are %s', (conditional) => {
  it('is not hurt by a lost answer: the retry finds its own bytes', async () => {
    const { server, archive } = await start({ conditional });
    const run_id = freshRunId();
    await archive.check();
    await archive.putSegment(archivedSegment(run_id, 1, 1));
    server.dropAnswer(1);
    await archive.putSegment(archivedSegment(run_id, 2, 3));
    expect(server.pending()).toBe(0);
    expect(await archive.events(run_id, 0, 10)).toEqual(archivedEvents(run_id, 1, 3));
  });

  it('says unavailable when every answer is lost, and the same range succeeds later', async () => {
    const { server, archive } = await start({ conditional }, { maxAttempts: 2 });
    const run_id = freshRunId();
    await archive.putSegment(archivedSegment(run_id, 1, 1));
    server.dropAnswer(2);
    await expect(archive.putSegment(archivedSegment(run_id, 2, 3))).rejects.toMatchObject({ name: 'ObjectsFailed', kind: 'unavailable' });
    await archive.putSegment(archivedSegment(run_id, 2, 3));
    expect(await archive.events(run_id, 1, 10)).toEqual(archivedEvents(run_id, 2, 3));
  });

  it('never overwrites the bytes of another history', async () => {
    const { server, archive } = await start({ conditional });
    const run_id = freshRunId();
    const theirs = encodeSegment(archivedSegment(run_id, 1, 2, 'theirs'));
    const key = segmentKey('', { run_id, first_seq: 1, last_seq: 2 });
    server.objects.set(key, theirs);
    await expect(archive.putSegment(archivedSegment(run_id, 1, 2))).rejects.toThrow(ArchiveConflict);
    expect(server.objects.get(key)).toEqual(theirs);
  });

  it('begins to write when the store, away at first, has come back', async () => {
    const { server, archive } = await start({ conditional }, { maxAttempts: 1 });
    const run_id = freshRunId();
    server.down();
    await expect(archive.putSegment(archivedSegment(run_id, 1, 2))).rejects.toMatchObject({ kind: 'unavailable' });
    server.up();
    await archive.putSegment(archivedSegment(run_id, 1, 2));
    expect(await archive.events(run_id, 0, 10)).toEqual(archivedEvents(run_id, 1, 2));
  });

  it('rides over a store that is slowed down for a moment', async () => {
    const { server, archive } = await start({ conditional });
    const run_id = freshRunId();
    server.failNext(1, 503);
    await archive.putSegment(archivedSegment(run_id, 1, 2));
    expect(server.pending()).toBe(0);
    expect(await archive.events(run_id, 0, 10)).toEqual(archivedEvents(run_id, 1, 2));
  });
});

describe('writing', () => {
  it('lets one of many different histories win where conditions are enforced', async () => {
    const { archive } = await start();
    const run_id = freshRunId();
    const writers = await Promise.allSettled(Array.from({ length: 10 }, (_, n) => archive.putSegment(archivedSegment(run_id, 1, 2, `history ${n}`))));
    const winners = writers.flatMap((writer, n) => (writer.status === 'fulfilled' ? [n] : []));
    expect(winners).toHaveLength(1);
    expect(writers.filter((writer) => writer.status === 'rejected' && writer.reason instanceof ArchiveConflict)).toHaveLength(9);
    expect(await archive.events(run_id, 0, 10)).toEqual(archivedEvents(run_id, 1, 2, `history ${winners[0]}`));
  });

  it('does not answer for bytes that read back as others', async () => {
    const { server, archive } = await start();
    const run_id = freshRunId();
    await archive.putSegment(archivedSegment(run_id, 3, 4));
    server.objects.set = function corrupting(key, bytes) {
      return Map.prototype.set.call(this, key, Buffer.from(bytes).fill(0, 3, 4)) as typeof server.objects;
    };
    await expect(archive.putSegment(archivedSegment(run_id, 1, 2))).rejects.toThrow(ArchiveConflict);
    await expect(archive.putRun({ run_id, tenant: 't', document: '{"a":1}' })).rejects.toThrow(ObjectsFailed);
    await expect(archive.putBlob(run_id, Buffer.from('blob'))).rejects.toThrow(ObjectsFailed);
  });

  it('mends a damaged blob, and does not hand one out', async () => {
    const { server, archive } = await start();
    const run_id = freshRunId();
    const sha256 = await archive.putBlob(run_id, Buffer.from('whole'));
    const key = `runs/${run_id}/blobs/${sha256}`;
    server.objects.set(key, Buffer.from('whol'));
    await expect(archive.getBlob(run_id, sha256)).rejects.toMatchObject({ kind: 'refused' });
    await archive.putBlob(run_id, Buffer.from('whole'));
    expect(Buffer.from(await archive.getBlob(run_id, sha256) ?? []).toString()).toBe('whole');
  });

  it('lays objects out as the contract says', async () => {
    const { server, objects } = await start();
    const archive = createArchive(objects, { prefix: 'x/' });
    const run_id = freshRunId();
    await archive.putSegment(archivedSegment(run_id, 1, 3));
    await archive.putRun({ run_id, tenant: 'acme', document: '{}' });
    const sha256 = await archive.putBlob(run_id, Buffer.from('b'));
    expect([...server.objects.keys()].sort()).toEqual([
      `x/index/acme/${dayOf(run_id)}/${run_id}`, `x/runs/${run_id}/blobs/${sha256}`, `x/runs/${run_id}/events/000000000001-000000000003.jsonl`, `x/runs/${run_id}/run.json`,
    ]);
    expect(Buffer.from(server.objects.get(`x/runs/${run_id}/events/000000000001-000000000003.jsonl`)!).toString())
      .toBe(`${archivedEvents(run_id, 1, 3).join('\n')}\n`);
  });
});

describe('reading', () => {
  it('finds its way through 1,200 segments over the pages of the listing', async () => {
    const { server, archive } = await start();
    const run_id = freshRunId();
    store(server, run_id, Array.from({ length: 1_200 }, (_, index) => [index * 2 + 1, index * 2 + 2] as const));
    const all = archivedEvents(run_id, 1, 2_400);
    expect(await archive.events(run_id, 0, 5_000)).toEqual(all);
    expect(server.requests.filter(({ query }) => query.includes('continuation-token'))).toHaveLength(1);
    expect(await archive.events(run_id, 2_399, 10)).toEqual(all.slice(2_399));
  });

  it('lists and reads only what a page of a long run needs', async () => {
    const { server, archive } = await start();
    const run_id = freshRunId();
    store(server, run_id, Array.from({ length: 1_200 }, (_, index) => [index * 10 + 1, index * 10 + 10] as const));
    expect(await archive.events(run_id, 11_005, 20)).toEqual(archivedEvents(run_id, 11_006, 11_025));
    const lists = server.requests.filter(({ key }) => key === '');
    expect(lists).toHaveLength(1);
    expect(decodeURIComponent(lists[0]!.query)).toContain(`start-after=runs/${run_id}/events/000000010005`);
    expect(server.requests.length - lists.length).toBe(3);
    expect(await archive.events(run_id, 0, 20)).toEqual(archivedEvents(run_id, 1, 20));
    expect(server.requests.filter(({ key }) => key === '')).toHaveLength(2);
  });

  it('reads on where a store overlooks at which key the listing should start', async () => {
    const { server, archive } = await start({ ignoreStartAfter: true });
    const run_id = freshRunId();
    store(server, run_id, Array.from({ length: 1_200 }, (_, index) => [index * 10 + 1, index * 10 + 10] as const));
    expect(await archive.events(run_id, 11_005, 20)).toEqual(archivedEvents(run_id, 11_006, 11_025));
  });

  it('finds a merged segment that began long before', async () => {
    const { server, archive } = await start();
    const run_id = freshRunId();
    store(server, run_id, [[1, 3_000], [3_001, 3_010]]);
    expect(await archive.events(run_id, 2_990, 15)).toEqual(archivedEvents(run_id, 2_991, 3_005));
  });

  it('goes on when a merge removes the parts between the listing and the reading', async () => {
    const { server, archive } = await start();
    const run_id = freshRunId();
    store(server, run_id, [[1, 2], [3, 4], [5, 6]]);
    const get = server.objects.get.bind(server.objects);
    server.objects.get = (key) => {
      if (key.endsWith('000000000001-000000000002.jsonl')) {
        store(server, run_id, [[1, 6]]);
        for (const old of [...server.objects.keys()]) if (!old.endsWith('000000000001-000000000006.jsonl')) server.objects.delete(old);
      }
      return get(key);
    };
    expect(await archive.events(run_id, 0, 10)).toEqual(archivedEvents(run_id, 1, 6));
  });

  it('leaves strangers in the folder alone', async () => {
    const { server, archive } = await start();
    const run_id = freshRunId();
    store(server, run_id, [[1, 2]]);
    for (const name of ['000000000003-000000000004.jsonl.bak', 'notes.txt', '3-4.jsonl']) server.objects.set(`runs/${run_id}/events/${name}`, Buffer.from('?'));
    expect(await archive.events(run_id, 0, 10)).toEqual(archivedEvents(run_id, 1, 2));
  });

  it('says that a segment is damaged instead of answering part of it', async () => {
    const { server, archive } = await start();
    const run_id = freshRunId();
    store(server, run_id, [[1, 3]]);
    const key = segmentKey('', { run_id, first_seq: 1, last_seq: 3 });
    const whole = Buffer.from(server.objects.get(key)!);
    for (const damaged of [whole.subarray(0, -1), whole.subarray(0, whole.indexOf('\n') + 1), Buffer.alloc(0), Buffer.concat([Buffer.from('x\n'), whole])]) {
      server.objects.set(key, damaged);
      await expect(archive.events(run_id, 0, 10)).rejects.toThrow(`${key} is damaged`);
    }
  });
});
