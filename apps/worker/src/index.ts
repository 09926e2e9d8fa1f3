export { startWorker, UnfitRedis, type RunningWorker, type WorkerPorts, type WorkerSetup } from './worker.ts';
