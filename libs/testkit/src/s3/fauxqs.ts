/** An S3 server that others wrote, so that ours is not the only witness. It overlooks conditions and checks no signature. */
export interface OtherS3Server {
  readonly endpoint: string;
  readonly bucket: string;
  stop(): Promise<void>;
}

/** fauxqs in memory, in this process. It is loaded only here: nobody else should pay for it. */
export async function startOtherS3Server(): Promise<OtherS3Server> {
  const { startFauxqs } = await import('fauxqs');
  const server = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false });
  const bucket = 'treadle-test';
  server.createBucket(bucket);
  return { endpoint: `http://127.0.0.1:${server.port}`, bucket, stop: () => server.stop() };
}
