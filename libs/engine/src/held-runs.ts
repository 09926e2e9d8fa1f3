/**
 * The runs this process holds now. Nobody is deaf while busy: once a second every held run is asked about in one call per
 * shard, so a cancel or a fence reaches a ten-minute tool within about a second.
 */
import type { RunHold } from './hold.ts';
import { Quarantine } from './quarantine.ts';
import type { TurnStore } from './ports/run-store.ts';

export class HeldRuns {
  readonly quarantine: Quarantine;
  readonly #holds = new Set<RunHold>();
  readonly #store: TurnStore;
  #draining = false;

  constructor(store: TurnStore) {
    this.#store = store;
    this.quarantine = new Quarantine(store);
  }

  get size(): number { return this.#holds.size; }
  get all(): readonly RunHold[] { return [...this.#holds]; }

  add(hold: RunHold): void {
    this.#holds.add(hold);
    if (this.#draining) hold.abort('drain');
  }
  delete(hold: RunHold): void { this.#holds.delete(hold); }

  /** One look at all of them. Throws when the store cannot be asked; nothing is concluded from that. */
  async watch(): Promise<void> {
    const holds = [...this.#holds].filter((hold) => hold.left === null);
    if (holds.length === 0) return;
    const requests = holds.map((hold) => ({ claim: hold.claim, inbox_seen: hold.inboxSeen }));
    const replies = await this.#store.watch(requests);
    holds.forEach((hold, index) => {
      const reply = replies[index];
      if (hold.left !== null || reply === undefined) return;
      if (reply.type === 'fenced') hold.abort('fenced');
      else hold.receive(reply.inbox, requests[index]?.inbox_seen ?? 0);
    });
  }

  /** Ends every delivery without a decision, now and from now on; the queue hands their jobs back. */
  drain(): void {
    this.#draining = true;
    for (const hold of this.#holds) hold.abort('drain');
  }
}
