/**
 * A real Redis Cluster of three masters without replicas, each with a third of the slots, for tests.
 *
 * Owns its three servers; they end as each of them would (server.ts).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { startRedis, told, type RedisServer } from './server.ts';

export interface RedisCluster {
  /** `redis-cluster://…` with all three nodes. */
  readonly url: string;
  readonly nodes: readonly RedisServer[];
  stop(): Promise<void>;
}

const ranges = ['0 5460', '5461 10922', '10923 16383'] as const;

/** Resolves when every node says that all slots are served. Throws where the servers cannot be started or do not find each other. */
export async function startRedisCluster(): Promise<RedisCluster> {
  const nodes = await allOrNone(ranges.map(() => startRedis({ args: ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000'] })));
  const stop = async (): Promise<void> => { await Promise.all(nodes.map((node) => node.stop())); };
  try {
    for (const [index, { port }] of nodes.entries()) {
      await done(port, `CLUSTER SET-CONFIG-EPOCH ${index + 1}`);
      await done(port, `CLUSTER ADDSLOTSRANGE ${ranges[index]!}`);
      if (index > 0) await done(nodes[0]!.port, `CLUSTER MEET 127.0.0.1 ${port}`);
    }
    for (const { port } of nodes) await says(port, 'CLUSTER INFO', /cluster_state:ok[^]*cluster_slots_ok:16384[^]*cluster_known_nodes:3/);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url: `redis-cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`, nodes, stop };
}

/** One that cannot be started must not leave the others behind. */
export async function allOrNone(starting: readonly Promise<RedisServer>[]): Promise<RedisServer[]> {
  const outcomes = await Promise.allSettled(starting);
  const started = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed === undefined) return started;
  await Promise.all(started.map((server) => server.stop()));
  throw failed.reason;
}

async function done(port: number, command: string): Promise<void> {
  const answer = await told(port, command);
  if (answer !== '+OK\r\n') throw new Error(`"${command}" was answered: ${answer ?? 'nothing'}`);
}

/** Waits until a server answers so. */
export async function says(port: number, command: string, answer: RegExp, timeoutMs = 20_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const last = await told(port, command);
    if (last !== null && answer.test(last)) return;
    if (performance.now() > deadline) throw new Error(`"${command}" is still answered: ${last ?? 'nothing'}`);
    await sleep(50);
  }
}
