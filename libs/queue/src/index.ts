export { boardQueues, type BoardQueues } from './board-queues.ts';
export { consumeJobs, type ConsumerDeps, type ConsumerOptions } from './consume-jobs.ts';
export { oldestWaiting, queueDepths, type QueueDepth } from './queue-depths.ts';
export { turnJobs } from './turn-jobs.ts';
