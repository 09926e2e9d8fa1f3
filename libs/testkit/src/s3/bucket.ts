/** The memory behind the test server: one bucket's objects and what an S3 store answers about them. No network here. */
import { createHash } from 'node:crypto';

export interface S3Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string;
}

export function errorReply(status: number, code: string, extra = ''): S3Reply {
  return {
    status, headers: { 'content-type': 'application/xml' },
    body: `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${code} by the test server</Message>${extra}</Error>`,
  };
}

export function getObject(objects: ReadonlyMap<string, Uint8Array>, key: string): S3Reply {
  const bytes = objects.get(key);
  if (bytes === undefined) return errorReply(404, 'NoSuchKey');
  return { status: 200, headers: { etag: etagOf(bytes), 'last-modified': new Date().toUTCString() }, body: bytes };
}

export function putObject(objects: Map<string, Uint8Array>, object: { readonly key: string; readonly bytes: Uint8Array; readonly onlyNew: boolean }): S3Reply {
  if (object.onlyNew && objects.has(object.key)) return errorReply(412, 'PreconditionFailed', '<Condition>If-None-Match</Condition>');
  objects.set(object.key, object.bytes);
  return { status: 200, headers: { etag: etagOf(object.bytes) } };
}

/** ListObjectsV2. The token of the next page is the last key of this one in base64: opaque to clients, as it should be. */
export function listObjects(objects: ReadonlyMap<string, Uint8Array>, bucket: string, query: URLSearchParams): S3Reply {
  const prefix = query.get('prefix') ?? '';
  const token = query.get('continuation-token');
  const after = token === null ? (query.get('start-after') ?? '') : Buffer.from(token, 'base64url').toString();
  const maxKeys = Math.min(1000, Number(query.get('max-keys') ?? 1000));
  const keys = [...objects.keys()].filter((key) => key.startsWith(prefix) && key > after).sort((a, b) => (a < b ? -1 : 1));
  const page = keys.slice(0, maxKeys);
  const more = keys.length > page.length;
  const next = more ? `<NextContinuationToken>${Buffer.from(page.at(-1) ?? '').toString('base64url')}</NextContinuationToken>` : '';
  const contents = page.map((key) => {
    const bytes = objects.get(key) ?? new Uint8Array();
    return `<Contents><Key>${xml(key)}</Key><Size>${bytes.length}</Size><ETag>${xml(etagOf(bytes))}</ETag></Contents>`;
  });
  return {
    status: 200, headers: { 'content-type': 'application/xml' },
    body: `<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>${xml(bucket)}</Name>`
      + `<Prefix>${xml(prefix)}</Prefix><KeyCount>${page.length}</KeyCount><MaxKeys>${maxKeys}</MaxKeys><IsTruncated>${more}</IsTruncated>${next}${contents.join('')}</ListBucketResult>`,
  };
}

function etagOf(bytes: Uint8Array): string {
  return `"${createHash('md5').update(bytes).digest('hex')}"`;
}

function xml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
