/**
 * API keys that were issued while the system runs. Whoever reads this store cannot use them: it holds their hashes alone.
 *
 * N1  `issue` is idempotent by id; it and `revoke` do nothing after `not_after` (store's clock).
 * N2  One hash belongs to one key. A key that was revoked is not found from then on.
 *
 * Calls throw `StoreAway`: what was asked may have happened.
 */

export type KeyScope = 'read' | 'write' | 'admin';

export interface IssuedKey {
  /** Sorts by when it was made. */
  readonly id: string;
  /** 64 hex digits, lower case. */
  readonly key_sha256: string;
  readonly tenant: string;
  readonly scopes: readonly KeyScope[];
  /** For people. */
  readonly name: string | null;
  readonly created_at_ms: number;
  /** Null: never. Expired ones are still told of. */
  readonly expires_at_ms: number | null;
}

export interface KeyDirectory {
  /** `most`: keys that a tenant may have. `taken`: another key has this hash. */
  issue(key: Omit<IssuedKey, 'created_at_ms'> & { readonly not_after_ms: number; readonly most: number }):
  Promise<{ readonly type: 'issued'; readonly created_at_ms: number } | { readonly type: 'taken' | 'too_many' | 'too_late' }>;
  /** By the key itself. */
  find(key_sha256: string): Promise<IssuedKey | null>;
  get(id: string): Promise<IssuedKey | null>;
  /** Newest first; `tenant` null: of all tenants. */
  list(query: { readonly tenant: string | null; readonly before_id: string | null; readonly limit: number }): Promise<{ readonly keys: readonly IssuedKey[]; readonly next_before_id: string | null }>;
  revoke(key: { readonly id: string; readonly tenant: string; readonly not_after_ms: number }): Promise<'revoked' | 'missing' | 'too_late'>;
}
