/**
 * Whether a process could work now: every shard's Redis takes a write, and says so (with `appendfsync always`: after it is on disk). A Redis
 * that answers may be full or a replica, and in a Cluster one node can be away while the others answer.
 */
import { createKeys } from './keys.ts';
import type { RedisClient } from './redis-connection.ts';

/** A probe is answered within seconds, whatever the connection would wait for. */
const silenceMs = 1500;
const probeKeptMs = 60_000;

type Answer = 'written' | 'refused' | 'silent';

const words: Record<Exclude<Answer, 'written'>, { readonly all: string; readonly one: string }> = {
  silent: { all: 'Redis does not answer', one: 'its node of the Redis Cluster does not answer' },
  refused: { all: 'Redis takes no writes', one: 'its Redis takes no writes' },
};

/** Empty when all is well. Never throws, and answers within 2 s. */
export async function readinessProblems(redis: RedisClient, options: { readonly prefix: string; readonly shards: number }): Promise<string[]> {
  const keys = createKeys(options.prefix);
  const answers = await Promise.all(Array.from({ length: options.shards }, (_, shard) => writes(redis, keys.probe(shard))));
  const [first] = answers;
  if (first !== undefined && first !== 'written' && answers.every((answer) => answer === first)) return [words[first].all];
  return answers.flatMap((answer, shard) => (answer === 'written' ? [] : [`shard ${shard}: ${words[answer].one}`]));
}

async function writes(redis: RedisClient, key: string): Promise<Answer> {
  let late: NodeJS.Timeout | undefined;
  const silence = new Promise<Answer>((resolve) => { late = setTimeout(() => { resolve('silent'); }, silenceMs); });
  // Said by a server is a refusal; everything else means that nobody has said anything.
  const refused = (error: unknown): Answer => (error instanceof Error && error.name === 'ReplyError' ? 'refused' : 'silent');
  try {
    return await Promise.race([redis.set(key, Date.now(), 'PX', probeKeptMs).then((): Answer => 'written', refused), silence]);
  } finally {
    clearTimeout(late);
  }
}
