/**
 * What a given Redis promises, for `doctor` and readiness: each shortcoming with what is lost by it and how to mend it. Of a Cluster every
 * master is asked, since each holds some of the runs.
 */
import { Cluster, type Redis } from 'ioredis';
import type { RedisClient } from './redis-connection.ts';

export interface RedisProblem {
  /** `error`: Treadle cannot keep its promises at all. `warning`: it keeps them until the named event. */
  readonly severity: 'error' | 'warning';
  readonly problem: string;
  readonly mend: string;
}

/** Settings are null where the server does not tell (CONFIG is often denied by managed services). */
export interface RedisSettings {
  readonly version: string;
  readonly appendonly: string | null;
  readonly appendfsync: string | null;
  readonly no_appendfsync_on_rewrite: string | null;
  readonly maxmemory_policy: string | null;
  /** Replicas that are connected to it. */
  readonly replicas: number;
  /** How many of them it must hear to take writes. */
  readonly min_replicas_to_write: string | null;
}

/** The settings are those of the first master; where another differs for the worse, a problem says so. */
export interface RedisInspection extends RedisSettings {
  readonly mode: 'server' | 'sentinel' | 'cluster';
  /** Masters: their addresses in a Cluster, else the one port. */
  readonly nodes: readonly string[];
  readonly problems: readonly RedisProblem[];
}

/** Throws what the connection throws; of a Cluster, where no master answers. */
export async function inspectRedis(redis: RedisClient): Promise<RedisInspection> {
  if (!(redis instanceof Cluster)) {
    const { settings, port } = await settingsOf(redis);
    const mode = redis.options.sentinels == null ? 'server' : 'sentinel';
    return { ...settings, mode, nodes: [`port ${port}`], problems: [...problemsOf(settings), ...(mode === 'server' ? [] : failoverProblems(settings))] };
  }
  // Nodes are known once any command has been answered.
  await redis.time();
  const masters = await Promise.all(redis.nodes('master').map(async (node) => ({
    address: `${node.options.host ?? '?'}:${node.options.port ?? '?'}`,
    // What it holds stands still, and the others go on.
    settings: await settingsOf(node).then(({ settings }) => settings, () => null),
  })));
  const first = masters.find(({ settings }) => settings !== null)?.settings;
  if (first == null) throw new Error('no master of the Redis Cluster answers');
  return {
    ...first, mode: 'cluster', nodes: masters.map(({ address }) => address).sort(),
    problems: merged(masters.map(({ address, settings }) => ({ address, problems: settings === null ? [silentMaster] : [...problemsOf(settings), ...failoverProblems(settings)] }))),
  };
}

const silentMaster: RedisProblem = { severity: 'warning', problem: 'a master does not answer: its runs stand still', mend: 'start it, or let a replica take over' };

/** One line for people: how Redis is reached and what was found there. */
export function describeRedis({ mode, nodes, replicas }: RedisInspection): string {
  switch (mode) {
    case 'server': return `one server, ${nodes.join(', ')}`;
    case 'sentinel': return `Sentinel: master on ${nodes.join(', ')}, replicas: ${replicas}`;
    case 'cluster': return `Cluster, masters: ${nodes.join(', ')}`;
  }
}

async function settingsOf(redis: Redis): Promise<{ settings: RedisSettings; port: string }> {
  const info = await redis.info().catch((error: unknown) => {
    if (isDenied(error)) return '';
    throw error;
  });
  const field = (name: string): string | null => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? null;
  const setting = async (name: string): Promise<string | null> => {
    try {
      const reply = await redis.config('GET', name) as string[];
      return reply[1] ?? null;
    } catch (error) {
      if (isDenied(error)) return null;
      throw error;
    }
  };
  const settings: RedisSettings = {
    version: field('redis_version') ?? unknownVersion,
    appendonly: await setting('appendonly') ?? (field('aof_enabled') === null ? null : field('aof_enabled') === '1' ? 'yes' : 'no'),
    appendfsync: await setting('appendfsync'),
    no_appendfsync_on_rewrite: await setting('no-appendfsync-on-rewrite'),
    maxmemory_policy: await setting('maxmemory-policy') ?? field('maxmemory_policy'),
    replicas: Number(field('connected_slaves') ?? 0),
    min_replicas_to_write: await setting('min-replicas-to-write'),
  };
  return { settings, port: field('tcp_port') ?? '?' };
}

const unknownVersion = 'unknown';

function isDenied(error: unknown): boolean {
  return error instanceof Error && /^(ERR unknown command|NOPERM|ERR.*(not allowed|disabled))/i.test(error.message);
}

/** What several masters have wrong is said once, with their addresses unless all have it. */
function merged(masters: readonly { readonly address: string; readonly problems: readonly RedisProblem[] }[]): RedisProblem[] {
  const found = new Map<string, { readonly problem: RedisProblem; readonly at: string[] }>();
  for (const { address, problems } of masters) {
    for (const problem of problems) {
      const same = found.get(problem.problem);
      if (same === undefined) found.set(problem.problem, { problem, at: [address] });
      else same.at.push(address);
    }
  }
  return [...found.values()].map(({ problem, at }) => (at.length === masters.length ? problem : { ...problem, problem: `${problem.problem} (${at.sort().join(', ')})` }));
}

/** Where somebody expects a replica to take over. */
export function failoverProblems({ replicas, min_replicas_to_write }: Pick<RedisSettings, 'replicas' | 'min_replicas_to_write'>): RedisProblem[] {
  // With one replica alone nothing could be written after a failover.
  if (replicas > 1 && min_replicas_to_write === '0') {
    return [{ severity: 'warning', problem: 'min-replicas-to-write is 0: a master that is cut off goes on acknowledging what is lost when it comes back', mend: 'CONFIG SET min-replicas-to-write 1, and min-replicas-max-lag 2, on every server' }];
  }
  if (replicas > 0) return [];
  return [{ severity: 'warning', problem: 'no replica is connected: while a master is away, its runs stand still', mend: 'add a replica for each master' }];
}

/** Pure, so that every row can be tested. */
export function problemsOf(settings: Omit<RedisSettings, 'replicas' | 'min_replicas_to_write'>): RedisProblem[] {
  const problems: RedisProblem[] = [];
  const add = (severity: RedisProblem['severity'], problem: string, mend: string): void => { problems.push({ severity, problem, mend }); };
  if (settings.version === unknownVersion) {
    add('error', 'this user may not ask INFO, which says what Redis is and how it is set up', 'ACL SETUSER … +info');
  }
  if (Number.parseFloat(settings.version) < 6.2) {
    add('error', `Redis ${settings.version} is too old: some commands that are needed do not exist there`, 'use Redis 6.2 or newer, or Valkey');
  }
  if (settings.maxmemory_policy !== null && settings.maxmemory_policy !== 'noeviction') {
    add('error', `maxmemory-policy is ${settings.maxmemory_policy}: when memory runs out, parts of live runs are evicted`, 'CONFIG SET maxmemory-policy noeviction');
  }
  if (settings.appendonly === 'no') {
    add('warning', 'the append-only file is off: a restart of Redis loses every run that is not in the archive', 'CONFIG SET appendonly yes');
  } else if (settings.appendonly === null) {
    add('warning', 'it cannot be seen whether Redis persists: what was acknowledged may be lost by a restart', 'let this user run CONFIG GET, or ask the operator');
  } else if (settings.appendfsync === null) {
    add('warning', 'appendfsync cannot be seen: up to a second of acknowledged events may be lost by a crash', 'let this user run CONFIG GET, or ask the operator');
  } else if (settings.appendfsync !== 'always') {
    const lost = settings.appendfsync === 'everysec' ? 'up to about 2 seconds' : 'up to about 30 seconds';
    add('warning', `appendfsync is ${settings.appendfsync}: a crash of the machine loses ${lost} of events that were shown`, 'CONFIG SET appendfsync always');
  } else if (settings.no_appendfsync_on_rewrite === 'yes') {
    add('warning', 'no-appendfsync-on-rewrite is yes: events shown during a rewrite of the file are lost by a crash of the machine', 'CONFIG SET no-appendfsync-on-rewrite no');
  }
  return problems;
}
