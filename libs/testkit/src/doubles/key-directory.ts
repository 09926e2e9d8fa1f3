/** API keys that were issued, in memory. The clock is the test's. */
import type { IssuedKey, KeyDirectory } from '@treadle/engine';

export function createMemoryKeyDirectory(nowMs: () => number): KeyDirectory {
  const keys = new Map<string, IssuedKey>();
  const newest = (tenant: string | null) => [...keys.values()].filter((key) => tenant === null || key.tenant === tenant).sort((a, b) => (a.id < b.id ? 1 : -1));
  return {
    issue: async ({ not_after_ms, most, ...key }) => {
      const present = keys.get(key.id);
      if (present !== undefined) return { type: 'issued', created_at_ms: present.created_at_ms };
      if ([...keys.values()].some((each) => each.key_sha256 === key.key_sha256)) return { type: 'taken' };
      if (nowMs() > not_after_ms) return { type: 'too_late' };
      if (newest(key.tenant).length >= most) return { type: 'too_many' };
      keys.set(key.id, { ...key, created_at_ms: nowMs() });
      return { type: 'issued', created_at_ms: nowMs() };
    },
    find: async (key_sha256) => [...keys.values()].find((key) => key.key_sha256 === key_sha256) ?? null,
    get: async (id) => keys.get(id) ?? null,
    list: async ({ tenant, before_id, limit }) => {
      const left = newest(tenant).filter((key) => before_id === null || key.id < before_id);
      return { keys: left.slice(0, limit), next_before_id: left.length > limit ? left[limit - 1]!.id : null };
    },
    revoke: async ({ id, tenant, not_after_ms }) => {
      if (keys.get(id)?.tenant !== tenant) return 'missing';
      if (nowMs() > not_after_ms) return 'too_late';
      keys.delete(id);
      return 'revoked';
    },
  };
}
