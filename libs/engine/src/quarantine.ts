/**
 * One run at a time on its last chance: where a worker dies, nobody can tell which of its runs did it, so all of them are counted.
 * The run whose next death would be its end is therefore tried while nobody else in this process can be blamed.
 *
 * Owns: which run of this process is on trial. States: empty → on trial → empty.
 * 1  While a run is on trial, a death of this process counts for that run alone: all others here are excused, those taken later too.
 * 2  A second one on its last chance waits, excused, with its claim in hand.
 * Runs beside it that are new may still be the ones that kill: who is on trial beside such a one is wronged. It takes two poisonous
 * runs at once.
 */
import type { Claim, TurnStore } from './ports/run-store.ts';

interface Held { readonly claim: Claim; readonly signal: AbortSignal }

export class Quarantine {
  readonly #store: Pick<TurnStore, 'recount'>;
  #onTrial: Held | null = null;
  readonly #waiting: (() => void)[] = [];

  constructor(store: Pick<TurnStore, 'recount'>) {
    this.#store = store;
  }

  /** For every run that is taken, once: excuses it where another one is on trial. */
  async admit(hold: Held): Promise<void> {
    if (this.#onTrial !== null) await this.#store.recount([hold.claim], -1);
  }

  /** Resolves when `hold` is on trial, or when it has been aborted. `others`: what this process holds beside it. */
  async enter(hold: Held, others: () => readonly Held[]): Promise<void> {
    if (this.#onTrial !== null) {
      await this.#store.recount([hold.claim], -1);
      while (this.#onTrial !== null && !hold.signal.aborted) await this.#change(hold.signal);
      if (hold.signal.aborted) return;
      this.#onTrial = hold;
      await this.#store.recount([hold.claim], 1);
    }
    this.#onTrial = hold;
    const claims = others().filter((other) => other !== hold).map((other) => other.claim);
    if (claims.length > 0) await this.#store.recount(claims, -1);
  }

  leave(hold: Held): void {
    if (this.#onTrial === hold) this.#onTrial = null;
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      signal.addEventListener('abort', () => { resolve(); }, { once: true });
    });
  }
}
