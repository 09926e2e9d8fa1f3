/** Connections to Redis by role: the role says what happens while Redis is away. */
import { Redis, type RedisOptions } from 'ioredis';

/**
 * `command`: workers. Waits for Redis however long it takes, and sends unanswered commands again. BullMQ takes this kind.
 * `blocking`: readers that block for up to 5 s. An unanswered read fails when the connection is lost: its owner asks anew.
 * `api`: fails within about 2 s, so that a request can be answered; such a command may still happen (see `not_after_ms`).
 */
export type ConnectionRole = 'command' | 'blocking' | 'api';

/** A dead peer that sends no reset is noticed after this long; more than the longest block of any reader. */
const silenceMs = 15_000;

const byRole = {
  command: { maxRetriesPerRequest: null, socketTimeout: silenceMs },
  blocking: { maxRetriesPerRequest: 0, socketTimeout: silenceMs },
  api: { maxRetriesPerRequest: 0, enableOfflineQueue: false, commandTimeout: 2000, socketTimeout: 3000, autoResendUnfulfilledCommands: false },
} satisfies Record<ConnectionRole, RedisOptions>;

/** The scheme of a URL this version cannot connect to. */
export class RedisUrlNotSupported extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'RedisUrlNotSupported';
  }
}

/**
 * Connects in the background and keeps reconnecting, with growing pauses of at most 2 s. Errors of the connection go to
 * `onError` (and into the commands they hit), never unhandled. Throws `RedisUrlNotSupported` for any but `redis://` and `rediss://`.
 */
export function connectRedis(url: string, options: { readonly role: ConnectionRole; readonly onError?: (error: Error) => void }): Redis {
  const redis = new Redis(checkedUrl(url), {
    ...byRole[options.role],
    enableAutoPipelining: false,
    connectionName: `treadle-${options.role}`,
    retryStrategy: (attempt: number) => Math.min(50 * 2 ** Math.min(attempt, 6), 2000),
  });
  redis.on('error', options.onError ?? (() => undefined));
  return redis;
}

function checkedUrl(url: string): string {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(url)?.[1]?.toLowerCase();
  if (scheme === 'redis-sentinel' || scheme === 'redis-cluster') {
    const kind = scheme === 'redis-sentinel' ? 'Sentinel' : 'Cluster';
    throw new RedisUrlNotSupported(`Redis ${kind} is not supported yet: give the URL of one server (redis://host:port or rediss://host:port)`);
  }
  if (scheme !== 'redis' && scheme !== 'rediss') throw new RedisUrlNotSupported('a Redis URL begins with redis:// or rediss://');
  if (!URL.canParse(url)) throw new RedisUrlNotSupported('the Redis URL cannot be read: redis://[user:password@]host[:port][/db]');
  return url;
}
