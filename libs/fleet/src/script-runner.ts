/**
 * Runs the scripts of the fleet by hash, and by text where the server does not know the hash: `NOSCRIPT` means that nothing ran, so the
 * second attempt cannot make it happen twice. A line `-- include: name` in a script is replaced by the file of that name, once.
 * What the client throws is thrown as it is.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Cluster, Redis } from 'ioredis';

export type FleetRedis = Redis | Cluster;

/** A reply's first part is a word; the rest depends on it. */
export type Reply = readonly [string, ...unknown[]];

export interface ScriptCall {
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

export type RunScript<Name extends string> = (name: Name, call: ScriptCall) => Promise<Reply>;

const folder = join(import.meta.dirname, 'scripts');
const includeLine = /^-- include: ([a-z-]+)$/gm;

function textOf(name: string): string {
  const done = new Set<string>();
  return readFileSync(join(folder, `${name}.lua`), 'utf8').replace(includeLine, (_, include: string) => {
    if (done.has(include)) return '';
    done.add(include);
    return readFileSync(join(folder, 'includes', `${include}.lua`), 'utf8');
  });
}

/** Reads the files of all `names`; throws where one is missing. */
export function createScriptRunner<Name extends string>(redis: FleetRedis, names: readonly Name[]): RunScript<Name> {
  const scripts = new Map(names.map((name) => {
    const text = textOf(name);
    return [name, { text, hash: createHash('sha1').update(text).digest('hex') }];
  }));
  return async (name, { keys, args }) => {
    const { text, hash } = scripts.get(name)!;
    const raw = await redis.evalsha(hash, keys.length, ...keys, ...args).catch((error: unknown) => {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return redis.eval(text, keys.length, ...keys, ...args);
    });
    if (!Array.isArray(raw) || typeof raw[0] !== 'string') throw new TypeError(`the script "${name}" answered ${JSON.stringify(raw)}`);
    return raw as unknown as Reply;
  };
}

/** A word that nobody knows means that script and adapter differ. */
export function unknownReply(script: string, reply: Reply): Error {
  return new TypeError(`the script "${script}" answered "${reply[0]}", which nobody knows`);
}
