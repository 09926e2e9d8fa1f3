/**
 * Runs scripts by hash, and by text where the server does not know the hash (a fresh or restarted one; in a Cluster each node knows
 * its own, and a script's keys say which node is asked). `NOSCRIPT` means
 * that nothing ran, so the second attempt cannot make it happen twice. What says that Redis is away, or takes no writes, is thrown
 * as `StoreAway` with its words kept; every other answer of a script that failed is a fault of ours, and is handed on.
 */
import { createHash } from 'node:crypto';
import { StoreAway } from '@treadle/engine';
import type { RedisClient } from './redis-connection.ts';
import { loadScripts, type ScriptName } from './script-texts.ts';

/** Said by a Redis that is there but cannot do its work now, or by a node of a Cluster that has not, or not yet, the keys. */
const refusing = /^(OOM|LOADING|READONLY|MISCONF|NOREPLICAS|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MOVED|ASK|BUSY|UNBLOCKED|ERR max number of clients)/;

function asStoreAway(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const answered = error.name === 'ReplyError' && !refusing.test(error.message.replace(/^ERR Error running script.*?: @user_script: \d+: /, ''));
  return answered ? error : new StoreAway(error.message, { cause: error });
}

/** A reply's first part is a word; the rest depends on it. */
export type Reply = readonly [string, ...unknown[]];

export interface ScriptCall {
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

export type RunScript = (name: ScriptName, call: ScriptCall) => Promise<unknown>;

export function createScriptRunner(redis: RedisClient, queueLua: string): RunScript {
  const texts = loadScripts(queueLua);
  const hashes = Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, createHash('sha1').update(text).digest('hex')]));
  return async (name, { keys, args }) => {
    try {
      return await redis.evalsha(hashes[name]!, keys.length, ...keys, ...args);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw asStoreAway(error);
      return await redis.eval(texts[name], keys.length, ...keys, ...args).catch((again: unknown) => { throw asStoreAway(again); });
    }
  };
}
