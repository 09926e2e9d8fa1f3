/**
 * Objects in an S3 bucket, written for what S3-compatible stores have in common: whole buffers as bodies, no checksum headers
 * or trailers of the SDK's own accord, `If-None-Match: *` as the one condition, path-style addresses at an endpoint.
 *
 * 1  Every call ends within `totalTimeoutMs`, its body included, with its retries; at most `maxConnections` are open.
 * 2  A retry after a lost answer is harmless: `create` then answers `exists`, and the caller compares.
 */
import { Readable } from 'node:stream';
import { DeleteObjectCommand, GetObjectCommand, ListObjectsV2Command, PutObjectCommand, S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import { assertKey } from './keys.ts';
import { ObjectsFailed, type ObjectStore } from './objects.ts';
import { asFailure, nameOf, statusOf } from './s3-failure.ts';

export interface S3Options {
  readonly bucket: string;
  /** URL of an S3-compatible store, addressed path-style. Unset: AWS. */
  readonly endpoint?: string;
  /** Default: `us-east-1` with an endpoint, else what the usual AWS settings say. */
  readonly region?: string;
  /** Unset: the usual AWS credential chain. */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
  /** Tries of one call in all, 1 to 10. Default 3. */
  readonly maxAttempts?: number;
  /** Default 3,000. */
  readonly connectTimeoutMs?: number;
  /** One try, until the headers of the answer. Default 15,000. */
  readonly requestTimeoutMs?: number;
  /** A call with its retries and bodies. Default 60,000. */
  readonly totalTimeoutMs?: number;
  /** Default 16. */
  readonly maxConnections?: number;
}

/** Nothing is sent before the first call. Throws nothing: mistakes in the options show as `ObjectsFailed` (refused) on a call. */
export function createS3Objects(options: S3Options): ObjectStore {
  const config = clientConfig(options);
  const patient = new S3Client(config);
  // A store that did not answer is not asked several times for each call, until it has answered again.
  const impatient = new S3Client({ ...config, requestHandler: patient.config.requestHandler, maxAttempts: 1 });
  let client = patient;
  const Bucket = options.bucket;
  const totalTimeoutMs = options.totalTimeoutMs ?? 60_000;

  async function call<T>(operation: string, act: (abortSignal: AbortSignal) => Promise<T>): Promise<T> {
    const signal = AbortSignal.timeout(totalTimeoutMs);
    try {
      const answer = await act(signal);
      client = patient;
      return answer;
    } catch (error) {
      const failure = signal.aborted ? new ObjectsFailed('unavailable', `${operation}: no end within ${totalTimeoutMs} ms`) : asFailure(operation, error);
      client = failure.kind === 'unavailable' ? impatient : patient;
      throw failure;
    }
  }

  return {
    capabilities: null,

    put: (Key, bytes, mode) => call(`PUT ${Key}`, async (abortSignal) => {
      assertKey(Key);
      const Body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const command = new PutObjectCommand({ Bucket, Key, Body, ...(mode === 'create' ? { IfNoneMatch: '*' } : {}) });
      try {
        await client.send(command, { abortSignal });
        return 'stored';
      } catch (error) {
        // Some stores answer 304 where 412 is meant.
        if (mode === 'create' && [412, 304].includes(statusOf(error) ?? 0)) return 'exists';
        throw error;
      }
    }),

    get: (Key, maxBytes) => call(`GET ${Key}`, async (abortSignal) => {
      assertKey(Key);
      try {
        const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }), { abortSignal });
        return await readBody(Body, maxBytes);
      } catch (error) {
        if (nameOf(error) === 'NoSuchKey') return null;
        throw error;
      }
    }),

    async *list(Prefix, afterKey) {
      let token: string | undefined;
      let last = afterKey;
      do {
        const from = token !== undefined ? { ContinuationToken: token } : afterKey === '' ? {} : { StartAfter: afterKey };
        const page = await call(`LIST ${Prefix}`, (abortSignal) => client.send(new ListObjectsV2Command({ Bucket, Prefix, ...from }), { abortSignal }));
        for (const { Key } of page.Contents ?? []) {
          // A store may ignore StartAfter: such keys are skipped, which is slow and right.
          if (Key === undefined || Key <= afterKey) continue;
          if (Key <= last) throw new ObjectsFailed('refused', `LIST ${Prefix}: keys come out of order`);
          last = Key;
          yield Key;
        }
        token = page.IsTruncated === true ? page.NextContinuationToken : undefined;
        if (page.IsTruncated === true && token === undefined) throw new ObjectsFailed('refused', `LIST ${Prefix}: a page without a way to the next`);
      } while (token !== undefined);
    },

    delete: (Key) => call(`DELETE ${Key}`, async (abortSignal) => {
      assertKey(Key);
      await client.send(new DeleteObjectCommand({ Bucket, Key }), { abortSignal }).catch(unlessMissing);
    }),

    close() {
      patient.destroy();
      impatient.destroy();
    },
  };
}

/** Some stores say that there is nothing to delete: also to the retry of a deletion whose answer was lost. */
function unlessMissing(error: unknown): void {
  if (nameOf(error) !== 'NoSuchKey') throw error;
}

function clientConfig(options: S3Options): S3ClientConfig {
  const region = options.region ?? (options.endpoint === undefined ? undefined : 'us-east-1');
  const agent = { keepAlive: true, maxSockets: options.maxConnections ?? 16 };
  return {
    ...(options.endpoint === undefined ? {} : { endpoint: options.endpoint, forcePathStyle: true }),
    ...(region === undefined ? {} : { region }),
    ...(options.credentials === undefined ? {} : { credentials: { ...options.credentials } }),
    maxAttempts: Math.min(10, Math.max(1, options.maxAttempts ?? 3)),
    retryMode: 'standard',
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: options.connectTimeoutMs ?? 3_000,
      requestTimeout: options.requestTimeoutMs ?? 15_000,
      throwOnRequestTimeout: true,
      httpAgent: agent,
      httpsAgent: agent,
      // It would warn on the console of a process that logs in its own form.
      logger: silent,
    },
  };
}

const silent = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

/** The SDK's time limit per try ends with the headers; a body that drips is ended by the call's signal. */
async function readBody(body: unknown, maxBytes: number): Promise<Uint8Array> {
  if (!(body instanceof Readable)) throw new ObjectsFailed('unavailable', 'an answer without a body');
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    // Leaving the loop destroys the stream, and its connection with it.
    if (length > maxBytes) throw new ObjectsFailed('refused', `an object of more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}
