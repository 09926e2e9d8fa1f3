/** The ledger as the log tells it: but for the claim that began a call, which is taken to be that of its reply, or of the word that approved of it. */
import { idempotencyKey, type LedgerEntry, type RunEvent } from '@treadle/core';

/** Takes events in order; knows every call that may have been begun. */
export class LedgerOfLog {
  readonly #entries = new Map<string, LedgerEntry>();
  readonly #effects = new Map<string, LedgerEntry['effect']>();
  /** Calls that wait for approval, and those of a batch of which one does: nobody has begun these. */
  readonly #asked = new Set<string>();
  readonly #held = new Map<string, LedgerEntry>();
  /** Calls that a person has spoken about. */
  readonly #resolved = new Set<string>();

  get entries(): readonly LedgerEntry[] { return [...this.#entries.values()]; }

  take(event: RunEvent): void {
    switch (event.type) {
      case 'tools_changed':
        for (const tool of event.tools) this.#effects.set(tool.name, tool.effect);
        return;
      case 'tool_use':
        if (event.invalid !== undefined) return;
        this.#entries.set(event.tool_use_id, {
          tool_use_id: event.tool_use_id, tool_name: event.tool_name, status: 'started', started_epoch: event.epoch, settled_epoch: null,
          idempotency_key: idempotencyKey(event.run_id, event.tool_use_id), effect: this.#effects.get(event.tool_name) ?? 'once', outcome: null,
        });
        return;
      case 'approval_requested':
        this.#asked.add(event.tool_use_id);
        for (const [id, entry] of this.#entries) if (entry.status === 'started') { this.#held.set(id, entry); this.#entries.delete(id); }
        return;
      case 'approval_resolved':
        this.#asked.delete(event.tool_use_id);
        if (event.decision === 'deny') this.#held.delete(event.tool_use_id);
        if (this.#asked.size > 0) return;
        for (const [id, entry] of this.#held) this.#entries.set(id, { ...entry, started_epoch: event.epoch });
        this.#held.clear();
        return;
      case 'outcome_resolved':
        this.#resolved.add(event.tool_use_id);
        return;
      case 'tool_result': {
        this.#held.delete(event.tool_use_id);
        const entry = this.#entries.get(event.tool_use_id);
        if (entry === undefined) return;
        const never = event.outcome === 'not_started' && !this.#resolved.has(event.tool_use_id);
        if (never) this.#entries.delete(event.tool_use_id);
        else this.#entries.set(event.tool_use_id, { ...entry, status: 'settled', settled_epoch: event.epoch, outcome: event.outcome ?? null });
        return;
      }
      default:
    }
  }
}
