/**
 * Connections to Redis by role: the role says what happens while Redis is away. The same for one server, for the master that Sentinels
 * name, and for a Cluster, where "away" is said of the node that a command's keys lie on.
 */
import { Cluster, Redis, SentinelConnector, type ClusterOptions, type RedisOptions } from 'ioredis';
import { parseRedisUrl } from './redis-url.ts';

/** One server (found by Sentinels or not), or a Cluster. A command without keys goes to any master of a Cluster. */
export type RedisClient = Redis | Cluster;

/**
 * `command`: workers. Waits for Redis however long it takes, and sends unanswered commands again. BullMQ takes this kind.
 * `blocking`: readers that block for up to 5 s. An unanswered read fails when the connection is lost: its owner asks anew.
 * `fleet`: what a worker would rather not know than wait for. Fails within a second, and sends nothing late or again.
 * `api`: fails within about 2 s, so that a request can be answered; such a command may still happen (see `not_after_ms`).
 */
export type ConnectionRole = 'command' | 'blocking' | 'api' | 'fleet';

/** A dead peer that sends no reset is noticed after this long; more than the longest block of any reader. */
const silenceMs = 15_000;

const byRole = {
  command: { maxRetriesPerRequest: null, socketTimeout: silenceMs },
  blocking: { maxRetriesPerRequest: 0, socketTimeout: silenceMs },
  api: { maxRetriesPerRequest: 0, enableOfflineQueue: false, commandTimeout: 2000, socketTimeout: 3000, autoResendUnfulfilledCommands: false },
  fleet: { maxRetriesPerRequest: 0, enableOfflineQueue: false, commandTimeout: 1000, socketTimeout: 3000, autoResendUnfulfilledCommands: false },
} satisfies Record<ConnectionRole, RedisOptions>;

/**
 * Where a role must not send unanswered commands again, a lost connection is not tried anew behind its back: a second try that is refused
 * would look as if the first had not happened. What a node refuses before it does anything (it has moved, it moves) is asked again.
 */
const failing = { enableOfflineQueue: false, retryDelayOnFailover: 0, retryDelayOnClusterDown: 0, maxRedirections: 8 } satisfies ClusterOptions;
const inCluster = {
  command: { maxRedirections: Infinity },
  blocking: failing,
  api: failing,
  fleet: failing,
} satisfies Record<ConnectionRole, ClusterOptions>;

/** Growing pauses of at most 2 s. */
function pause(attempt: number): number {
  return Math.min(50 * 2 ** Math.min(attempt, 6), 2000);
}

/**
 * Connects in the background and keeps reconnecting, with growing pauses of at most 2 s. Errors of the connection go to
 * `onError` (and into the commands they hit), never unhandled. Throws `RedisUrlNotSupported` for what names no Redis.
 */
export function connectRedis(url: string, options: { readonly role: ConnectionRole; readonly onError?: (error: Error) => void }): RedisClient {
  const target = parseRedisUrl(url);
  const { role } = options;
  const onError = options.onError ?? (() => undefined);
  const common = { ...byRole[role], enableAutoPipelining: false, connectionName: `treadle-${role}` };
  if (target.type === 'cluster') {
    const cluster = new Cluster(target.nodes, {
      ...inCluster[role], clusterRetryStrategy: pause, enableAutoPipelining: false, redisOptions: { ...common, ...target.credentials },
    });
    connectNodes(cluster);
    return cluster.on('error', onError).on('node error', onError);
  }
  const single = { ...common, retryStrategy: pause, reconnectOnError: (error: Error) => onDemotion(role, error) } satisfies RedisOptions;
  const redis = target.type === 'server' ? new Redis(target.url, single) : new Redis({
    ...single, ...target.credentials, sentinels: target.sentinels, name: target.master, sentinelRetryStrategy: pause,
    // Of a Sentinel that hangs; and what the others say of a new master is heard even while the old one still answers.
    sentinelCommandTimeout: 1000, connectTimeout: 3000, failoverDetector: true, sentinelReconnectStrategy: pause,
    // Typed as if it were made from nothing.
    Connector: MasterConnector as unknown as NonNullable<RedisOptions['Connector']>,
  });
  redis.on('error', onError);
  return redis;
}

/**
 * What listens to the Sentinels for a connection that is gone must not end the next one: ioredis takes its word, said while the new master is
 * looked for, as an order to disconnect, and a connection that is ended so is never tried again.
 */
class MasterConnector extends SentinelConnector {
  override connect(...args: Parameters<SentinelConnector['connect']>): ReturnType<SentinelConnector['connect']> {
    this.disconnect();
    return super.connect(...args);
  }
}

/** A master that has become a replica refuses writes, for ever: the new master is behind the same name. 2 sends the command again. */
function onDemotion(role: ConnectionRole, error: Error): false | 1 | 2 {
  if (!/\bREADONLY /.test(error.message)) return false;
  return role === 'command' ? 2 : 1;
}

/**
 * A node is connected on its first command, and who keeps no queue would refuse those that come meanwhile: it is connected as soon as the
 * Cluster is usable, or found later. Not at once, since the command for which a node was found must still see it unconnected.
 */
function connectNodes(cluster: Cluster): void {
  const connect = (node: Redis): void => { if (node.status === 'wait') node.connect().catch(() => undefined); };
  cluster.on('ready', () => { cluster.nodes().forEach(connect); });
  cluster.on('+node', (node: Redis) => { setImmediate(() => { if (cluster.status === 'ready') connect(node); }); });
}

/** Resolves when commands are answered, however long that takes; of a Cluster, by every master that can be connected. */
export async function whenReady(redis: RedisClient): Promise<void> {
  if (redis.status !== 'ready') await new Promise<void>((resolve) => { redis.once('ready', resolve); });
  if (!(redis instanceof Cluster)) return;
  await Promise.all(redis.nodes('master').map((node) => new Promise<void>((resolve) => {
    if (node.status === 'ready' || node.status === 'end') resolve();
    else node.once('ready', resolve).once('end', resolve);
  })));
}
