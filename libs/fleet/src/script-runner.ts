/**
 * Runs this package's scripts: one file per script in `scripts/`, shared functions in `scripts/includes/`; a line `-- include: name` is replaced
 * by the file of that name. By hash, and by text where a server does not know the hash: `NOSCRIPT` means that nothing ran.
 *
 * An answer comes within `callTimeoutMs`, whatever the client is set to; afterwards nobody knows whether the script ran. What says that
 * Redis is away, or takes no writes, is thrown as `StoreAway`; every other error of a script is a fault of ours, and is handed on.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { StoreAway } from '@treadle/engine';
import type { Cluster, Redis } from 'ioredis';

export type RedisClient = Redis | Cluster;

/** A reply's first part is a word; the rest depends on it. */
export type Reply = readonly [word: string, ...rest: unknown[]];

export interface ScriptCall { readonly keys: readonly string[]; readonly args: readonly (string | number)[] }

export type RunScript<Name extends string> = (name: Name, call: ScriptCall) => Promise<Reply>;

interface Script { readonly text: string; readonly hash: string }

/** Reads the scripts of these names from `scripts/`; throws where a file is missing. */
export function createScriptRunner<Name extends string>(redis: RedisClient, names: readonly Name[], { callTimeoutMs }: { readonly callTimeoutMs: number }): RunScript<Name> {
  const scripts = Object.fromEntries(names.map((name) => [name, load(name)])) as Record<Name, Script>;
  return async (name, { keys, args }) => {
    const { text, hash } = scripts[name];
    try {
      const reply = await within(callTimeoutMs, redis.evalsha(hash, keys.length, ...keys, ...args).catch((error: unknown) => {
        if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
        return redis.eval(text, keys.length, ...keys, ...args);
      }));
      return asReply(name, reply);
    } catch (error) {
      throw asStoreAway(error);
    }
  };
}

function load(name: string): Script {
  const folder = join(import.meta.dirname, 'scripts');
  const text = readFileSync(join(folder, `${name}.lua`), 'utf8')
    .replace(/^-- include: ([a-z-]+)$/gm, (_, include: string) => readFileSync(join(folder, 'includes', `${include}.lua`), 'utf8'));
  return { text, hash: createHash('sha1').update(text).digest('hex') };
}

async function within<T>(timeoutMs: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => { timer = setTimeout(() => { reject(new StoreAway('Command timed out')); }, timeoutMs); });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
    promise.catch(() => undefined);
  }
}

/** Said by a Redis that is there but cannot do its work now, or by a node of a Cluster that has not, or not yet, the keys. */
const refusing = /^(OOM|LOADING|READONLY|MISCONF|NOREPLICAS|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MOVED|ASK|BUSY|UNBLOCKED|ERR max number of clients)/;

function asStoreAway(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof StoreAway || error instanceof TypeError) return error;
  const answered = error.name === 'ReplyError' && !refusing.test(error.message.replace(/^ERR Error running script.*?: @user_script: \d+: /, ''));
  return answered ? error : new StoreAway(error.message, { cause: error });
}

function asReply(script: string, raw: unknown): Reply {
  if (!Array.isArray(raw) || typeof raw[0] !== 'string') throw new TypeError(`the script "${script}" answered ${JSON.stringify(raw)}`);
  return raw as unknown as Reply;
}

/** A word that nobody knows means that script and adapter differ. */
export function unknownReply(script: string, reply: Reply): Error {
  return new TypeError(`the script "${script}" answered "${reply[0]}", which nobody knows`);
}
