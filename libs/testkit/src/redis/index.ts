export { startRedis, type RedisServer, type RedisServerOptions } from './server.ts';
