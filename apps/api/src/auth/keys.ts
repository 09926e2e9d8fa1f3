/**
 * API keys. The table holds hashes alone: who reads it cannot use it.
 * A key is 256 random bits, so a plain SHA-256 is enough; every entry is compared, in constant time.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { fieldProblems } from '../server/field-problems.ts';

export const scopes = ['read', 'write', 'admin'] as const;
/** `admin` implies the others; `write` does not imply `read`. */
export type Scope = (typeof scopes)[number];

/** On whose behalf a request acts. */
export interface Principal {
  readonly tenant: string;
  readonly scopes: readonly Scope[];
  /** Of the key, for people. */
  readonly name: string | null;
  /** When the key expires: epoch milliseconds, or null for never. */
  readonly expires_at_ms: number | null;
}

export interface ApiKey extends Principal {
  /** 64 hex digits. */
  readonly key_sha256: string;
}

export interface KeyTable {
  /** Null when no key has this text, or the one that has it has expired. */
  find(token: string, nowMs: number): Principal | null;
}

export function createKeyTable(keys: readonly ApiKey[]): KeyTable {
  const table = keys.map((key) => ({ key, hash: Buffer.from(key.key_sha256, 'hex') }));
  return {
    find(token, nowMs) {
      const hash = createHash('sha256').update(token).digest();
      let found: ApiKey | null = null;
      for (const entry of table) {
        if (timingSafeEqual(entry.hash, hash)) found = entry.key;
      }
      if (found === null || (found.expires_at_ms !== null && found.expires_at_ms <= nowMs)) return null;
      return { tenant: found.tenant, scopes: found.scopes, name: found.name, expires_at_ms: found.expires_at_ms };
    },
  };
}

/** Whether a principal may do what asks for `scope`. */
export function mayUse(principal: Principal, scope: Scope): boolean {
  return principal.scopes.includes(scope) || principal.scopes.includes('admin');
}

export type KeysOutcome =
  | { readonly type: 'ok'; readonly keys: readonly ApiKey[] }
  | { readonly type: 'invalid'; readonly problems: readonly { readonly path: string; readonly problem: string }[] };

const entrySchema = z.strictObject({
  key_sha256: z.string().regex(/^[0-9a-fA-F]{64}$/, 'expected 64 hex digits: the SHA-256 of the key'),
  tenant: z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/, 'expected 1 to 64 letters, digits, "_", "-" or "."'),
  scopes: z.array(z.enum(scopes)).min(1),
  expires_at: z.iso.datetime({ offset: true }).nullish(),
  name: z.string().max(200).nullish(),
});

/**
 * The keys of an installation: the admin key (tenant `default`, scope `admin`) and the text of the keys file, either of
 * them null where it is not set. All faults are listed at once; no message repeats a key.
 */
export function loadKeys(sources: { readonly adminKey: string | null; readonly keysFileText: string | null }): KeysOutcome {
  const keys: ApiKey[] = [];
  const problems: { path: string; problem: string }[] = [];
  if (sources.adminKey !== null) {
    if (/^[\x21-\x7e]{8,512}$/.test(sources.adminKey)) keys.push(adminEntry(sources.adminKey));
    else problems.push({ path: 'TREADLE_ADMIN_KEY', problem: 'expected 8 to 512 printable characters without spaces' });
  }
  if (sources.keysFileText !== null) {
    const parsed = z.array(entrySchema).max(10_000).safeParse(jsonOf(sources.keysFileText));
    if (parsed.success) keys.push(...parsed.data.map(entryOf));
    else problems.push(...fieldProblems(parsed.error.issues));
  }
  const seen = new Set<string>();
  for (const key of keys) {
    if (seen.has(key.key_sha256)) problems.push({ path: key.name ?? '', problem: 'the same key stands there twice' });
    seen.add(key.key_sha256);
  }
  return problems.length > 0 ? { type: 'invalid', problems } : { type: 'ok', keys };
}

function adminEntry(adminKey: string): ApiKey {
  const key_sha256 = createHash('sha256').update(adminKey).digest('hex');
  return { key_sha256, tenant: 'default', scopes: ['admin'], expires_at_ms: null, name: 'TREADLE_ADMIN_KEY' };
}

function entryOf(entry: z.output<typeof entrySchema>): ApiKey {
  return {
    key_sha256: entry.key_sha256.toLowerCase(), tenant: entry.tenant, scopes: entry.scopes, name: entry.name ?? null,
    expires_at_ms: entry.expires_at === null || entry.expires_at === undefined ? null : Date.parse(entry.expires_at),
  };
}

/** Text that is not JSON becomes undefined, which is no list either. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
