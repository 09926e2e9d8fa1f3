import { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { createServer, type Server } from 'node:net';
import type { AddressInfo } from 'node:net';
import { isSent, StoreUnavailable, storeUnavailable } from './unavailable.ts';

const listening = (server: Server) => new Promise<number>((resolve) => {
  server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
});

/** As the run store connects for the API. */
function connect(port: number, commandTimeout = 200): Redis {
  const redis = new Redis(port, '127.0.0.1', {
    maxRetriesPerRequest: 0, enableOfflineQueue: false, commandTimeout, autoResendUnfulfilledCommands: false, enableReadyCheck: false,
    retryStrategy: () => null, disableClientInfo: true,
  });
  redis.on('error', () => undefined);
  return redis;
}

const failure = (promise: Promise<unknown>) => promise.then(() => { throw new Error('must fail'); }, (error: unknown) => error);

describe('what the Redis client really throws', () => {
  test('with nothing listening: not sent', async () => {
    const server = createServer();
    const port = await listening(server);
    await new Promise((resolve) => server.close(resolve));
    const redis = connect(port);
    const error = await failure(redis.get('x'));
    expect([storeUnavailable(error) instanceof StoreUnavailable, isSent(error)]).toEqual([true, false]);
    redis.disconnect();
  });

  test('with a server that is silent, or that hangs up on a command: sent', async () => {
    let hangUp = false;
    const server = createServer((socket) => {
      socket.on('error', () => undefined).on('data', (sent: Buffer) => {
        if (sent.toString().includes('hello')) socket.write('%1\r\n$5\r\nproto\r\n:3\r\n');
        else if (hangUp) socket.destroy();
      });
    });
    const port = await listening(server);
    for (const how of [false, true]) {
      hangUp = how;
      const redis = connect(port);
      await new Promise((resolve) => { redis.once('ready', resolve); });
      const error = await failure(redis.get('x'));
      expect([how, storeUnavailable(error)?.sent]).toEqual([how, true]);
      redis.disconnect();
    }
    server.close();
  });
});

test.each([
  ["Stream isn't writeable and enableOfflineQueue options is false", false],
  ["Cluster isn't ready and enableOfflineQueue options is false", false],
  ['connect ECONNREFUSED 127.0.0.1:6379', false],
  ['All sentinels are unreachable. Retrying from scratch after 50ms.', false],
  ['CLUSTERDOWN Hash slot not served', false],
  ['Too many Cluster redirections. Last error: ReplyError: CLUSTERDOWN Hash slot not served', true],
  ['Command timed out', true],
  ['Connection is closed.', true],
  ['Reached the max retries per request limit (which is 0). Refer to "maxRetriesPerRequest" option for details.', true],
  ['read ECONNRESET', true],
  ["OOM command not allowed when used memory > 'maxmemory'. script: abc, on @user_script:3.", false],
  ["READONLY You can't write against a read only replica.", false],
  ['LOADING Redis is loading the dataset in memory', false],
  ['MISCONF Redis is configured to save RDB snapshots', false],
])('"%s" means that the store is away; sent: %s', (message, sent) => {
  expect(storeUnavailable(new Error(message))?.sent).toBe(sent);
});

test('other errors are faults of ours, and count as sent', () => {
  for (const error of [new TypeError('x is not a function'), new Error('ERR wrong number of arguments'), 'text', null]) {
    expect([storeUnavailable(error), isSent(error)]).toEqual([null, true]);
  }
});
