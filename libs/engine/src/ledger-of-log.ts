/** The ledger as the log tells it: but for the claim that began a call, which is taken to be that of its reply. */
import { idempotencyKey, type LedgerEntry, type RunEvent } from '@treadle/core';

/** Takes events in order; knows every call that may have been begun. */
export class LedgerOfLog {
  readonly #entries = new Map<string, LedgerEntry>();
  readonly #effects = new Map<string, LedgerEntry['effect']>();
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
      case 'outcome_resolved':
        this.#resolved.add(event.tool_use_id);
        return;
      case 'tool_result': {
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
