/**
 * Creates the archive's bucket where it is not there yet: Treadle itself never does. Told by the `S3_*` variables, as any process of
 * Treadle; waits a minute for a store that has just been started. Safe to run again.
 */
import { CreateBucketCommand, HeadBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { readEnvironment } from '@treadle/config';

const waitMs = 60_000;

const outcome = readEnvironment(process.env);
if (outcome.type === 'invalid') fail(outcome.problems.map((each) => `${each.name}: ${each.problem}`).join('\n'), 2);
const { s3Bucket: Bucket, s3Endpoint: endpoint, s3Region, s3AccessKeyId: accessKeyId, s3SecretAccessKey: secretAccessKey } = outcome.settings;
if (Bucket === null) fail('S3_BUCKET: expected to be set', 2);

const client = new S3Client({
  ...(endpoint === null ? {} : { endpoint, forcePathStyle: true }), region: s3Region ?? 'us-east-1',
  ...(accessKeyId === null || secretAccessKey === null ? {} : { credentials: { accessKeyId, secretAccessKey } }),
});

const endMs = Date.now() + waitMs;
for (;;) {
  try {
    process.stdout.write(`bucket ${Bucket} ${await ensure(Bucket)}\n`);
    break;
  } catch (error) {
    const status = (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode;
    // A key that is refused will be refused again; anything else may be a store that is starting.
    if (status === 401 || status === 403 || Date.now() > endMs) fail(`bucket ${Bucket}: ${error instanceof Error ? error.message : String(error)}`, 3);
    await new Promise((resolve) => { setTimeout(resolve, 1000); });
  }
}

async function ensure(name: string): Promise<'is there' | 'created'> {
  try {
    await client.send(new HeadBucketCommand({ Bucket: name }));
    return 'is there';
  } catch (error) {
    if ((error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode !== 404) throw error;
  }
  await client.send(new CreateBucketCommand({ Bucket: name }));
  return 'created';
}

function fail(message: string, exitCode: number): never {
  process.stderr.write(`${message}\n`);
  process.exit(exitCode);
}
