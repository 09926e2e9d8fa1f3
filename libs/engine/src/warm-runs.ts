/**
 * The runs this process had in its hands last, so that the next claim need not read what is unchanged.
 * Owns: a map bounded by bytes, newest last. An entry is a hint: the store says in `claim` whether it is current.
 */
import { isEnded, type RunState } from '@treadle/core';
import type { Claim } from './ports/run-store.ts';

interface Entry { readonly state: RunState; readonly epoch: number; readonly claim_id: string; readonly bytes: number }

/** What an entry costs beside its transcript: the spec, the tools' definitions. */
const baseBytes = 20_000;

export class WarmRuns {
  readonly #entries = new Map<string, Entry>();
  readonly #maxBytes: number;
  #bytes = 0;

  /** About so many bytes of transcripts are kept. */
  constructor(maxBytes = 128 * 1024 * 1024) {
    this.#maxBytes = maxBytes;
  }

  /** Runs that nobody will claim soon are not kept. */
  keep(state: RunState, claim: Claim): void {
    this.drop(claim.run_id);
    if (isEnded(state.status) || state.status === 'paused') return;
    // The last request's estimate, in bytes: counting the transcript at each commit would cost more than it saves.
    const bytes = baseBytes + state.estimated_tokens * 4;
    this.#entries.set(claim.run_id, { state, epoch: claim.epoch, claim_id: claim.claim_id, bytes });
    this.#bytes += bytes;
    for (const [run_id] of this.#entries) {
      if (this.#bytes <= this.#maxBytes) return;
      this.drop(run_id);
    }
  }

  drop(run_id: string): void {
    this.#bytes -= this.#entries.get(run_id)?.bytes ?? 0;
    this.#entries.delete(run_id);
  }

  get(run_id: string): Entry | undefined {
    return this.#entries.get(run_id);
  }
}
