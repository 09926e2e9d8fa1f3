/** Everything that a stage's system writes, stores, shows and answers, as texts by their places: for those who look for what must not be there. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';

/** Everything that Redis has. */
export async function redisText(url: string): Promise<string> {
  const redis = new Redis(url);
  const read = async (key: string): Promise<unknown> => {
    switch (await redis.type(key)) {
      case 'string': return redis.get(key);
      case 'hash': return redis.hgetall(key);
      case 'list': return redis.lrange(key, 0, -1);
      case 'zset': return redis.zrange(key, 0, '-1');
      case 'stream': return redis.xrange(key, '-', '+');
      default: return redis.smembers(key);
    }
  };
  try {
    const keys = await redis.keys('*');
    return JSON.stringify(await Promise.all(keys.map(async (key) => [key, await read(key)])));
  } finally {
    redis.disconnect();
  }
}

/** Every file below a folder, its name and what is in it. */
export function folderText(folder: string): string {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => statSync(join(folder, name)).isFile())
    .map((name) => `${name}\n${readFileSync(join(folder, name)).toString('latin1')}`).join('\n');
}

/** What the API says of a run, on all its routes. */
export async function runText(api: string, id: string, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const asked = [['', 'application/json'], ['/messages', 'application/json'], ['/ledger', 'application/json'], ['/tree', 'application/json'], ['/events', 'application/x-ndjson']] as const;
  const texts = await Promise.all(asked.map(async ([path, accept]) => {
    const answer = await fetch(`${api}/v1/runs/${id}${path}`, { headers: { ...headers, accept } });
    return `${path} ${answer.status} ${await answer.text()}`;
  }));
  return texts.join('\n');
}

/** What the API and the workers show to anybody who may ask. */
export async function pagesText(urls: { readonly api: string; readonly workers: readonly string[] }, headers: Readonly<Record<string, string>> = {}): Promise<Record<string, string>> {
  const paths = ['/v1/agents', '/v1/models', '/v1/chains', '/v1/breakers', '/v1/workers', '/v1/runs?limit=200', '/metrics', '/readyz', '/openapi.json', '/docs', '/'];
  const pages: [string, string][] = [...paths.map((path): [string, string] => [path, urls.api + path]), ...urls.workers.flatMap((worker, index) => ['/metrics', '/readyz'].map((path): [string, string] => [`worker ${index} ${path}`, worker + path]))];
  return Object.fromEntries(await Promise.all(pages.map(async ([name, url]) => [name, await (await fetch(url, { headers })).text()] as const)));
}
