/** A failover whose announcement comes while the new master is being looked for: the connection finds it all the same. */
import { createServer, type Server, type Socket } from 'node:net';
import { startRedis, type RedisServer } from '@treadle/testkit';
import { afterEach, expect, test } from 'vitest';
import { connectRedis, type RedisClient } from './index.ts';

const servers: RedisServer[] = [];
let sentinel: Server | null = null;
let redis: RedisClient | null = null;
afterEach(async () => {
  redis?.disconnect();
  sentinel?.close();
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});

/** The commands of a chunk, as the client writes them: arrays of strings. */
function commandsIn(chunk: string): string[][] {
  return chunk.split(/(?=^\*\d+\r\n)/m).map((text) => [...text.matchAll(/\$\d+\r\n([^\r]*)\r\n/g)].map(([, word]) => word!));
}

/** Stands in for a Sentinel. When it is asked again it says to all who listen that the master has changed, and answers then. */
async function startSentinel(masters: readonly [number, number]): Promise<number> {
  const listening = new Set<Socket>();
  let asked = 0;
  const bulk = (...words: readonly string[]): string => `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`;
  sentinel = createServer((socket) => {
    socket.on('error', () => undefined).on('close', () => listening.delete(socket));
    socket.on('data', (chunk) => {
      for (const [name = '', ...args] of commandsIn(chunk.toString())) {
        if (name.toLowerCase() === 'hello') socket.write('-ERR unknown command HELLO\r\n');
        else if (name.toLowerCase() === 'subscribe') {
          listening.add(socket);
          socket.write(`*3\r\n$9\r\nsubscribe\r\n$${args[0]!.length}\r\n${args[0]!}\r\n:1\r\n`);
        } else if (args[0] === 'get-master-addr-by-name') {
          const port = masters[asked++ === 0 ? 0 : 1];
          if (asked > 1) for (const each of listening) each.write(bulk('message', '+switch-master', 'm'));
          setTimeout(() => { socket.write(bulk('127.0.0.1', String(port))); }, 100);
        } else socket.write(args[0] === 'sentinels' ? '*0\r\n' : '+OK\r\n');
      }
    });
  });
  await new Promise<void>((resolve) => { sentinel!.listen(0, '127.0.0.1', resolve); });
  return (sentinel.address() as { port: number }).port;
}

test('a connection is not ended by what is heard of the failover that it is already on the way to', async () => {
  servers.push(await startRedis(), await startRedis());
  const [old, next] = servers as [RedisServer, RedisServer];
  const port = await startSentinel([old.port, next.port]);
  redis = connectRedis(`redis-sentinel://127.0.0.1:${port}/m`, { role: 'command' });
  await redis.set('where', 'old');
  // It has begun to listen for failovers.
  await new Promise((resolve) => { setTimeout(resolve, 300); });
  await old.kill();
  expect(await redis.get('where').catch(String)).toBeNull();
  expect(await redis.set('where', 'next')).toBe('OK');
});
