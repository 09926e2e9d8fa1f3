/**
 * Sends what the outbox holds: a duty of a worker apart from its turns.
 *
 * Owns: the attempts under way in this process. States: open → closing → closed.
 * 1  So many at once, fewer of one tenant, and fewer still of one lane: a receiver that does not answer holds back its own deliveries alone, and many of them
 *    those of their tenant.
 * 2  An attempt ends within `timeout_ms`, before its delivery is handed out again. One whose outcome nobody could write down is made again.
 * 3  What this process cannot sign has failed here, and may be sent by another one; it is never sent unsigned.
 * 4  Whoever has a word to say about when a run may be told of (`mayTell`) is asked before each attempt.
 */
import { webhookId, webhookOutcome, type WebhookAnswer } from '@treadle/core';
import type { DeliveryUpkeep, Settlement, TakeDeliveries, TakenDelivery } from './ports/webhook-outbox.ts';
import type { WebhookSender } from './ports/webhook-sender.ts';

export interface DispatchDeps {
  readonly outbox: Pick<DeliveryUpkeep, 'takeDeliveries' | 'settleDelivery'>;
  readonly sender: WebhookSender;
  /** 0 to below 1. */
  readonly jitter: () => number;
  /** Without it a run may be told of when it has ended. */
  readonly mayTell?: (run_id: string) => Promise<boolean>;
  /** An attempt has ended: `failed` is made again. */
  readonly onOutcome?: (outcome: 'delivered' | 'failed' | 'dead', told: { readonly run_id: string; readonly attempt: number; readonly why: string | null }) => void;
  /** The outbox did not take an outcome, or did not answer. */
  readonly onFailure?: (error: unknown) => void;
}

export interface DispatchOptions {
  readonly shards: readonly number[];
  /** At once, in this process. */
  readonly concurrency: number;
  readonly per_tenant: number;
  readonly per_lane: number;
  readonly timeout_ms: number;
  readonly first_wait_ms: number;
}

/** How long a delivery is put off of which nobody may be told yet. */
const notYetMs = 1000;

export class WebhookDispatcher {
  readonly #deps: DispatchDeps;
  readonly #options: DispatchOptions;
  readonly #underWay = new Map<Promise<void>, TakenDelivery>();
  /** One for each attempt under way: a signal that outlives them all would gather what each has hung on it. */
  readonly #signals = new Set<AbortController>();
  #closing = false;
  #brokenOff = false;
  #round: Promise<void> | null = null;
  /** Where the next round begins: a shard with much to tell takes no room from the others. */
  #first = 0;

  constructor(deps: DispatchDeps, options: DispatchOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Begins what is due, as far as there is room; resolves when it has begun. Throws what the outbox throws. */
  async round(): Promise<void> {
    if (this.#closing) return;
    this.#round ??= this.#takeAll().finally(() => { this.#round = null; });
    await this.#round;
  }

  /** Takes nothing more; attempts under way may end until `within_ms`, then they are broken off, and are due again. */
  async close(within_ms: number): Promise<void> {
    this.#closing = true;
    await this.#round?.catch(() => undefined);
    const timer = setTimeout(() => {
      this.#brokenOff = true;
      for (const each of this.#signals) each.abort();
    }, within_ms);
    await Promise.all(this.#underWay.keys());
    clearTimeout(timer);
  }

  async #takeAll(): Promise<void> {
    const { shards, concurrency, per_tenant, per_lane, timeout_ms } = this.#options;
    const first = this.#first;
    this.#first = (first + 1) % Math.max(1, shards.length);
    for (const shard of [...shards.slice(first), ...shards.slice(0, first)]) {
      const limit = concurrency - this.#underWay.size;
      if (limit <= 0 || this.#closing) return;
      const taken = await this.#deps.outbox.takeDeliveries(shard, { limit, per_tenant, per_lane, busy: this.#busy(), lease_ms: leaseMs(timeout_ms) });
      for (const delivery of taken) this.#begin(delivery);
    }
  }

  #begin(delivery: TakenDelivery): void {
    const attempt = this.#attempt(delivery).catch((error: unknown) => { this.#deps.onFailure?.(error); }).finally(() => {
      this.#underWay.delete(attempt);
      // There is room again, and mostly more to do; what fails here fails at the next tick, and is reported there.
      this.round().catch(() => undefined);
    });
    this.#underWay.set(attempt, delivery);
  }

  #busy(): TakeDeliveries['busy'] {
    const busy = new Map<string, Map<string, number>>();
    for (const { tenant, lane } of this.#underWay.values()) {
      const lanes = busy.get(tenant) ?? new Map<string, number>();
      busy.set(tenant, lanes.set(lane, (lanes.get(lane) ?? 0) + 1));
    }
    return Object.fromEntries([...busy].map(([tenant, lanes]) => [tenant, Object.fromEntries(lanes)]));
  }

  async #attempt(delivery: TakenDelivery): Promise<void> {
    const { outbox, sender, mayTell, onOutcome } = this.#deps;
    const { run_id, target, body, tries } = delivery;
    if (mayTell !== undefined && !await mayTell(run_id)) {
      await outbox.settleDelivery(delivery, { type: 'later', delay_ms: notYetMs });
      return;
    }
    const answer = await this.#within((signal) => sender.send({ id: webhookId(run_id), target, body, signal }));
    // Broken off by the end of this process: nobody knows, and it says nothing of the receiver.
    const brokenOff = answer.type === 'failed' && this.#brokenOff;
    const settlement: Settlement = brokenOff ? { type: 'later', delay_ms: 0 } : this.#settlementOf(answer, tries);
    if (await outbox.settleDelivery(delivery, settlement) === 'settled' && settlement.type !== 'later') {
      onOutcome?.(settlement.type === 'retry' ? 'failed' : settlement.type, { run_id, attempt: tries + 1, why: settlement.type === 'delivered' ? null : settlement.error });
    }
  }

  /** An attempt whose signal aborts when its time is over, or the process ends. */
  async #within<T>(attempt: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const own = new AbortController();
    const timer = setTimeout(() => { own.abort(new DOMException('no answer in time', 'TimeoutError')); }, this.#options.timeout_ms);
    this.#signals.add(own);
    if (this.#brokenOff) own.abort();
    try {
      return await attempt(own.signal);
    } finally {
      clearTimeout(timer);
      this.#signals.delete(own);
    }
  }

  #settlementOf(answer: WebhookAnswer, tries: number): Settlement {
    const outcome = webhookOutcome(answer, tries, { first_wait_ms: this.#options.first_wait_ms, jitter: this.#deps.jitter() });
    const status = answer.type === 'answered' ? answer.status : null;
    const error = answer.type === 'answered' ? `the receiver answered ${answer.status}` : answer.why;
    switch (outcome.type) {
      case 'delivered': return { type: 'delivered', status: status ?? 0 };
      case 'retry': return { type: 'retry', delay_ms: outcome.delay_ms, status, error };
      case 'dead': return { type: 'dead', status, error };
    }
  }
}

/** An attempt, what the outbox needs to hear of it, and slack. */
function leaseMs(timeout_ms: number): number {
  return Math.ceil(timeout_ms * 1.5) + 2000;
}
