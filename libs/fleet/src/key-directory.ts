/** API keys that were issued, in Redis (the port `KeyDirectory`): each call but `revoke` is one script. Holds nothing in memory. */
import type { IssuedKey, KeyDirectory } from '@treadle/engine';
import { fleetKeys } from './keys.ts';
import { createScriptRunner, unknownReply, type RedisClient } from './script-runner.ts';

export const keyScripts = ['key_find', 'key_issue', 'key_list', 'key_revoke'] as const;

export interface KeyDirectoryOptions {
  /** As the run store's. */
  readonly prefix: string;
  /** After which a call is given up; nobody knows then whether it happened. Default 2,000. */
  readonly callTimeoutMs?: number;
}

/** Reads the script files; throws where one is missing. */
export function createKeyDirectory(redis: RedisClient, { prefix, callTimeoutMs = 2000 }: KeyDirectoryOptions): KeyDirectory {
  const keys = fleetKeys(prefix);
  const run = createScriptRunner(redis, keyScripts, { callTimeoutMs });

  async function find(by: 'hash' | 'id', which: string): Promise<IssuedKey | null> {
    const reply = await run('key_find', { keys: [keys.apiKeys, keys.apiKeyHashes], args: [by, which] });
    return reply[0] === 'missing' ? null : issuedKey(reply[1] as string);
  }

  const touched = (tenant: string): string[] => [keys.apiKeys, keys.apiKeyHashes, keys.apiKeyIds(null), keys.apiKeyIds(tenant)];

  return {
    issue: async ({ not_after_ms, most, ...key }) => {
      const reply = await run('key_issue', { keys: touched(key.tenant), args: [key.id, key.key_sha256, JSON.stringify(key), not_after_ms, most] });
      switch (reply[0]) {
        case 'issued': return { type: 'issued', created_at_ms: Number(reply[1]) };
        case 'taken': case 'too_many': case 'too_late': return { type: reply[0] };
        default: throw unknownReply('key_issue', reply);
      }
    },
    find: (key_sha256) => find('hash', key_sha256),
    get: (id) => find('id', id),
    list: async ({ tenant, before_id, limit }) => {
      const [, more, ...found] = await run('key_list', { keys: [keys.apiKeys, keys.apiKeyIds(tenant)], args: [before_id ?? '', limit] });
      return { keys: (found as string[]).map(issuedKey), next_before_id: more === '' ? null : more as string };
    },
    revoke: async ({ id, tenant, not_after_ms }) => {
      const key = await find('id', id);
      if (key?.tenant !== tenant) return 'missing';
      const reply = await run('key_revoke', { keys: touched(tenant), args: [id, key.key_sha256, not_after_ms] });
      if (reply[0] !== 'revoked' && reply[0] !== 'missing' && reply[0] !== 'too_late') throw unknownReply('key_revoke', reply);
      return reply[0];
    },
  };
}

/** `<created, epoch ms> <JSON>` */
function issuedKey(text: string): IssuedKey {
  const at = text.indexOf(' ');
  return { ...(JSON.parse(text.slice(at + 1)) as Omit<IssuedKey, 'created_at_ms'>), created_at_ms: Number(text.slice(0, at)) };
}
