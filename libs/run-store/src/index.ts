export { createEventFeed } from './event-feed.ts';
export { describeRedis, inspectRedis, type RedisInspection, type RedisProblem } from './inspect-redis.ts';
export type { JobFragment } from './job-fragment.ts';
export { createRedisClock, type RedisClock } from './redis-clock.ts';
export { connectRedis, whenReady, type ConnectionRole, type RedisClient } from './redis-connection.ts';
export { parseRedisUrl, RedisUrlNotSupported } from './redis-url.ts';
export { readinessProblems } from './readiness.ts';
export { createRunStore, type RunStoreOptions } from './run-store.ts';
export { createScheduleStore, type ScheduleStoreOptions } from './schedule-store.ts';
