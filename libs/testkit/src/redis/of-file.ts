/** A server for all tests of one file. */
import { afterAll, beforeAll } from 'vitest';
import { startRedis, type RedisServer, type RedisServerOptions } from './server.ts';

/** Call it at the top level of the file: before its tests `connect` makes the client that they share, behind them both go. */
export function redisOfFile(connect: (server: RedisServer) => { disconnect(): void }, options: RedisServerOptions = {}): void {
  let server: RedisServer;
  let client: { disconnect(): void };
  beforeAll(async () => {
    server = await startRedis(options);
    client = connect(server);
  });
  afterAll(async () => {
    client.disconnect();
    await server.stop();
  });
}
