/** What a given Redis promises, for `doctor` and readiness: each shortcoming with what is lost by it and how to mend it. */
import type { Redis } from 'ioredis';

export interface RedisProblem {
  /** `error`: Treadle cannot keep its promises at all. `warning`: it keeps them until the named event. */
  readonly severity: 'error' | 'warning';
  readonly problem: string;
  readonly mend: string;
}

/** Settings are null where the server does not tell (CONFIG is often denied by managed services). */
export interface RedisInspection {
  readonly version: string;
  readonly appendonly: string | null;
  readonly appendfsync: string | null;
  readonly no_appendfsync_on_rewrite: string | null;
  readonly maxmemory_policy: string | null;
  readonly problems: readonly RedisProblem[];
}

type Settings = Omit<RedisInspection, 'problems'>;

/** Throws what the connection throws. */
export async function inspectRedis(redis: Redis): Promise<RedisInspection> {
  const info = await redis.info();
  const field = (name: string): string | null => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? null;
  const setting = async (name: string): Promise<string | null> => {
    try {
      const reply = await redis.config('GET', name) as string[];
      return reply[1] ?? null;
    } catch (error) {
      if (error instanceof Error && /^(ERR unknown command|NOPERM|ERR.*(not allowed|disabled))/i.test(error.message)) return null;
      throw error;
    }
  };
  const settings: Settings = {
    version: field('redis_version') ?? 'unknown',
    appendonly: await setting('appendonly') ?? (field('aof_enabled') === null ? null : field('aof_enabled') === '1' ? 'yes' : 'no'),
    appendfsync: await setting('appendfsync'),
    no_appendfsync_on_rewrite: await setting('no-appendfsync-on-rewrite'),
    maxmemory_policy: await setting('maxmemory-policy') ?? field('maxmemory_policy'),
  };
  return { ...settings, problems: problemsOf(settings) };
}

/** Pure, so that every row can be tested. */
export function problemsOf(settings: Settings): RedisProblem[] {
  const problems: RedisProblem[] = [];
  const add = (severity: RedisProblem['severity'], problem: string, mend: string): void => { problems.push({ severity, problem, mend }); };
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
