/** Opens the archive that a process is configured for: a bucket where one is named, else a folder. */
import type { Archive } from '@treadle/engine';
import { createArchive } from './archive.ts';
import { createFileObjects } from './file-objects.ts';
import { gated } from './gate.ts';
import { createS3Objects } from './s3-objects.ts';

export interface ArchivePlace {
  readonly bucket: string | null;
  /** URL of an S3-compatible store; null = AWS. */
  readonly endpoint: string | null;
  readonly region: string | null;
  readonly access_key_id: string | null;
  readonly secret_access_key: string | null;
  /** Before every key of the bucket. */
  readonly prefix: string;
  /** The folder used where no bucket is named. */
  readonly dir: string;
}

/** Nothing is asked of the store before the first call. `description` names the place without secrets. */
export function openArchive(place: ArchivePlace): { readonly archive: Archive; readonly description: string } {
  if (place.bucket === null) return { archive: createArchive(createFileObjects(place.dir)), description: `folder ${place.dir}` };
  const { access_key_id, secret_access_key } = place;
  const objects = createS3Objects({
    bucket: place.bucket,
    ...(place.endpoint === null ? {} : { endpoint: place.endpoint }),
    ...(place.region === null ? {} : { region: place.region }),
    ...(access_key_id === null || secret_access_key === null ? {} : { credentials: { accessKeyId: access_key_id, secretAccessKey: secret_access_key } }),
  });
  return { archive: createArchive(gated(objects), { prefix: place.prefix }), description: `bucket ${place.bucket}${place.endpoint === null ? '' : ` at ${place.endpoint}`}` };
}
