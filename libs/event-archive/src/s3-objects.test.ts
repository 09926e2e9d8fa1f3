import { Readable } from 'node:stream';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { startS3Server, type S3Server } from '@treadle/testkit';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createS3Objects, ObjectsFailed, type ObjectStore, type S3Options } from './index.ts';

const credentials = { accessKeyId: 'AKIDOFTHISTEST', secretAccessKey: 'the-secret-of-this-test' };
let server: S3Server;
const open: ObjectStore[] = [];

beforeAll(async () => { server = await startS3Server(); });
afterEach(() => {
  for (const objects of open.splice(0)) objects.close();
  server.up();
  server.failNext(0, 500);
  server.hang(0);
});
afterAll(() => server.stop());

function connect(options: Partial<S3Options> = {}): ObjectStore {
  const objects = createS3Objects({ endpoint: server.endpoint, bucket: server.bucket, credentials, maxAttempts: 1, ...options });
  open.push(objects);
  return objects;
}

async function keysIn(objects: ObjectStore, prefix: string, afterKey: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const key of objects.list(prefix, afterKey)) keys.push(key);
  return keys;
}

async function failureOf(promise: Promise<unknown>): Promise<ObjectsFailed> {
  const error: unknown = await promise.then(() => null, (reason: unknown) => reason);
  if (!(error instanceof ObjectsFailed)) throw new Error('no ObjectsFailed', { cause: error });
  return error;
}

describe('S3 objects', () => {
  it('are deleted once and for all, also at a store that says that there is nothing, and after an answer that was lost', async () => {
    const strict = await startS3Server({ missesDeleted: true });
    const objects = connect({ endpoint: strict.endpoint, maxAttempts: 3 });
    await objects.put('a', Buffer.from('x'), 'create');
    strict.goWrong(1, ['reset']);
    const deleting = objects.delete('a');
    await expect.poll(() => strict.objects.size).toBe(0);
    strict.goWrong(null);
    await deleting;
    await objects.delete('never there');
    await strict.stop();
  });

  it('send whole bodies without checksums of the SDK’s own accord', async () => {
    await connect().put('a', Buffer.from('x'), 'create');
    const put = server.requests.findLast(({ method }) => method === 'PUT')!;
    expect(put.headers['if-none-match']).toBe('*');
    expect(put.headers['content-length']).toBe('1');
    expect(Object.keys(put.headers).filter((header) => /checksum|trailer|transfer-encoding/.test(header))).toEqual([]);
  });

  it('would be refused by some stores, were the SDK left to its own ways', async () => {
    for (const [options, status] of [[{ refuseChecksums: true }, 501], [{ refuseChunked: true }, 400]] as const) {
      const strict = await startS3Server(options);
      const config = { endpoint: strict.endpoint, region: 'us-east-1', forcePathStyle: true, credentials, maxAttempts: 1 };
      const plain = new S3Client(config);
      const Body = status === 400 ? Readable.from([Buffer.from('x')]) : Buffer.from('x');
      await expect(plain.send(new PutObjectCommand({ Bucket: strict.bucket, Key: 'a', Body, ContentLength: 1 }))).rejects.toMatchObject({ $metadata: { httpStatusCode: status } });
      plain.destroy();
      await connect({ endpoint: strict.endpoint }).put('a', Buffer.from('x'), 'create');
      expect([...strict.objects.keys()]).toEqual(['a']);
      await strict.stop();
    }
  });

  it('ask once a call, not three times, while the store has not answered', async () => {
    const objects = connect({ maxAttempts: 3 });
    const asked = async (): Promise<number> => {
      const before = server.requests.length;
      await objects.get('a', 10).catch(() => undefined);
      return server.requests.length - before;
    };
    server.answerOnly(503);
    expect([await asked(), await asked(), await asked()]).toEqual([3, 1, 1]);
    server.answerOnly(null);
    expect(await asked()).toBe(1);
    server.answerOnly(500);
    expect([await asked(), await asked()]).toEqual([3, 1]);
    server.answerOnly(null);
  });

  it.each([[503, 'unavailable'], [500, 'unavailable'], [429, 'unavailable'], [409, 'unavailable'], [403, 'refused'], [404, 'refused'], [400, 'refused'], [501, 'refused']] as const)(
    'tell %i as %s, and nothing that the server said', async (status, kind) => {
      const objects = connect();
      for (const call of [() => objects.get('a', 10), () => objects.put('b', Buffer.from('x'), 'create'), () => objects.delete('a'), () => keysIn(objects, '', '')]) {
        server.failNext(1, status);
        const failure = await failureOf(call());
        expect(failure.kind).toBe(kind);
        expect(failure.message).toContain(String(status));
        const shown = JSON.stringify([failure.message, failure.stack, failure.cause, Object.entries(failure)]);
        expect(shown).not.toContain(credentials.accessKeyId);
        expect(shown).not.toContain(credentials.secretAccessKey);
        expect(shown).not.toContain('test server');
      }
    });

  it('are unavailable when nobody answers or connections are reset', async () => {
    server.down();
    expect((await failureOf(connect().get('a', 10))).kind).toBe('unavailable');
    expect((await failureOf(connect({ endpoint: 'http://127.0.0.1:1' }).get('a', 10))).message).toBe('archive store unavailable: GET a: ECONNREFUSED');
  });

  it('give up on a server that never answers, per try and in all', async () => {
    const startedAt = performance.now();
    server.hang(1);
    expect((await failureOf(connect({ requestTimeoutMs: 200 }).get('a', 10))).kind).toBe('unavailable');
    server.hang(1);
    expect((await failureOf(connect({ totalTimeoutMs: 200 }).get('a', 10))).message).toContain('no end within 200 ms');
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });

  it('do not take half a body for an object', async () => {
    const objects = connect();
    await objects.put('long', Buffer.alloc(10_000, 1), 'replace');
    server.cutBody(1);
    expect((await failureOf(objects.get('long', 20_000))).kind).toBe('unavailable');
    expect(server.pending()).toBe(0);
    expect(await objects.get('long', 20_000)).toHaveLength(10_000);
  });

  it('give up on a body that stops coming', async () => {
    const objects = connect({ totalTimeoutMs: 300 });
    await objects.put('stalled', Buffer.alloc(10_000, 1), 'replace');
    server.stallBody(1);
    expect((await failureOf(objects.get('stalled', 20_000))).message).toContain('no end within 300 ms');
    expect(server.pending()).toBe(0);
  });

  it('refuse an object that is larger than the caller takes', async () => {
    const objects = connect();
    await objects.put('large', Buffer.alloc(200_000), 'replace');
    expect((await failureOf(objects.get('large', 1_000))).kind).toBe('refused');
  });

  it('refuse keys that are no plain paths before anything is sent', async () => {
    const objects = connect();
    const before = server.requests.length;
    for (const key of ['', '/a', 'a//b', 'a/../b', '.', 'a\\b', 'a\nb', 'x'.repeat(513), 'a\ud800']) {
      expect((await failureOf(objects.put(key, Buffer.from('x'), 'create'))).kind).toBe('refused');
      expect((await failureOf(objects.get(key, 10))).kind).toBe('refused');
    }
    expect(server.requests.length).toBe(before);
  });

  it('keep to their connections, however many calls there are', async () => {
    const objects = connect({ maxConnections: 3 });
    await Promise.all(Array.from({ length: 60 }, (_, n) => objects.put(`many/${n}`, Buffer.from(String(n)), 'create')));
    expect(await keysIn(objects, 'many/', 'many/5')).toEqual(Array.from({ length: 60 }, (_, n) => `many/${n}`).sort().filter((key) => key > 'many/5'));
    expect(server.connections()).toBeLessThanOrEqual(3);
  });
});
