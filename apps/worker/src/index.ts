export { startWorker, UnfitRedis, type RunningWorker, type WorkerSetup } from './worker.ts';
