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

interface Held {
  readonly claim: Claim;
  readonly signal: AbortSignal;
  /** Whether its delivery is taken out of the count for now. Written here alone. */
  excused: boolean;
}

export class Quarantine {
  readonly #store: Pick<TurnStore, 'recount'>;
  #onTrial: Held | null = null;
  readonly #beside = new Set<Held>();
  readonly #waiting: (() => void)[] = [];

  constructor(store: Pick<TurnStore, 'recount'>) {
    this.#store = store;
  }

  /** For every run that is taken, once: excuses it where another one is on trial. */
  async admit(hold: Held): Promise<void> {
    if (this.#onTrial === null) return;
    this.#beside.add(hold);
    await this.#excuse([hold]);
  }

  /** Resolves when `hold` is on trial, or when it has been aborted. `others`: what this process holds beside it. */
  async enter(hold: Held, others: () => readonly Held[]): Promise<void> {
    if (this.#onTrial !== null) {
      await this.#excuse([hold]);
      while (this.#onTrial !== null && !hold.signal.aborted) await this.#change(hold.signal);
      if (hold.signal.aborted) return;
    }
    // Nothing is awaited between: whoever comes later sees who is on trial, and excuses itself.
    this.#onTrial = hold;
    const beside = others().filter((other) => other !== hold);
    for (const other of beside) this.#beside.add(other);
    await Promise.all([this.#blame([hold]), this.#excuse(beside)]);
  }

  /** For every run that was taken, once, at its end. Who was excused beside a trial is counted again when no other follows. */
  leave(hold: Held): void {
    this.#beside.delete(hold);
    if (this.#onTrial === hold) this.#onTrial = null;
    const next = this.#waiting.splice(0);
    for (const wake of next) wake();
    if (this.#onTrial !== null || next.length > 0) return;
    const beside = [...this.#beside];
    this.#beside.clear();
    this.#blame(beside).catch(() => undefined);
  }

  async #excuse(holds: readonly Held[]): Promise<void> {
    await this.#recount(holds.filter((hold) => !hold.excused), true);
  }

  async #blame(holds: readonly Held[]): Promise<void> {
    await this.#recount(holds.filter((hold) => hold.excused), false);
  }

  async #recount(holds: readonly Held[], excused: boolean): Promise<void> {
    for (const hold of holds) hold.excused = excused;
    if (holds.length > 0) await this.#store.recount(holds.map((hold) => hold.claim), excused ? -1 : 1);
  }

  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      signal.addEventListener('abort', () => { resolve(); }, { once: true });
    });
  }
}
