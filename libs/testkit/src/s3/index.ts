export { archiveConformance, archivedEvents, archivedSegment, freshRunId, type ArchiveUnderTest } from '../conformance/archive.ts';
export { createMemoryArchive, type MemoryArchive } from '../doubles/archive.ts';
export { startOtherS3Server, type OtherS3Server } from './fauxqs.ts';
export { startS3Server, type S3Request, type S3Server, type S3ServerOptions } from './server.ts';
export { isCephInstalled, startCeph, type CephServer } from './ceph.ts';
