/**
 * Keys that were issued over the API, as authentication asks for them.
 *
 * Owns what was answered within the last moment: a busy client costs one look at the store every two seconds, and a key that was revoked is refused two
 * seconds later at the latest, at once by the process that revoked it. Where the store does not answer nobody is let in, and nobody is called unknown.
 */
import { createHash } from 'node:crypto';
import type { IssuedKey, KeyDirectory } from '@treadle/engine';
import type { Principal } from './keys.ts';

/** As `newToken` makes them: others are not looked for. */
const ours = /^tk_[A-Za-z0-9_-]{43}$/;
const knownMs = 2000;
/** Tokens in memory. */
const mostKnown = 10_000;

export class IssuedKeys {
  readonly #directory: Pick<KeyDirectory, 'find'>;
  /** By hash; the oldest answer first. */
  readonly #known = new Map<string, { readonly key: Promise<IssuedKey | null>; readonly untilMs: number }>();

  constructor(directory: Pick<KeyDirectory, 'find'>) {
    this.#directory = directory;
  }

  /** Null when no key has this text, or the one that has it has expired. Throws what the store throws. */
  async find(token: string, nowMs: number): Promise<Principal | null> {
    if (!ours.test(token)) return null;
    const key = await this.#look(hashOf(token));
    if (key === null || (key.expires_at_ms !== null && key.expires_at_ms <= nowMs)) return null;
    const { tenant, scopes, name, expires_at_ms } = key;
    return { tenant, scopes, name, expires_at_ms };
  }

  forget(key_sha256: string): void {
    this.#known.delete(key_sha256);
  }

  #look(hash: string): Promise<IssuedKey | null> {
    const now = performance.now();
    const known = this.#known.get(hash);
    if (known !== undefined && known.untilMs > now) return known.key;
    const key = this.#directory.find(hash);
    const looked = { key, untilMs: now + knownMs };
    this.#known.delete(hash);
    this.#known.set(hash, looked);
    if (this.#known.size > mostKnown) this.#known.delete(this.#known.keys().next().value!);
    // A failure is nobody's answer for the next two seconds.
    key.catch(() => { if (this.#known.get(hash) === looked) this.#known.delete(hash); });
    return key;
  }
}

export function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}
