export { createArchive, type ArchiveOptions } from './archive.ts';
export { createFileObjects } from './file-objects.ts';
export { ObjectsFailed, type Capabilities, type ConditionalPuts, type FailureKind, type ObjectStore, type PutMode } from './objects.ts';
export { probeObjects, type ProbeReport } from './probe.ts';
export { maxObjectBytes } from './put.ts';
export { createS3Objects, type S3Options } from './s3-objects.ts';
export { maxSegmentBytes } from './segment.ts';
export { openArchive, type ArchivePlace } from './open.ts';
