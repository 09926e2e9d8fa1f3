export { createMemoryScheduleStore } from './doubles/schedule-store.ts';
export { newScheduleId, scheduleStoreConformance, someDefinition, type ScheduleStoreUnderTest } from './conformance/schedule-store.ts';
export { createMemoryCanaryStore } from './doubles/canary-store.ts';
export { alwaysThere } from './doubles/models.ts';
export { createMemoryRunStore, type MemoryJob, type MemoryRunStore, type Protections } from './doubles/run-store.ts';
export { createMemoryFleet, type MemoryFleet, type MemoryFleetOptions } from './doubles/model-fleet.ts';
export { agentLimits, testModel, testSpec, testTool } from './builders/agent.ts';
export {
  cut, raw, refusal, reply, signatureOf, sse, stall, startModelServer, status, strictValidator, text, tool, toolTurns, type ChatBody, type ChatMessage, type CutManner,
  type CutPoint, type Delivery, type DialectName, type ModelScript, type ModelServer, type ModelServerOptions, type RecordedRequest, type RequestEnd,
  type ScriptedCall, type ScriptedMessage, type ScriptedReply, type ServedModel, type ToolTurns, type WholeReply,
} from './model-server/index.ts';
export {
  ledgerTools, readLedger, startHttpMcpServer, testMcpServer, writeLedger, type LedgerLine, type LedgerPhase, type LedgerTool, type LedgerToolContext, type HttpMcpOptions, type HttpMcpServer,
  type TestMcpOptions, type TestMcpServer,
} from './tools/index.ts';
export {
  archiveConformance, archivedEvents, archivedSegment, createMemoryArchive, freshRunId, isCephInstalled, startCeph, startOtherS3Server, startS3Server,
  type ArchiveUnderTest, type CephServer, type MemoryArchive, type OtherS3Server, type S3Request, type S3Server, type S3ServerOptions,
} from './s3/index.ts';
export { canaryStoreConformance } from './conformance/canary-store.ts';
export { createMemoryKeyDirectory } from './doubles/key-directory.ts';
export { keyDirectoryConformance } from './conformance/key-directory.ts';
export { createMemoryWorkerRegistry, type MemoryWorkerRegistry } from './doubles/worker-registry.ts';
export { workerRegistryConformance, type WorkerRegistryUnderTest } from './conformance/worker-registry.ts';
export { modelFleetConformance, runStoreConformance, type FleetUnderTest, type JobUnderTest, type RunStoreUnderTest } from './conformance/index.ts';
export { redisOfFile, startRedis, startRedisCluster, startWatchedRedis, type RedisCluster, type RedisServer, type RedisServerOptions, type WatchedRedis } from './redis/index.ts';
export { apiPoints, crashingDirectory, crashingPorts, crashPoints, openArmed, type Armed, type Arming, type CrashingPorts, type CrashPoint } from './crash/index.ts';
export { freePort } from './free-port.ts';
export { startTcpProxy, type TcpProxy } from './proxy/index.ts';
export { startOtlpReceiver, type OtlpReceiver, type ReceivedSpan } from './otlp/index.ts';
