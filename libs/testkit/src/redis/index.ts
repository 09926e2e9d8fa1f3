export { redisOfFile } from './of-file.ts';
export { startRedisCluster, type RedisCluster } from './cluster.ts';
export { startWatchedRedis, type WatchedRedis } from './sentinel.ts';
export { startRedis, type RedisServer, type RedisServerOptions } from './server.ts';
