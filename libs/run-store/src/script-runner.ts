/**
 * Runs scripts by hash, and by text where the server does not know the hash (a fresh or restarted one). `NOSCRIPT` means
 * that nothing ran, so the second attempt cannot make it happen twice; every other error is handed on.
 */
import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';
import { loadScripts, type ScriptName } from './script-texts.ts';

/** A reply's first part is a word; the rest depends on it. */
export type Reply = readonly [string, ...unknown[]];

export interface ScriptCall {
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

export type RunScript = (name: ScriptName, call: ScriptCall) => Promise<unknown>;

export function createScriptRunner(redis: Redis, queueLua: string): RunScript {
  const texts = loadScripts(queueLua);
  const hashes = Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, createHash('sha1').update(text).digest('hex')]));
  return async (name, { keys, args }) => {
    try {
      return await redis.evalsha(hashes[name]!, keys.length, ...keys, ...args);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return await redis.eval(texts[name], keys.length, ...keys, ...args);
    }
  };
}
