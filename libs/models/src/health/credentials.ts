/** The keys of a model, named by fingerprints: what is said of a key anywhere never shows the key. */
import { createHash } from 'node:crypto';
import type { Rates } from '@treadle/engine';

export interface Credential {
  /** Absent: the server asks for none. */
  readonly key: string | undefined;
  /** `credential:` and a fingerprint; of a model without keys it is the model's own target, since nobody else is to blame. */
  readonly target: string;
}

export type CredentialStrategy = 'fill_first' | 'round_robin';

export interface PoolOptions {
  readonly model_name: string;
  readonly provider: string;
  readonly base_url: string;
  readonly keys: readonly string[];
  readonly strategy: CredentialStrategy;
}

export const noRates: Rates = { requests_per_minute: null, tokens_per_minute: null, in_flight: null };

/** Two models with the same key at the same host share its fingerprint, and so its rates and its benches. */
export function credentialsOf({ model_name, provider, base_url, keys }: Omit<PoolOptions, 'strategy'>): readonly Credential[] {
  if (keys.length === 0) return [{ key: undefined, target: `model:${model_name}` }];
  const host = URL.parse(base_url)?.host ?? base_url;
  return keys.map((key) => ({ key, target: `credential:${createHash('sha256').update(`${provider}\n${host}\n${key}`).digest('hex').slice(0, 12)}` }));
}

/** Chooses among the keys that are not benched. `fill_first`: the first of them; `round_robin`: each in turn. */
export class CredentialPool {
  readonly credentials: readonly Credential[];
  readonly #strategy: CredentialStrategy;
  #next = 0;

  constructor(options: PoolOptions) {
    this.credentials = credentialsOf(options);
    this.#strategy = options.strategy;
  }

  /** Null where all are benched. `run_id`: takes turns by runs instead of calls, so that a run always gets the same key. */
  choose(benched: (target: string) => boolean, run_id?: string): Credential | null {
    const free = this.credentials.filter(({ target }) => !benched(target));
    if (free.length === 0) return null;
    if (this.#strategy === 'fill_first') return free[0] ?? null;
    if (run_id !== undefined) return free[createHash('sha256').update(run_id).digest().readUInt32BE() % free.length] ?? null;
    const chosen = this.credentials.findIndex(({ target }, place) => place >= this.#next && !benched(target));
    const place = chosen >= 0 ? chosen : this.credentials.findIndex(({ target }) => !benched(target));
    this.#next = (place + 1) % this.credentials.length;
    return this.credentials[place] ?? null;
  }

  /** Where all are benched there is still the one that was benched for the shortest time, or the first. */
  lastResort(until: (target: string) => number): Credential {
    const [first, ...others] = this.credentials;
    if (first === undefined) throw new Error('a pool has a credential, if only the one without a key');
    return others.reduce((best, each) => (until(each.target) < until(best.target) ? each : best), first);
  }
}
