/**
 * A real master with one replica, watched by three Sentinels, for tests.
 *
 * Owns its five servers; they end as each of them would (server.ts).
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { allOrNone, says } from './cluster.ts';
import { startRedis, startServer, type RedisServer } from './server.ts';

export interface WatchedRedis {
  /** `redis-sentinel://…` with all three Sentinels. */
  readonly url: string;
  readonly master: RedisServer;
  readonly replica: RedisServer;
  /** Resolves when the replica has become the master, and every Sentinel says so, after the first master has died or hangs. */
  failedOver(): Promise<void>;
  stop(): Promise<void>;
}

const name = 'watched';

/** Resolves when the replica is in step and the Sentinels know each other. `downAfterMs`: when a silent master counts as gone. */
export async function startWatchedRedis({ downAfterMs = 1000 }: { readonly downAfterMs?: number } = {}): Promise<WatchedRedis> {
  const servers: RedisServer[] = [];
  const stop = async (): Promise<void> => { await Promise.all(servers.map((server) => server.stop())); };
  try {
    // By default a master waits for 5 s, for more replicas than the first.
    const master = await startRedis({ args: ['--repl-diskless-sync-delay', '0'] });
    servers.push(master);
    const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(master.port)] });
    servers.push(replica);
    // A Sentinel that finds no replica at first asks again only after 10 s.
    await says(master.port, 'INFO replication', /state=online/);
    const sentinels = await allOrNone([1, 2, 3].map(() => startServer((dir, port) => [configured(dir, { port, master: master.port, downAfterMs }), '--sentinel'])));
    servers.push(...sentinels);
    for (const { port } of sentinels) await says(port, 'INFO sentinel', /status=ok,[^]*slaves=1,sentinels=3/);
    return {
      url: `redis-sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${name}`, master, replica, stop,
      failedOver: async () => {
        await says(replica.port, 'ROLE', /master/);
        for (const { port } of sentinels) await says(port, `SENTINEL get-master-addr-by-name ${name}`, new RegExp(`\\$\\d+\r\n${replica.port}\r\n`));
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Sentinels write what they learn into their file. */
function configured(dir: string, { port, master, downAfterMs }: { readonly port: number; readonly master: number; readonly downAfterMs: number }): string {
  const path = join(dir, `sentinel-${port}.conf`);
  writeFileSync(path, [
    `port ${port}`, 'bind 127.0.0.1', `dir ${dir}`, `sentinel monitor ${name} 127.0.0.1 ${master} 2`, `sentinel down-after-milliseconds ${name} ${downAfterMs}`,
    `sentinel failover-timeout ${name} 5000`, '',
  ].join('\n'));
  return path;
}
