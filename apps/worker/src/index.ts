export { startWorker, UnfitRedis, type RunningWorker, type WorkerPorts, type WorkerSetup } from './worker.ts';
export { toolSources, type ToolSurroundings } from './tool-sources.ts';
