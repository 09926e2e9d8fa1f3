/** API keys, as the API takes and answers them. */
import type { Json } from './schedules.ts';

export type KeyScope = 'read' | 'write' | 'admin';

export interface KeyRequest {
  /** Default: the tenant of the key that asks. */
  readonly tenant?: string;
  /** Default: read and write. */
  readonly scopes?: readonly KeyScope[];
  readonly name?: string;
  /** ISO 8601 with a zone. */
  readonly expires_at?: string;
}

export interface ApiKey {
  readonly id: string;
  readonly tenant: string;
  readonly scopes: readonly KeyScope[];
  readonly name: string | null;
  readonly created_at: string;
  readonly expires_at: string | null;
}

export interface KeysOfClient {
  /** `key` is shown this once. */
  createKey(request: KeyRequest): Promise<ApiKey & { readonly key: string }>;
  keys(query?: Readonly<Record<string, string>>): Promise<{ readonly data: readonly ApiKey[]; readonly next_cursor: string | null }>;
  /** Within two seconds no process takes it any more. */
  revokeKey(id: string): Promise<{ readonly id: string; readonly revoked: true }>;
}

export function keysOf(json: Json): KeysOfClient {
  return {
    createKey: (request) => json('POST', '/v1/keys', { body: request }),
    keys: (query = {}) => json('GET', `/v1/keys?${new URLSearchParams(query).toString()}`),
    revokeKey: (id) => json('DELETE', `/v1/keys/${encodeURIComponent(id)}`),
  };
}
