export { createEventFeed } from './event-feed.ts';
export { inspectRedis, type RedisInspection, type RedisProblem } from './inspect-redis.ts';
export type { JobFragment } from './job-fragment.ts';
export { createRedisClock, type RedisClock } from './redis-clock.ts';
export { connectRedis, RedisUrlNotSupported, type ConnectionRole } from './redis-connection.ts';
export { createRunStore, type RunStoreOptions } from './run-store.ts';
