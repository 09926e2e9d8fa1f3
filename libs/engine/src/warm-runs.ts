/**
 * The runs this process had in its hands last, so that the next claim need not read what is unchanged.
 * Owns: a bounded map, newest last. An entry is a hint: the store says in `claim` whether it is current.
 */
import type { RunState } from '@treadle/core';
import type { Claim } from './ports/run-store.ts';

interface Entry { readonly state: RunState; readonly epoch: number; readonly claim_id: string }

export class WarmRuns {
  readonly #entries = new Map<string, Entry>();
  readonly #limit: number;

  /** `limit`: how many runs are kept. */
  constructor(limit = 500) {
    this.#limit = limit;
  }

  keep(state: RunState, claim: Claim): void {
    this.#entries.delete(claim.run_id);
    this.#entries.set(claim.run_id, { state, epoch: claim.epoch, claim_id: claim.claim_id });
    const oldest = this.#entries.size > this.#limit ? this.#entries.keys().next().value : undefined;
    if (oldest !== undefined) this.#entries.delete(oldest);
  }

  drop(run_id: string): void {
    this.#entries.delete(run_id);
  }

  get(run_id: string): Entry | undefined {
    return this.#entries.get(run_id);
  }
}
