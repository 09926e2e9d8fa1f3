/**
 * What `REDIS_URL` names: one server, the servers that Sentinels watch, or a Cluster. Nothing of the URL is repeated in an error, since
 * it may hold a password.
 */
export interface RedisNode { readonly host: string; readonly port: number }

/** Of the Redis servers; Sentinels are asked without. */
export interface RedisCredentials { readonly username?: string; readonly password?: string }

export type RedisTarget =
  | { readonly type: 'server'; readonly url: string }
  | { readonly type: 'sentinel'; readonly sentinels: RedisNode[]; readonly master: string; readonly credentials: RedisCredentials }
  | { readonly type: 'cluster'; readonly nodes: RedisNode[]; readonly credentials: RedisCredentials };

/** A URL that names no Redis: another scheme, or one that cannot be read. */
export class RedisUrlNotSupported extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'RedisUrlNotSupported';
  }
}

const forms = {
  server: 'redis://[user:password@]host[:port][/db]',
  'redis-sentinel': 'redis-sentinel://[user:password@]host[:26379],…/master',
  'redis-cluster': 'redis-cluster://[user:password@]host[:6379],…',
} as const;
const many = /^redis-(?:sentinel|cluster):\/\/(?:([^@/]*)@)?([^@/]+)(?:\/([^@/]*))?$/i;
const node = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/;

/** Throws `RedisUrlNotSupported`. */
export function parseRedisUrl(url: string): RedisTarget {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(url)?.[1]?.toLowerCase();
  switch (scheme) {
    case 'redis': case 'rediss':
      if (!URL.canParse(url)) throw unreadable(forms.server);
      return { type: 'server', url };
    case 'redis-sentinel': case 'redis-cluster': {
      const [, userinfo, hosts, path] = many.exec(url) ?? [];
      const nodes = (hosts ?? '').split(',').map((text) => nodeOf(text, scheme === 'redis-sentinel' ? 26_379 : 6379));
      const read = nodes.filter((each) => each !== null);
      if (read.length < nodes.length) throw unreadable(forms[scheme]);
      const credentials = credentialsOf(userinfo, forms[scheme]);
      if (scheme === 'redis-cluster') {
        // A Cluster has one database.
        if (path !== undefined && path !== '' && path !== '0') throw unreadable(forms[scheme]);
        return { type: 'cluster', nodes: read, credentials };
      }
      if (path === undefined || path === '') throw unreadable(forms[scheme]);
      return { type: 'sentinel', sentinels: read, master: decoded(path, forms[scheme]), credentials };
    }
    default: throw new RedisUrlNotSupported('a Redis URL begins with redis://, rediss://, redis-sentinel:// or redis-cluster://');
  }
}

function unreadable(form: string): RedisUrlNotSupported {
  return new RedisUrlNotSupported(`the Redis URL cannot be read: ${form}`);
}

function nodeOf(text: string, defaultPort: number): RedisNode | null {
  const found = node.exec(text);
  const port = Number(found?.[3] ?? defaultPort);
  if (found === null || port < 1 || port > 65_535) return null;
  return { host: found[1] ?? found[2] ?? '', port };
}

function credentialsOf(userinfo: string | undefined, form: string): RedisCredentials {
  if (userinfo === undefined) return {};
  const at = userinfo.indexOf(':');
  const username = decoded(at === -1 ? userinfo : userinfo.slice(0, at), form);
  const password = at === -1 ? '' : decoded(userinfo.slice(at + 1), form);
  return { ...(username === '' ? {} : { username }), ...(password === '' ? {} : { password }) };
}

function decoded(text: string, form: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw unreadable(form);
  }
}
