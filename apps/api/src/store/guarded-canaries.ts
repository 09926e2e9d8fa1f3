/** The fleet's knowledge of trials as a request may use it: each call answers or fails in time, and says what failed. */
import type { CanaryStore } from '@treadle/engine';
import { within } from './guarded-store.ts';
import { StoreUnavailable, storeUnavailable } from './unavailable.ts';

/** Throws `StoreUnavailable` for whatever means that the store is away; other errors as they are. */
export function guardedCanaries(store: CanaryStore, callTimeoutMs: number): CanaryStore {
  async function bounded<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await within(call(), callTimeoutMs, () => new StoreUnavailable('the store did not answer in time', { sent: true }));
    } catch (error) {
      throw storeUnavailable(error) ?? error;
    }
  }
  return {
    declare: (chain, definition) => bounded(() => store.declare(chain, definition)),
    assign: (run) => bounded(() => store.assign(run)),
    withdraw: (chain, run_id) => bounded(() => store.withdraw(chain, run_id)),
    report: (outcome) => bounded(() => store.report(outcome)),
    due: (chain, every_ms) => bounded(() => store.due(chain, every_ms)),
    read: (chain, wanted) => bounded(() => store.read(chain, wanted)),
    decide: (chain, seen_version, decision) => bounded(() => store.decide(chain, seen_version, decision)),
  };
}
